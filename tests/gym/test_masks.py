"""Which actions make sense, as agents ask for it that never take another."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.gym import PickJob, SchedulingEnv, Windows
from tests.gym.test_environment import IDS, make


@pytest.mark.parametrize("name", IDS)
def test_the_masks_are_those_that_are_observed(log: bp.Log, name: str) -> None:
    """MaskablePPO calls the method ``action_masks`` of an environment, through all that is around it."""
    env = make(name, log)
    observation, _ = env.reset(seed=3)
    for _ in range(50):
        mask = env.get_wrapper_attr("action_masks")()
        assert mask.dtype == np.bool_
        assert mask.tolist() == observation["action_mask"].astype(bool).tolist()
        observation, _, over, _, _ = env.step(env.action_space.sample(mask=observation["action_mask"]))
        if over:
            observation, _ = env.reset()


def test_a_mask_that_is_changed_by_the_agent_changes_nothing(log: bp.Log) -> None:
    env = SchedulingEnv(PickJob(), Windows(log, 40), hosts=64)
    env.reset(seed=3)
    env.action_masks()[:] = False
    assert env.action_masks().any()


def test_there_is_none_before_the_first_episode(log: bp.Log) -> None:
    with pytest.raises(InputError, match=r"call reset\(\) first"):
        SchedulingEnv(PickJob(), Windows(log, 40), hosts=64).action_masks()


@pytest.mark.parametrize("name", IDS)
def test_sb3_contrib_learns_with_masks(log: bp.Log, name: str) -> None:
    sb3_contrib = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib, which is not installed")
    utils = pytest.importorskip("sb3_contrib.common.maskable.utils")
    env: gymnasium.Env[Any, Any] = make(name, log)
    assert utils.is_masking_supported(env)
    model = sb3_contrib.MaskablePPO("MultiInputPolicy", env, n_steps=32, batch_size=16, seed=1)
    model.learn(total_timesteps=64)
    observation, _ = env.reset(seed=1)
    mask = utils.get_action_masks(env)
    action, _ = model.predict(observation, action_masks=mask)
    assert mask[int(action)]
