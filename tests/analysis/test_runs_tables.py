from __future__ import annotations

import pytest

from batsched_py.analysis.runs.aggregate import aggregate
from batsched_py.analysis.runs.comparison import compare, comparisons_markdown
from batsched_py.analysis.runs.tables import ResultTable, latex, markdown, tables_of
from tests.runs import Measured

METRICS = ["mean_waiting_time", "mean_slowdown", "utilization", "nb_jobs"]


def tables(runs: list[Measured]) -> list[ResultTable]:
    return tables_of(aggregate(runs, METRICS))


def run(wait: float | None, slowdown: float, utilization: float, **axes: str) -> Measured:
    values = {
        "mean_waiting_time": wait,
        "mean_slowdown": slowdown,
        "utilization": utilization,
        "nb_jobs": 60,
        "makespan": 1.0,
    }
    return Measured({"log": "kth", "platform": "full"} | axes, values)


TWO = [run(7210.8, 8480.5, 0.63, scheduler="fcfs"), run(3600, 28.43, 0.97, scheduler="easy")]
REPEATED = [run(100 + 10 * seed, 2.0, 0.5, scheduler="random", seed=str(seed)) for seed in (1, 2, 3)] + [
    run(110, 2.0, 0.5, scheduler="easy", seed="1")
]


def test_markdown() -> None:
    assert markdown(tables(TWO)) == (
        "### kth\n"
        "\n"
        "| scheduler | mean waiting time (h) | mean slowdown | utilization | jobs |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| fcfs | 2.003 | 8480.5 | 0.6300 | 60 |\n"
        "| easy | **1.000** | **28.4** | **0.9700** | 60 |\n"
        "\n"
        "The best of each column is bold.\n"
    )


def test_latex() -> None:
    assert latex(tables(REPEATED)).splitlines() == [
        r"\begin{table}",
        r"  \centering",
        r"  \caption{kth. Means over up to 3 repetitions, with intervals of 95\% confidence (Student's t); "
        r"the best of each column is bold.}",
        r"  \begin{tabular}{lrrrr}",
        r"    \toprule",
        r"    scheduler & mean waiting time (min) & mean slowdown & utilization & jobs \\",
        r"    \midrule",
        r"    random & 2.000 $\pm$ 0.414 & 2 $\pm$ 0 & 0.5000 $\pm$ 0.0000 & 60 $\pm$ 0 \\",
        r"    easy & \textbf{1.833} & 2 & 0.5000 & 60 \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]


def test_what_latex_would_take_for_a_command_is_escaped() -> None:
    runs = [run(1, 1, 1, scheduler="a&b"), run(2, 2, 2, scheduler="50%")]
    assert r"a\&b &" in latex(tables(runs))
    assert r"50\% &" in latex(tables(runs))


def test_each_log_has_a_table_of_its_own() -> None:
    runs = [run(1, 1, 1, log=log, scheduler=name) for log in ("kth", "ctc") for name in ("a", "b")]
    assert [(table.log, len(table.rows)) for table in tables(runs)] == [("kth", 2), ("ctc", 2)]


def test_columns_that_say_the_same_in_every_row_are_left_out() -> None:
    runs = [
        run(1, 1, 1, scheduler="easy", users=users, platform=p) for users in ("a", "b") for p in ("x", "y")
    ]
    (table,) = tables(runs)
    assert table.axes == ["platform", "users"]


def test_an_interval_around_a_whole_number_keeps_its_decimals() -> None:
    runs = [run(1, slowdown, 1, scheduler="a", seed=str(slowdown)) for slowdown in (1, 2, 3)]
    (table,) = tables(runs)
    assert table.rows[0][1][1].text == "2.000 ± 2.484"


def test_equal_results_have_no_best() -> None:
    (table,) = tables([run(5, 5, 5, scheduler=name) for name in "ab"])
    assert not any(cell.best for _, cells in table.rows for cell in cells)


def test_large_energies_are_in_large_units() -> None:
    runs = [
        Measured({"log": "kth", "scheduler": name}, {"consumed_joules": joules})
        for name, joules in (("easy", 6.2e9), ("sleeper", 4.1e9))
    ]
    (table,) = tables_of(aggregate(runs, ["consumed_joules"]))
    assert table.headings == ["consumed joules (GJ)"]
    assert [cells[0].text for _, cells in table.rows] == ["6.200", "4.100"]


@pytest.mark.parametrize("value", [None, float("nan")])
def test_what_is_unknown_is_a_dash(value: float | None) -> None:
    (table,) = tables([run(value, 1, 1, scheduler="a"), run(7, 1, 1, scheduler="b")])
    assert [cells[0].text for _, cells in table.rows] == ["-", "7"]


PAIRED = [
    run(100 * seed + better, 2.0, 0.5, scheduler=scheduler, seed=str(seed))
    for scheduler, better in (("easy", 0), ("fcfs", 10))
    for seed in (1, 2, 3)
] + [run(1.0, 2.0, 0.5, scheduler="easy", seed="4"), run(7.0, 2.0, 0.5, scheduler="sjf", seed="9")]


def test_schedulers_are_compared_seed_by_seed() -> None:
    """Waits differ by 200 s between seeds, and by 10 s between the schedulers in each of them."""
    (comparison,) = compare(PAIRED, METRICS)
    assert (comparison.better, comparison.worse, comparison.metric) == ("easy", "fcfs", "mean_waiting_time")
    assert comparison.paired.nb_pairs == 3
    assert comparison.paired.confidence == 1.0
    assert comparisons_markdown([comparison]) == (
        "\n### Compared in pairs\n\n"
        "- kth, full: easy is better than fcfs in mean_waiting_time by 10 ± 0 s, with 100.0% confidence "
        "(3 pairs).\n"
    )


def test_nothing_is_compared_without_seeds() -> None:
    assert comparisons_markdown(list(compare(TWO, METRICS))) == ""
