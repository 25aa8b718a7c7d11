"""``batsched-py benchmark``, on three weeks of the sample log."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import batsched_py as bp
from batsched_py.benchmark import results, tasks
from batsched_py.benchmark.results import Policy, Result, sample
from batsched_py.benchmark.tasks import DAY, Benchmark, Logs, Source, Task, standard
from batsched_py.campaign.files import digest_of_file
from tests.processes import call_here

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "workloads"
SOURCE = Source(
    "sample", "sample.swf", digest_of_file(LOGS / "sample.swf"), hosts=64, cores=4, weeks=(2, 3, 4)
)
TASKS = (
    *(Task("sample", week, 0.9) for week in SOURCE.weeks),
    Task("sample", 2, None, users="think-time"),
    Task("sample", 2, 0.9, machine="nodes"),
    Task("sample", 2, 0.9, estimates="exact"),
)
SMALL = Benchmark("test", (SOURCE,), TASKS)

FAILS = """
from batsched_py.schedulers import Scheduler

class Fails(Scheduler):
    '''Fails where many jobs wait.'''

    name = "fails"

    def schedule(self, cluster):
        if len(cluster.queue) > 20:
            raise ValueError("too many")
        for job in list(cluster.queue):
            if cluster.fits(job):
                cluster.start(job)
"""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark is a small one."""
    monkeypatch.setattr(tasks, "standard", lambda: SMALL)


def run(folder: Path, *words: str) -> tuple[int, str, str]:
    return call_here(["benchmark", "run", "--logs", LOGS, "--output", folder / "a.benchmark.json", *words])


def verify(folder: Path, *words: str) -> tuple[int, str, str]:
    return call_here(["benchmark", "verify", "--logs", LOGS, folder / "a.benchmark.json", *words])


def test_the_tasks_of_version_1_never_change() -> None:
    """Whoever changes them makes another version, and its results anew."""
    benchmark = standard()
    assert len({task.name for task in benchmark.tasks}) == len(benchmark.tasks) == 116
    assert (benchmark.version, benchmark.digest) == (
        "1", "c2403bf2858a8ce94e75df0872f64f74a4949989441f0d1d0633d184fc9f1849"
    )  # fmt: skip


def test_what_was_run_is_the_same_again(tmp_path: Path) -> None:
    code, told, wrong = run(tmp_path, "easy", "-o", "order=wfp3")
    assert (code, wrong) == (0, "") and "easy order=wfp3: 6 ok" in told
    assert verify(tmp_path) == (0, "easy order=wfp3: the same: 6 of 6\n", "")
    digests = [each.jobs_sha256 for each in Result.read(tmp_path / "a.benchmark.json").tasks.values()]
    assert len(set(digests)) == 6


def test_figures_are_those_of_a_simulation_of_the_week(tmp_path: Path) -> None:
    """A week with two days before and after it, whose load was changed to the one of the task."""
    run(tmp_path, "easy")
    log = bp.read_log(LOGS / "sample.swf")
    first = log.columns.submit.min()
    part = log.period(start="5d", end="16d")
    work = float((part.columns.run_time * part.columns.processors).sum())
    factor = 0.9 * 64 * 11 * DAY / work
    begin, end = ((day * DAY + first - part.columns.submit.min()) / factor for day in (7, 14))
    alone = bp.simulate(part.load(factor), "easy", hosts=64, measure=f"{begin:.6f}s:{end:.6f}s")
    its = Result.read(tmp_path / "a.benchmark.json").tasks["sample-w2-load0.9-rigid-plain-recorded"]
    assert its.metrics["mean_bounded_slowdown"] == float(f"{alone.metrics['mean_bounded_slowdown']:.6g}")
    assert its.metrics["utilization"] == float(f"{alone.metrics['utilization']:.6g}")


def test_a_schedule_that_is_another_one_is_told(tmp_path: Path) -> None:
    run(tmp_path, "fcfs")
    file = tmp_path / "a.benchmark.json"
    kept = Result.read(file)
    name = TASKS[4].name
    wrong = msgspec.structs.replace(kept.tasks[name], jobs_sha256="0" * 64)
    msgspec.structs.replace(kept, tasks=kept.tasks | {name: wrong}).write(file)
    code, told, error = verify(tmp_path)
    assert code == 1 and "1 tasks came to something else" in error
    assert f"{name}: the digest of its jobs was 000000000000" in told and "the same: 5 of 6" in told


