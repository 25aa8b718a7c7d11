"""``batsched-py run``: a whole simulation in one process."""

from __future__ import annotations

from functools import partial

import click
import msgspec

from batsched_py.api.quantities import two_columns
from batsched_py.cli.options import struct_options
from batsched_py.cli.watching import (
    Pace,
    answer_at,
    live_option,
    show_live,
    status_option,
    step_option,
    step_through,
)
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment


@click.command("run")
@struct_options("experiment", Experiment, required=["files"])
@click.option(
    "-e", "--export", "prefix", metavar="PREFIX", default="out", show_default=True, help="Where results go."
)
@step_option
@live_option
@status_option
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
def command(
    experiment: Experiment,
    prefix: str,
    step: str | None,
    live: Pace | None,
    status: str | None,
    as_json: bool,
) -> None:
    """Simulate workloads on a machine under a scheduler, and write PREFIX_jobs.csv and PREFIX_schedule.csv.

    The files are those that Batsim writes. Without --hosts or -p the machine is as large as the workload
    says that its own was. Jobs are submitted at their recorded times, unless --users who react submit them.
    With --energy there are also PREFIX_consumed_energy.csv, PREFIX_pstate_changes.csv and
    PREFIX_machine_states.csv.

    \b
    Examples:
      batsched-py run -w KTH-SP2.swf.gz -s easy
      batsched-py run -w KTH-SP2.swf.gz --hosts 80 --speed 1.5 -s fcfs -e results/kth80
      batsched-py run -w KTH-SP2.swf.gz --hosts 50 -s easy --users think-time --sessions arrival:60
      batsched-py run -w workload.json -p platform.xml -s my_policy.py:MyPolicy -o depth=10 --json
      batsched-py run -w workload.json -p platform.xml -s pybatsim:path/to/mySched.py
      batsched-py run -w workload.json -p power.xml --energy -s 'sleeping(easy)' -o after=600
      batsched-py run -w KTH-SP2.swf.gz -s easy --step 'when queue > 10'
      batsched-py run -w KTH-SP2.swf.gz -s easy --live 86400
      batsched-py run -w KTH-SP2.swf.gz -s easy --status 8765 &
    """
    from batsched_py.api.simulate import simulate_experiment
    from batsched_py.experiment.run import GoThrough

    watched: GoThrough | None = None
    if step is not None and live is not None:
        raise InputError("both --step and --live are given; give one of them")
    if step is not None:
        watched = partial(step_through, step)
    elif live is not None:
        watched = partial(show_live, live, experiment.actors.scheduler.name)
    answering = None if status is None else partial(answer_at, status or f"{prefix}_status.sock")
    overview = simulate_experiment(
        experiment, export=prefix, progress=True, watched=watched, answering=answering
    ).overview
    click.echo(msgspec.json.encode(overview) if as_json else two_columns(overview.rows()))
