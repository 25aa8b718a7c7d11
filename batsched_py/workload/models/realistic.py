"""Workloads like a log in all that Minh and Wolters ask for, with users who can be replayed with feedback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.workload.description.bags import DELTA, Bags, contiguous_bags
from batsched_py.workload.models.bag_cuts import BagCuts, cut_bags, fit_bag_cuts
from batsched_py.workload.models.base import Columns, LearningModel, Parameters, Progress
from batsched_py.workload.models.cascade import Cascade, fit_cascade, generate_arrivals
from batsched_py.workload.models.mixture import Scale, fit_mixture
from batsched_py.workload.models.owners import Owners, draw_owners, fit_owners
from batsched_py.workload.models.requests import Requests, draw_requests, fit_requests
from batsched_py.workload.models.shapes import Shapes, draw_shapes, fit_shapes
from batsched_py.workload.swf.log import Floats, Integers, SwfLog
from batsched_py.workload.wall_clock import wall_clock


class RealisticParameters(Parameters):
    """All that the model learns of a log."""

    arrivals: Cascade
    bags: BagCuts
    shapes: Shapes
    owners: Owners
    requests: Requests


@dataclass
class Realistic(LearningModel):
    """Long memory, bursts, cycles, bags of tasks, and run times that go with sizes, as in a log.

    The four stages of Minh and Wolters: clusters of run times by a mixture of Gaussians, parallelism, bags
    of tasks, and their combination; with arrivals, users and estimates of its own. It learns from the jobs
    that completed, ran for some time and asked for processors.
    """

    name = "realistic"

    run_times: Annotated[Scale, Meta(description="What the Gaussians are fitted to.")] = "log"
    parameters: RealisticParameters | None = field(default=None, init=False)

    def learn(
        self, jobs: SwfLog, source: str, machine: int, progress: Progress | None
    ) -> RealisticParameters:
        """Learn the parameters of each stage."""
        bags = contiguous_bags(jobs)
        mixture = fit_mixture(jobs.run_time, self.run_times, progress)
        return RealisticParameters(
            source=source,
            machine=machine,
            arrivals=fit_cascade(wall_clock(jobs, jobs.submit)),
            bags=fit_bag_cuts(jobs.submit, bags),
            shapes=fit_shapes(jobs, bags, mixture),
            owners=fit_owners(jobs.submit, jobs.user, jobs.group, bags),
            requests=fit_requests(
                np.maximum.reduceat(jobs.run_time, bags.starts), bags.first(jobs.requested_time)
            ),
        )

    def draw(self, learned: RealisticParameters, jobs: int, random: np.random.Generator) -> Columns:
        """Draw arrivals, bags, users, shapes and requests, in this order."""
        submit = generate_arrivals(learned.arrivals, jobs, random)
        bags = cut_bags(learned.bags, submit, random)
        users = draw_owners(learned.owners, submit, bags, random)
        run_times, sizes, clusters = draw_shapes(learned.shapes, bags, users, random)
        longest = np.maximum.reduceat(run_times, bags.starts)
        requests = draw_requests(learned.requests, longest, random)
        executables = _programs(np.stack([users, sizes, clusters]), submit, bags)
        return {
            "submit": submit,
            "run_time": run_times,
            "allocated_processors": np.repeat(sizes, bags.sizes),
            "requested_processors": np.repeat(sizes, bags.sizes),
            "requested_time": np.repeat(requests, bags.sizes),
            "user": np.repeat(users, bags.sizes),
            "group": np.repeat(np.array(learned.owners.groups)[users - 1], bags.sizes),
            "executable": np.repeat(executables, bags.sizes),
        }


def _programs(shapes: Integers, submit: Floats, bags: Bags) -> Integers:
    """A program for each bag: the same for all bags of a user with the same size and cluster of run times.

    Two such bags that follow each other within delta would be one, so they take turns between two programs.
    """
    codes = np.unique(shapes, axis=1, return_inverse=True)[1].ravel()
    in_time = bags.first(submit)[1:] - bags.last(submit)[:-1] <= DELTA
    clash = np.concatenate([[False], in_time & (codes[1:] == codes[:-1])])
    clashes = np.cumsum(clash)
    before = np.maximum.accumulate(np.where(clash, 0, clashes))
    return np.unique(2 * codes + (clashes - before) % 2, return_inverse=True)[1] + 1
