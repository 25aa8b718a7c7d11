"""Orders given as formulas: the same as the named ones, refused where they are none, harmless in any case."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.ledger.queue import Floats, Waiting
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.formulas import FUNCTIONS, QUANTITIES, Formula
from batsched_py.schedulers.orders import HALF_LIFE, order
from tests.schedulers.test_orders import bench_with, job, names, run_for

SAMPLE = Path("workloads/sample.swf")

#: Published orders as formulas; ``unicep`` counts one host like two, the others no time below a second.
AS_FORMULAS = {
    "submission": "submit",
    "shortest": "walltime",
    "largest-area": "-size * walltime",
    "expansion-factor": "-(1 + wait / walltime)",
    "wfp3": "-size * (wait / walltime) ** 3",
    "unicep": "-wait / (log2(max(size, 2)) * walltime)",
    "f1": "log10(max(walltime, 1)) * size + 870 * log10(max(submit, 1))",
    "f2": "sqrt(walltime) * size + 25600 * log10(max(submit, 1))",
    "f3": "walltime * size + 6860000 * log10(max(submit, 1))",
    "f4": "walltime * sqrt(size) + 530000 * log10(max(submit, 1))",
}


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", AS_FORMULAS)
def test_a_formula_gives_the_bytes_of_the_named_order(
    name: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "python":
        monkeypatch.setenv("BATSCHED_PY_PURE", "1")
    log = _beginning(tmp_path)
    written = []
    for number, text in enumerate((name, AS_FORMULAS[name])):
        prefix = tmp_path / f"{engine}{number}"
        bp.simulate(str(log), Easy(order=text), hosts=32, export=str(prefix))
        written.append(Path(f"{prefix}_jobs.csv").read_bytes())
    assert written[0] == written[1]


def _beginning(folder: Path, jobs: int = 300) -> Path:
    lines = SAMPLE.read_text().splitlines()
    header = [line for line in lines if line.startswith(";")]
    path = folder / "beginning.swf"
    path.write_text("\n".join(header + lines[len(header) : len(header) + jobs]) + "\n")
    return path


def test_usage_is_in_host_seconds_and_halves_in_a_week() -> None:
    assert HALF_LIFE == 604_800
    bench = bench_with(now=0.0)
    cluster = bench.cluster
    usage, seen = order("usage", cluster), []

    def watched(waiting: Waiting, now: float) -> Floats:
        seen.append(usage(waiting, now).tolist())
        return waiting.submission

    cluster.order_queue(watched)
    run_for(bench, job("1", 0.0, 4, inf, "ann"), 10.0)
    bench.submit(job("hers", 10.0, 1, 10.0, "ann"), job("his", 10.0, 1, 10.0, "bob"))
    for now in (10.0, 10.0 + HALF_LIFE):
        bench.now = now
        assert names(cluster) == ["hers", "his"]
    assert seen[0] == pytest.approx([40.0, 0.0], rel=1e-4)
    assert seen[-1] == pytest.approx([20.0, 0.0], rel=1e-4)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("wfp4 + 1", "'wfp4' is unknown"),
        ("", "it is not one"),
        ("size *", "it is not one"),
        ("3 + 4", "it names no quantity, so all jobs would have the same score"),
        ("size if wait else 0", "'size if wait else 0' is not allowed in it"),
        ("__import__('os').system('true')", "\"__import__('os').system('true')\" is not allowed in it"),
        ("size.real", "'size.real' is not allowed in it"),
        ("log10(size, wait)", "log10 takes 1 argument"),
        ("max(size)", "max takes 2 arguments"),
        ("size * True", "'True' is not allowed in it"),
        ("-" * 51 + "size", "it is nested more than 50 times"),
        ("sqrt(" * 51 + "size" + ")" * 51, "it is nested more than 50 times"),
        ("size" + " + size" * 400, "it has more than 1000 characters"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, fault: str) -> None:
    with pytest.raises(InputError) as error:
        Easy(order=text)
    assert f"is neither a name nor a formula: {fault}; a formula has numbers, size, walltime" in str(
        error.value
    )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_as_many_arguments_as_that_of_numpy(name: str) -> None:
    count = getattr(np, FUNCTIONS[name][0]).nin
    Easy(order=f"{name}({', '.join(['size'] * count)})")
    with pytest.raises(InputError, match=f"{name} takes {count} argument"):
        Easy(order=f"{name}({', '.join(['size'] * (count + 1))})")


@pytest.mark.parametrize("length", [60, 61])
def test_a_long_formula_is_cut_where_it_is_quoted(length: int) -> None:
    text = "size +" + " " * (length - 7) + "+"
    shown = text if length == 60 else text[:57] + "..."
    with pytest.raises(InputError) as error:
        Easy(order=text)
    assert str(error.value).startswith(f"order {shown!r} is neither")


@pytest.mark.parametrize("text", ["-" * 50 + "size", "sqrt(" * 50 + "size" + ")" * 50])
def test_a_formula_may_be_nested_fifty_times(text: str) -> None:
    Easy(order=text)


def test_a_name_that_no_order_has_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError, match="there is no order 'random'; choose among submission, shortest,"):
        Easy(order="random")


def test_a_name_that_is_nearly_one_is_told() -> None:
    with pytest.raises(InputError, match=r"there is no order 'unicef' \(did you mean 'unicep'\?\); choose"):
        Easy(order="unicef")


def test_what_is_not_a_number_goes_last() -> None:
    bench = bench_with(job("none", 1000.0, 1, 10.0), job("some", 1000.0, 4, 10.0))
    cluster = bench.cluster
    cluster.order_queue(order("wait / log2(size)", cluster))
    assert names(cluster) == ["some", "none"]


OF_ONE = [name for name, (_, count) in FUNCTIONS.items() if count == 1]

texts = st.recursive(
    st.sampled_from([*QUANTITIES, "1", "0", "2.5", "1e300"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**"]), inner).map(
            lambda three: f"({' '.join(three)})"
        )
        | st.tuples(
            st.sampled_from([name for name, (_, count) in FUNCTIONS.items() if count == 1]), inner
        ).map(lambda two: f"{two[0]}({two[1]})")
    ),
    max_leaves=8,
)


@given(text=texts)
def test_any_formula_orders_all_jobs(text: str) -> None:
    try:
        Formula(text)
    except InputError as error:
        assert "names no quantity" in str(error)
        return
    bench = bench_with(*(job(str(n), float(n), 1 + n % 7, 10.0 * n) for n in range(20)))
    bench.cluster.order_queue(order(text, bench.cluster))
    assert sorted(names(bench.cluster), key=int) == [str(n) for n in range(20)]
