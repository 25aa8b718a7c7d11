"""What a policy can do with what it is handed is the same in both engines: names, texts, copies."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batsched_py import native
from tests.hostile.acts import HANDED
from tests.hostile.outcomes import Policy, needs_both, outcome_of_policy


def seen_by(engine: str, look: Callable[[Any], Any], folder: Path) -> list[Any]:
    """What a policy sees at each of its turns."""
    seen: list[Any] = []
    outcome_of_policy(engine, Policy(lambda cluster: seen.append(look(cluster))), folder)
    assert seen
    return seen


def assert_same(look: Callable[[Any], Any], folder: Path) -> None:
    assert seen_by("native", look, folder) == seen_by("python", look, folder)


def values_of(thing: Any) -> dict[str, str]:
    """The public attributes that are no methods, as text; not what a set of hosts has worked out so far."""
    names = [name for name in dir(thing) if not name.startswith(("_", "known_"))]
    values = {name: getattr(thing, name) for name in names if not callable(getattr(thing, name))}
    texts = {name: repr(list(value) if hasattr(value, "dtype") else value) for name, value in values.items()}
    return {name: text for name, text in texts.items() if " object at " not in text}


@needs_both
@pytest.mark.parametrize("what", HANDED)
def test_the_same_names(what: str, tmp_path: Path) -> None:
    assert_same(
        lambda cluster: [name for name in dir(HANDED[what](cluster)) if not name.startswith("_")], tmp_path
    )


@needs_both
@pytest.mark.parametrize("what", HANDED)
def test_the_same_values(what: str, tmp_path: Path) -> None:
    assert_same(lambda cluster: values_of(HANDED[what](cluster)), tmp_path)


PLAIN = ["job", "extra", "running job", "its hosts", "free", "reservation", "profile", "settings"]


@needs_both
@pytest.mark.parametrize("what", PLAIN)
@pytest.mark.parametrize(
    "made",
    [repr, lambda thing: repr(copy.copy(thing)), lambda thing: repr(copy.deepcopy(thing)), pickle.dumps],
    ids=["repr", "copy", "deep copy", "pickle"],
)
def test_the_same_text_and_copies(what: str, made: Callable[[Any], Any], tmp_path: Path) -> None:
    assert_same(lambda cluster: made(HANDED[what](cluster)), tmp_path)


@needs_both
@pytest.mark.parametrize("what", PLAIN)
def test_what_is_pickled_comes_back(what: str, tmp_path: Path) -> None:
    seen = seen_by("native", lambda cluster: HANDED[what](cluster), tmp_path)[0]
    assert repr(pickle.loads(pickle.dumps(seen))) == repr(seen)


@needs_both
def test_arguments_may_be_named(tmp_path: Path) -> None:
    def look(cluster: Any) -> Any:
        head, profile = cluster.queue.head, cluster.profile()
        reservation = cluster.reservation(job=head)
        profile.take(start=0, end=5, count=1)
        return (
            cluster.fits(job=head),
            [
                job.id
                for job in cluster.fitting(condition=None, order=None, only_new=False, beside=reservation)
            ],
            cluster.queue.get(job_id=head.id) is head,
            cluster.queue.estimate(job=head),
            len(cluster.queue.first(count=2)),
            cluster.running.get(job_id="w0!1").job.id,
            reservation.allows(size=1, estimate=5),
            profile.free_at(time=1),
            profile.earlier(size=1, duration=2, reserved=3, before=4),
        )

    assert_same(look, tmp_path)


@needs_both
def test_a_running_job_is_one_object_from_its_start_to_its_end(tmp_path: Path) -> None:
    """So that a policy can look up what it noted about it."""
    for engine in ("python", "native"):
        noted: dict[Any, str] = {}
        ended: list[str] = []

        def act(cluster: Any, noted: Any = noted, ended: Any = ended) -> None:
            if not noted:
                cluster.on_end(lambda job: ended.append(noted.pop(job)))
            noted.update((running, running.job.id) for running in cluster.running)

        outcome_of_policy(engine, Policy(act), tmp_path)
        assert ended[:1] == ["w0!3"]


@needs_both
@pytest.mark.filterwarnings("ignore:nanobind")
def test_objects_that_were_never_made_are_refused() -> None:
    """Such as ``type(queue).__new__(type(queue))``, which a careless copy may call."""
    for _, kind in inspect.getmembers(native.library, inspect.isclass):
        unmade = kind.__new__(kind)
        for use in (repr, len, iter, next, list, copy.copy, pickle.dumps, lambda thing: None in thing):
            try:
                use(unmade)
            except Exception as error:
                assert str(error)
        for name in dir(unmade):
            try:
                getattr(unmade, name)
            except Exception as error:
                assert str(error)