def test_a_file_that_somebody_changed_is_refused(tmp_path: Path) -> None:
    run(tmp_path, "fcfs")
    file = tmp_path / "a.benchmark.json"
    file.write_text(re.sub(r'("utilization": 0\.)\d', r"\g<1>9", file.read_text(), count=1))
    code, told, error = verify(tmp_path)
    assert (code, told) == (1, "") and "was changed after it was written" in error


def test_results_of_other_tasks_and_logs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "fcfs")
    other = msgspec.structs.replace(SMALL, version="2")
    monkeypatch.setattr(tasks, "standard", lambda: other)
    assert "of version test of the benchmark, and this is version 2" in verify(tmp_path)[2]
    monkeypatch.setattr(tasks, "standard", lambda: SMALL)
    (tmp_path / "sample.swf").write_bytes((LOGS / "sample.swf").read_bytes() + b"; changed\n")
    code, _, error = call_here(["benchmark", "run", "fcfs", "--logs", tmp_path])
    assert code == 1 and "sample.swf: is not the log of the benchmark" in error
    (tmp_path / "sample.swf").unlink()
    code, _, error = call_here(["benchmark", "run", "fcfs", "--logs", tmp_path])
    assert code == 1 and "sample.swf is not here; get it from https://" in error
    code, told, error = call_here(["benchmark", "tasks", "--logs", tmp_path])
    assert code == 0 and TASKS[0].name in told and "sample.swf is not here" in error


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "easy")
    whole = Result.read(tmp_path / "a.benchmark.json")
    file, did, real = tmp_path / "b.benchmark.json", [], results.done

    def done(*arguments: object) -> object:
        if len(did) == 2:
            raise KeyboardInterrupt
        did.append(arguments)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(results, "done", done)
    with pytest.raises(KeyboardInterrupt):
        results.run(Policy.parse(["easy"], {}), SMALL, Logs(SMALL, [LOGS]), file)
    assert len(Result.read(file).tasks) == 2
    did[:] = did[:1] * 3
    went_on = results.run(Policy.parse(["easy"], {}), SMALL, Logs(SMALL, [LOGS]), file)
    assert len(did) == 7 and went_on.tasks == whole.tasks
    assert Result.read(file).sha256 == whole.digest
    assert "is the result of easy; give another --output" in run(tmp_path, "fcfs")[2]


def test_a_policy_that_fails_on_a_task_goes_on_with_the_others(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    code, _, error = run(tmp_path, f"{tmp_path / 'fails.py'}:Fails")
    done = Result.read(tmp_path / "a.benchmark.json").tasks.values()
    states = [each.state for each in done]
    assert code == 1 and {"ok", "failed"} == set(states) and len(states) == 6
    assert f"{states.count('failed')} tasks failed" in error and "too many" in error
    assert all("too many" in each.error for each in done if each.state == "failed")
    assert "give --trust to execute it" in verify(tmp_path)[2]
    assert "the same: 6 of 6" in verify(tmp_path, "--trust")[1]


def test_a_program_has_the_digests_of_the_same_policy(tmp_path: Path) -> None:
    logs = Logs(SMALL, [LOGS])
    program = Policy.parse(["python", str(ROOT / "examples/any-language/fcfs.py"), "{socket}"], {})
    few = msgspec.structs.replace(SMALL, tasks=(TASKS[0], TASKS[3], TASKS[4]))
    its = results.run(program, few, logs, tmp_path / "program.benchmark.json").tasks
    ours = results.run(Policy.parse(["fcfs"], {}), few, logs, tmp_path / "fcfs.benchmark.json").tasks
    assert program.name == "fcfs.py"
    assert [its[task.name].state for task in few.tasks] == ["ok", "not-applicable", "not-applicable"]
    assert its[TASKS[0].name] == ours[TASKS[0].name]


def test_what_is_no_policy_is_told_in_one_line(tmp_path: Path) -> None:
    assert "did you mean 'easy'?" in run(tmp_path, "eazy")[2]
    assert "give one policy, or the command of a program with {socket}" in run(tmp_path, "easy", "fcfs")[2]
    assert "a program takes its options" in run(tmp_path, "-o", "a=1", "--", "x", "{socket}")[2]
    assert not (tmp_path / "a.benchmark.json").exists()


def test_a_sample_is_always_the_same() -> None:
    assert sample(TASKS, 2) == [TASKS[0], TASKS[3]]
    assert sample(TASKS, None) == sample(TASKS, 99) == TASKS
