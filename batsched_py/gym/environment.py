"""The environment: a simulation that stops whenever the agent is to be asked."""

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

import gymnasium
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from batsched_py.api.log import FileName, Log
from batsched_py.engines import new_simulation
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, build
from batsched_py.experiment.value import Failures, OnFailure, OutsideFiles
from batsched_py.gym.tasks import PerJob, Reward, Task, bounded_slowdown, reward_of, waiting_time
from batsched_py.outside.curve import NOTHING_KNOWN, Known
from batsched_py.protocol.profiles import Profile
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.users import USERS, Behaviour, UsersOf
from batsched_py.workload.model import Workload, as_jobs
from batsched_py.workload.models import Model
from batsched_py.workload.read import read_workload
from batsched_py.workload.swf.workload import swf_to_workload

#: Gives the workload of the next episode, by the random numbers of the environment.
Episodes = Callable[[np.random.Generator], Workload]

NAME = "w0"


class Windows:
    """So many jobs of a log that follow each other, from any of them on with the same probability.

    They are not the first and not the last to come: ``around`` them, before and after, are so many others, by
    default half as many. The agent decides about all, and is rewarded for those of the window only. Otherwise
    it would learn to run an empty machine. Near the ends of the log there are fewer of them.
    """

    def __init__(self, log: Log | FileName | Workload, jobs: int = 256, around: int | None = None) -> None:
        self._around = jobs // 2 if around is None else around
        self._workload = workload_of(log)
        self._jobs = as_jobs(self._workload.jobs)
        self._length = min(jobs, len(self._jobs))
        if self._length < 1:
            raise InputError(f"windows of {jobs} jobs of a log of {len(self._jobs)} jobs hold none")
        self._order = self._jobs.by_time()

    def __len__(self) -> int:
        """How many windows there are."""
        return len(self._jobs) - self._length + 1

    def __call__(self, random: np.random.Generator) -> Workload:
        """Any of the windows."""
        return self[int(random.integers(len(self)))]

    def __getitem__(self, first: int) -> Workload:
        """The window that begins with this job."""
        if not 0 <= first < len(self):
            raise IndexError(first)
        begin = max(0, first - self._around)
        end = min(len(self._jobs), first + self._length + self._around)
        workload, places = self._workload, np.arange(begin, end)
        if self._order is not None:
            places = self._order[places]
        jobs, finishes = self._jobs.take(places), workload.finishes
        return replace(
            workload,
            jobs=jobs,
            profiles=self._used({job.profile for job in jobs}),
            finishes=None if finishes is None else [float(finishes[place]) for place in places.tolist()],
            measured=(first - begin, first - begin + self._length),
        )

    def _used(self, names: Iterable[str]) -> dict[str, Any]:
        """The profiles of these names, and of their parts."""
        used: dict[str, Profile] = {}
        found = list(names)
        while found:
            name = found.pop()
            if name not in used:
                used[name] = self._workload.profiles[name]
                found += used[name].parts
        return used


class Generated:
    """So many jobs that a model generates, others in each episode."""

    def __init__(self, model: Model, jobs: int = 256) -> None:
        self._model = model
        self._jobs = jobs

    def __call__(self, random: np.random.Generator) -> Workload:
        """A new workload."""
        return swf_to_workload(self._model.generate(self._jobs, int(random.integers(2**31))), NAME)


def workload_of(log: Log | FileName | Workload) -> Workload:
    """The jobs of a log, or those in a file."""
    if isinstance(log, Workload):
        return log
    if isinstance(log, Log):
        return swf_to_workload(log.columns, NAME)
    file = os.path.abspath(log)
    return _read(file, os.stat(file).st_mtime_ns if os.path.isfile(file) else 0)


@lru_cache(maxsize=1)
def _read(file: str, changed: int) -> Workload:
    """The jobs in a file that was changed at this time; environments that go on together share them."""
    return read_workload(file, NAME)


#: So many episodes in a row in which nothing is asked end in an error.
MOST_SILENT = 100


