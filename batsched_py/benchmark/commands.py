"""``batsched-py benchmark``: policies on fixed tasks, with results that anyone can repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from batsched_py.api.terminal import say
from batsched_py.cli.campaign import files_option, trust_option
from batsched_py.cli.options import FILE, option, pairs_option
from batsched_py.errors import RunsFailed

logs_option = option(
    "--logs DIR",
    "Where the logs are; may be given several times.",
    name="folders",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    default=["."],
)
results_argument = click.argument("results", metavar="FILE...", nargs=-1, required=True, type=FILE)


@click.group("benchmark")
def benchmark_command() -> None:
    """Compare policies on fixed tasks, so that anyone can do it again to the byte.

    The tasks are weeks of five logs of the Parallel Workloads Archive: at three loads, with users who react,
    on nodes, and with exact estimates. A policy that was run on them leaves one file, with the digest of
    every schedule. docs/benchmark.md has a leaderboard of 20 policies.

    \b
    Examples:
      batsched-py benchmark tasks --logs ~/logs
      batsched-py benchmark run easy -o order=wfp3 --logs ~/logs
      batsched-py benchmark run --logs ~/logs -- ./my_scheduler --socket {socket}
      batsched-py benchmark verify easy.benchmark.json --logs ~/logs
      batsched-py benchmark table *.benchmark.json --output leaderboard.html
    """


@benchmark_command.command("tasks")
@logs_option
def tasks_command(folders: Sequence[Path]) -> None:
    """List the tasks, and tell which logs are missing and where to get them."""
    from batsched_py.benchmark.tasks import ARCHIVE, Logs, standard

    benchmark = standard()
    for task in benchmark.tasks:
        say(task.name)
    conditions = Counter(task.condition for task in benchmark.tasks)
    say("\n" + "\n".join(f"{count:>4}  {condition}" for condition, count in conditions.items()))
    say(f"{len(benchmark.tasks):>4}  tasks of version {benchmark.version}, SHA-256 {benchmark.digest}")
    for source in Logs(benchmark, folders).missing():
        say(f"{source.file} is not here; get it from {ARCHIVE} and say where it is: --logs DIR", err=True)


@benchmark_command.command("run")
@pairs_option("-o, --option", "pairs", "An option of the policy.")
@option("--name NAME", "What tables call it.  [default: the policy and its options]", default="")
@option("--output FILE", "Where the result is kept.  [default: NAME.benchmark.json]", type=FILE)
@logs_option
@click.argument("words", metavar="POLICY", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(
    pairs: Mapping[str, str], name: str, output: Path | None, folders: Sequence[Path], words: Sequence[str]
) -> None:
    """Run a policy on all tasks, and write what came of each, with its digest, to one file.

    POLICY is a scheduler that `batsched-py schedulers` lists, path/to/file.py:ClassName, pybatsim:NAME, or
    after -- the command of a program in any language, with {socket} where the address goes at which it
    listens ({port} for its port alone). The word `python` in front means the Python that runs this command.

    The result is kept after each task: the same command goes on where it was. A task on which the policy
    fails is told in the file, and the others go on; the exit code is then 1.

    \b
    Examples:
      batsched-py benchmark run easy -o order=wfp3 --logs ~/logs
      batsched-py benchmark run mine.py:Mine --logs ~/logs --output mine.benchmark.json
      batsched-py benchmark run --logs ~/logs -- python fcfs.py {socket}
    """
    from batsched_py.benchmark.results import Policy, run
    from batsched_py.benchmark.tasks import Logs, standard

    policy, benchmark = Policy.parse(words, pairs, name), standard()
    logs = Logs(benchmark, folders)
    logs.check()
    file = output or Path(policy.file_name)
    result = run(policy, benchmark, logs, file)
    counts = Counter(each.state.replace("-", " ") for each in result.tasks.values())
    say(f"{result.name}: {', '.join(f'{count} {state}' for state, count in sorted(counts.items()))}\n{file}")
    if failed := [(task, its) for task, its in result.tasks.items() if its.state == "failed"]:
        raise RunsFailed(f"{len(failed)} tasks failed; the first is {failed[0][0]}: {failed[0][1].error}")


@benchmark_command.command("verify")
@results_argument
@option(
    "--tasks N", "Do so many of the tasks only, always the same.", name="count", type=click.IntRange(min=1)
)
@logs_option
@trust_option
def verify_command(results: Sequence[Path], count: int | None, folders: Sequence[Path], trust: bool) -> None:
    """Do the tasks of results again, and tell whether the digest of every schedule is the same.

    Each difference is told. The exit code is 1 if there is any. Results that name a program or a file with
    code need --trust, which executes it.

    \b
    Examples:
      batsched-py benchmark verify easy.benchmark.json --logs ~/logs
      batsched-py benchmark verify *.benchmark.json --tasks 10 --logs ~/logs
    """
    from batsched_py.benchmark.results import Result, check, verified
    from batsched_py.benchmark.tasks import Logs, standard
    from batsched_py.trust import distrusting, trusting

    benchmark, different = standard(), 0
    logs = Logs(benchmark, folders)
    logs.check()
    for file in results:
        result = Result.read(file)
        check(file, result, benchmark)
        with trusting() if trust else distrusting(f"{file} names it; give --trust to execute it"):
            found = verified(result, benchmark, logs, count)
        for remark in found.remarks:
            say(f"batsched-py: {file}: {remark}", err=True)
        for difference in found.differences:
            say(difference)
        same = found.nb_tasks - len(found.differences)
        say(f"{result.name}: the same: {same} of {found.nb_tasks}")
        different += len(found.differences)
    if different:
        raise RunsFailed(f"{different} tasks came to something else")


@benchmark_command.command("table")
@results_argument
@files_option("Write the leaderboard as .html or .md; may be given several times.")
def table_command(results: Sequence[Path], files: Sequence[Path]) -> None:
    """Make the leaderboard of results, among which easy has to be, for all are compared with it.

    \b
    Examples:
      batsched-py benchmark table *.benchmark.json
      batsched-py benchmark table *.benchmark.json --output leaderboard.html --output leaderboard.md
    """
    from batsched_py.api.console import print_table
    from batsched_py.benchmark.results import Result, check
    from batsched_py.benchmark.table import COMPARED, heads, leaderboard, notes, rows, write_leaderboard
    from batsched_py.benchmark.tasks import standard

    benchmark = standard()
    read = [(file, Result.read(file)) for file in results]
    for file, result in read:
        check(file, result, benchmark)
    found = leaderboard([result for _, result in read], benchmark)
    for file in files:
        write_leaderboard(file, found)
        say(file.name)
    if not files:
        for metric in COMPARED:
            print_table(heads(metric), rows(found, metric), metric)
        say("\n".join(notes(found)))
