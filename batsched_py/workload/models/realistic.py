"""Workloads like a log in all that Minh and Wolters ask for, with users who can be replayed with feedback."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.workload import models
from batsched_py.workload.description.jobs import DELTA, Bags, bag_keys, contiguous_bags, requested
from batsched_py.workload.description.over_time import daily_work, variation
from batsched_py.workload.models import arrivals, hidden, owners, shapes
from batsched_py.workload.models.arrivals import BagCuts, Cascade, Exponent, LargeBags, ZipfSizes
from batsched_py.workload.models.hidden import Persistence
from batsched_py.workload.models.owners import Owners, Programs
from batsched_py.workload.models.shapes import Means, Requests, Scale, Shapes
from batsched_py.workload.swf.log import Floats, Integers, Random, SwfLog, wall_clock


class RealisticParameters(models.Parameters):
    """All that the model learns of a log."""

    window: float
    """Up to how many seconds after each other jobs were one bag."""
    arrivals: Cascade
    large_bags: LargeBags
    bags: BagCuts
    owners: Owners
    programs: Programs
    shapes: Shapes
    sizes: float
    """How alike the sizes of a user's programs are: a correlation."""
    run_times: Persistence
    demand: float
    """The coefficient of variation of the processors that the jobs of each day ask for."""
    variation: float
    """The coefficient of variation of daily work."""
    requests: Requests