class SchedulingEnv(gymnasium.Env[Any, Any]):
    """Simulations in which an agent has the policy's place, one an episode.

    ``episodes`` say what is simulated: a log or the name of a file, of which windows of 256 jobs are taken,
    or any function of a random generator that gives a workload. The ``reward`` is a name among ``REWARDS`` or
    an object. The other words are those of :func:`batsched_py.simulate`; ``users`` submit the jobs of each
    episode, and react to what the agent does. Its settings of failures, of what becomes of jobs then, and of
    what comes from outside are the fields of ``failing``, ``restarting`` and ``outside``.

    ``reset`` knows the options ``workload``, which is simulated instead of what ``episodes`` say, and
    ``export``, the prefix of Batsim's output files; without it none are written. The ``info`` of the last
    step of an episode has some figures of its results: means over the jobs that are measured, in which
    rejected ones count 0, as in ``schedule.csv``.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        task: Task,
        episodes: Log | FileName | Workload | Episodes,
        *,
        reward: str | Reward = "bounded-slowdown",
        hosts: int | None = None,
        platform: FileName | None = None,
        energy: bool = False,
        users: str | Behaviour | None = None,
        user_options: Mapping[str, Any] | None = None,
        failing: Failures | None = None,
        restarting: OnFailure | None = None,
        outside: OutsideFiles | None = None,
    ) -> None:
        self.task = deepcopy(task)
        outside = outside or OutsideFiles()
        machine = Machine(file=None if platform is None else os.fspath(platform), hosts=hosts)
        self._experiment = build.with_failure_rule(
            Experiment(
                scenario=Scenario(machine=machine, failing=failing or Failures(), energy=energy),
                actors=Actors(
                    scheduler=Choice("agent"), restarting=restarting or OnFailure(), outside=outside
                ),
            )
        )
        self._platform: Platform | None = None
        if not (hosts is None and platform is None):
            self._platform = build.read_machine(machine, ())
        elif outside.closures is not None:
            raise InputError("closures name hosts of a machine; give hosts=N or platform=FILE")
        outlook = build.outlook_of(outside)
        hosts_there = self._platform.as_protocol()[0] if self._platform else ()
        self._known = NOTHING_KNOWN if outlook is None else outlook(hosts_there)
        self.task.show_more(_resources(self._platform, self._known), self._known)
        self.action_space = self.task.action_space
        self.observation_space = self.task.observation_space
        self._reward = deepcopy(reward_of(reward))
        self._means = {
            "mean_waiting_time": PerJob(waiting_time),
            "mean_bounded_slowdown": PerJob(bounded_slowdown),
        }
        self._episodes = episodes if callable(episodes) else Windows(episodes)
        if users is None and self._experiment.actors.restarting.on_failure:
            users = "rigid"
        if isinstance(users, str):
            users = USERS.create(users, Choice.of(users, user_options or {}).options)
        self._behaviour = users
        self._questions: Generator[Any, int, None] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin another episode, and let it go on to the first question."""
        super().reset(seed=seed)
        options = options or {}
        if unknown := options.keys() - {"workload", "export"}:
            raise InputError(f"reset knows the options workload and export, not {', '.join(sorted(unknown))}")
        chosen = options.get("workload")
        for _ in range(MOST_SILENT if chosen is None else 1):
            self.close()
            workload = self._episodes(self.np_random) if chosen is None else workload_of(chosen)
            self._questions = self._ask(workload, options.get("export"))
            for observation in self._questions:
                return observation, {}
        raise InputError("nothing is asked in an episode: no job of its workload gives the agent a choice")

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Do what the agent says, and go on to the next question, or to the end."""
        if self._questions is None:
            raise InputError("the episode is over, or none has begun; call reset() first")
        action = self.task.as_action(action)
        try:
            observation = self._questions.send(action)
        except StopIteration:
            self._questions = None
            end, results = self.task.show_end(self._cluster), self._simulation.results
            figures = {
                "nb_jobs": results.nb_jobs,
                "makespan": results.span,
                **{name: -mean.take() for name, mean in self._means.items()},
                "consumed_joules": results.consumed_joules,
            }
            return end, self._reward.take(), True, False, figures | results.bill
        return observation, self._reward.take(), False, False, {}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions make sense now, as ``MaskablePPO`` of sb3-contrib asks for it."""
        if not hasattr(self.task, "mask"):
            raise InputError("no episode has begun; call reset() first")
        return self.task.mask.copy()

    def close(self) -> None:
        """Leave the episode that is under way."""
        if self._questions is not None:
            self._questions.close()
            self._questions = None

    def _ask(self, workload: Workload, export: FileName | None) -> Generator[Any, int, None]:
        """Simulate a workload, stopping at each question."""
        scenario, actors = self._experiment.scenario, self._experiment.actors
        if self._platform is None:
            self._platform = build.read_machine(scenario.machine, [workload])
        users = () if self._behaviour is None else UsersOf(self._behaviour, [workload])
        process = build.observed(
            actors,
            build.NOTHING_GIVEN,
            _AgentsPlace(self._begin, workload),
            users,
            on_failure=build.failure_rule(actors.restarting),
            outlook=None if self._known is NOTHING_KNOWN else lambda hosts: self._known,
        )
        needed = build.with_needs(scenario, process.needs)
        static = [workload] if self._behaviour is None else []
        setup = build.new_setup(needed, self._platform, static, failing_for=[workload])
        outputs = Outputs(None if export is None else os.fspath(export))
        self._simulation = new_simulation(replace(setup, known=self._known), process, outputs)
        for cluster in self._simulation.turns():
            yield from self.task.turn(cluster)

    def _begin(self, cluster: Cluster, workload: Workload) -> None:
        self._cluster = cluster
        for reward in (self._reward, *self._means.values()):
            reward.begin(self._simulation, cluster, workload)
        self.task.begin(cluster)


class _AgentsPlace(Scheduler):
    """The place of the policy, in which the agent decides."""

    name = "agent"

    def __init__(self, begin: Callable[[Cluster, Workload], None], workload: Workload) -> None:
        super().__init__()
        self._begin = begin
        self._workload = workload

    def begin(self, cluster: Cluster) -> None:
        """The environment prepares."""
        self._begin(cluster, self._workload)

    def schedule(self, cluster: Cluster) -> None:
        """The agent decides."""
        raise NotImplementedError


def _resources(platform: Platform | None, known: Known) -> tuple[str, ...]:
    """The names of the resources that policies see; closures make nodes of hosts."""
    nodes = None if platform is None else platform.as_nodes()
    if nodes is None:
        return ("cores",) if known.closures else ()
    return tuple(nodes.totals(nodes.has, nodes.licences))