@dataclass
class Realistic(models.LearningModel):
    """Long memory, bursts, cycles, bags of tasks, and run times that go with sizes, as in a log.

    The four stages of Minh and Wolters: clusters of run times by a mixture of Gaussians, parallelism, bags of
    tasks, and their combination; with arrivals, users, programs and estimates of its own. Users return, run
    the same again, and run times persist, as in the log.
    """

    name = "realistic"

    run_times: Annotated[Scale, Meta(description="What the Gaussians are fitted to.")] = "log"
    window: Annotated[
        float, Meta(ge=0, description="Jobs of a bag follow each other within so many seconds.")
    ] = DELTA
    zipf: Annotated[
        Exponent | None,
        Meta(description="Sizes of bags are Zipf with this exponent; without it they are the log's."),
    ] = None
    parameters: RealisticParameters | None = field(default=None, init=False)

    def learn(
        self, jobs: SwfLog, source: str, machine: int, progress: models.Progress | None
    ) -> RealisticParameters:
        """Learn the parameters of each stage."""
        clusters_done, trials_done = _stages(progress)
        mixture = shapes.fit_mixture(jobs.run_time, self.run_times, clusters_done)
        bags = contiguous_bags(jobs, self.window)
        users = bags.first(jobs.user)
        programs = np.unique(bags.first(bag_keys(jobs)), return_inverse=True)[1]
        sizes = np.log(bags.first(requested(jobs)))
        ranks = shapes.ranks_within(shapes.bag_classes(bags.sizes), bags.means(jobs.run_time))
        fullness = hidden.fullness_of_days(bags.first(jobs.submit), bags.first(requested(jobs)) * bags.sizes)
        asked = bags.first(jobs.requested_time)[np.unique(programs, return_index=True)[1]]
        large_bags = arrivals.fit_large_bags(jobs.submit, bags)
        most = int(np.sort(bags.sizes)[-1 - len(large_bags.sizes)])
        learned = RealisticParameters(
            source=source,
            machine=machine,
            window=self.window,
            arrivals=arrivals.fit_cascade(wall_clock(jobs, jobs.submit)),
            large_bags=large_bags,
            bags=arrivals.fit_bag_cuts(jobs.submit, bags, most, self.window),
            owners=owners.fit_owners(jobs.submit, jobs.user, jobs.group, bags, self.window),
            programs=owners.fit_programs(jobs.submit, users, programs, bags, self.window),
            shapes=shapes.fit_shapes(jobs, bags, programs, mixture),
            sizes=hidden.likeness_of_programs(sizes, users, programs),
            run_times=hidden.fit_persistence(hidden.normal_scores(ranks), users, programs, fullness),
            demand=variation(daily_work(jobs.submit, requested(jobs))),
            variation=variation(daily_work(jobs.submit, jobs.run_time * requested(jobs))),
            requests=shapes.fit_requests(_longest(programs, bags, jobs.run_time), asked),
        )

        def trial(persistence: Persistence, seed: int) -> models.Columns:
            made = self.draw(replace(learned, run_times=persistence), len(jobs), np.random.default_rng(seed))
            learned.shapes.stretch = shapes.stretched(
                learned.shapes, jobs.run_time, requested(jobs), made, 1 / (seed + 1)
            )
            return made

        of_bags = len(bags.sizes) / len(jobs)
        learned.run_times = hidden.calibrate(learned.run_times, jobs.run_time, of_bags, trial, trials_done)
        return learned

    def draw(self, learned: RealisticParameters, jobs: int, random: Random) -> models.Columns:
        """Draw arrivals, bags, users, programs, sizes, run times and requests, in this order."""
        submit, bags = self._bags(learned, arrivals.generate_arrivals(learned.arrivals, jobs, random), random)
        users = owners.draw_owners(learned.owners, submit, bags, random, learned.window)
        programs = owners.draw_programs(learned.programs, submit, users, bags, random, learned.window)
        sizes = self._sizes(learned, submit, users, programs, bags, random)
        means = Means(learned.shapes, bags, sizes, random)
        fullness = hidden.fullness_of_days(bags.first(submit), sizes * bags.sizes)
        values = hidden.draw_values(learned.run_times, users, programs, bags.sizes, fullness, random)
        values = hidden.make_room(
            values,
            np.arange(len(values)),
            bags.first(submit),
            learned.variation,
            lambda values: means.by(values) * sizes * bags.sizes,
        )
        run_times = shapes.draw_run_times(learned.shapes, means.by(values), sizes, bags, random)
        requests = shapes.draw_requests(learned.requests, _longest(programs, bags, run_times), random)
        of_bags = {
            "allocated_processors": sizes,
            "requested_processors": sizes,
            "requested_time": requests[programs],
            "user": users,
            "group": np.array(learned.owners.groups)[users - 1],
            "executable": programs + 1,
        }
        of_jobs = {name: np.repeat(column, bags.sizes) for name, column in of_bags.items()}
        return {"submit": submit, "run_time": run_times, **of_jobs}

    def _sizes(
        self,
        learned: RealisticParameters,
        submit: Floats,
        users: Integers,
        programs: Integers,
        bags: Bags,
        random: Random,
    ) -> Integers:
        """The size of each bag."""

        def sizes(values: Floats) -> Integers:
            places = np.argsort(np.argsort(values, kind="stable"), kind="stable") / len(values)
            return shapes.draw_sizes(learned.shapes, programs, bags, submit, places)[programs]

        values = hidden.draw_program_values(learned.sizes, users, programs, bags.sizes, random)
        starts, wanted = bags.first(submit), learned.demand
        values = hidden.make_room(values, programs, starts, wanted, lambda each: sizes(each) * bags.sizes)
        return sizes(values)

    def _bags(self, learned: RealisticParameters, submit: Floats, random: Random) -> tuple[Floats, Bags]:
        """Arrivals and the bags that they are cut into."""
        if self.window != learned.window:
            raise InputError(
                f"the model was fitted with a window of {learned.window:g} s; "
                f"fit it again for one of {self.window:g} s"
            )
        if self.zipf is not None:
            most = max([learned.bags.most, *learned.large_bags.sizes])
            zipf = ZipfSizes(exponent=self.zipf, most=most)
            return submit, arrivals.cut_bags_by_size(zipf, submit, random, learned.window)
        submit, planned = arrivals.place_large_bags(learned.large_bags, submit, learned.window, random)
        return submit, arrivals.cut_bags(learned.bags, submit, planned, random, learned.window)


def _stages(progress: models.Progress | None) -> tuple[models.Progress, models.Progress]:
    """Who tells of the clusters and of the trials that follow, as steps of one whole."""
    tell = progress or (lambda done, total: None)
    clusters = 0

    def clusters_done(done: int, total: int) -> None:
        nonlocal clusters
        clusters = total
        tell(done, total + hidden.TRIALS)

    def trials_done(done: int, total: int) -> None:
        tell(clusters + done, clusters + total)

    return clusters_done, trials_done


def _longest(programs: Integers, bags: Bags, run_times: Floats) -> Floats:
    """The longest run time of each program."""
    return shapes.largest_of(np.repeat(programs, bags.sizes), run_times[bags.order])
