from __future__ import annotations

import re
import shutil
import string
import subprocess
from functools import cache
from itertools import zip_longest
from pathlib import Path

import matplotlib
import pytest
from matplotlib.ft2font import FT2Font, LoadFlags

from batsched_py.analysis.metrics import METRICS as METRICS_OF_ALL
from batsched_py.analysis.runs.aggregate import Baseline, aggregate
from batsched_py.analysis.runs.comparisons import compare, comparisons_markdown
from batsched_py.analysis.runs.pivot import PivotTable, pivoted
from batsched_py.analysis.runs.tables import ResultTable, latex, markdown, tables_of, width_of
from batsched_py.errors import InputError
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
        "The best of each column is bold, which one run cannot tell from chance.\n"
    )


def test_the_load_that_was_reached_is_told() -> None:
    """It is no column here, and differs between policies where users react."""
    runs = [
        Measured(
            {"log": "kth", "load": load, "scheduler": name},
            {"mean_waiting_time": 1.0, "offered_load": reached},
        )
        for load, name, reached in (("1", "easy", 0.7), ("1.2", "easy", 0.84), ("1.2", "fcfs", 0.79))
    ]
    (table,) = tables_of(aggregate(runs, ["mean_waiting_time"]))
    told = "The work that is submitted is 70% at load 1, 79% to 84% at load 1.2, of what the machine could do"
    assert told in table.note


def test_latex() -> None:
    text = latex(tables_of(aggregate(REPEATED, ["mean_waiting_time", "nb_jobs"])))
    assert text.splitlines() == [
        r"\begin{table}",
        r"  \centering",
        r"  \caption{kth. Means over up to 3 seeds on one workload: they tell of chance in policy and users "
        r"(where users are resampled, of other populations like this one), not of other workloads. "
        r"Intervals have 95\% confidence (Student's t, within the possible values); "
        r"bold is the best of each column, and what cannot be told from it (t-test of pairs, Holm).}",
        r"  \begin{tabular}{lrr}",
        r"    \toprule",
        r"    scheduler & \shortstack[r]{mean waiting time\\(min)} & jobs \\",
        r"    \midrule",
        r"    random & 2.000 [1.626, 2.460] & 60 $\pm$ 0 \\",
        r"    easy & \textbf{1.833} & 60 \\",
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]


@cache
def computer_modern() -> FT2Font:
    font = FT2Font(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "cmr10.ttf"))
    font.set_size(10, 72)
    return font


@cache
def drawn_width(text: str) -> float:
    """The width of a text that LaTeX sets in Computer Modern at 10 pt, from the font itself."""
    font = computer_modern()
    scale = 1.16 if r"\textbf" in text else 1.0
    plain = re.sub(r"\\textbf\{(.*)\}", r"\1", text).replace(r"$\pm$", "+").replace("$-$", "+").strip()
    plain = re.sub(r"\\(?=[&%$#_{}])", "", plain)
    flags = LoadFlags.NO_HINTING
    return scale * sum(font.load_char(ord(each), flags).linearHoriAdvance / 65536 for each in plain)


def table_widths(text: str) -> list[float]:
    """How wide the tables in a LaTeX text are, in points."""
    widths = []
    sizes = {r"\small": 0.9, r"\footnotesize": 0.8, r"\scriptsize": 0.7}
    for table in text.split(r"\begin{table}")[1:]:
        columns: list[float] = []
        spanned = 0.0
        for line in table.splitlines():
            cells = line.removeprefix("    ").removesuffix(r"\\").split(" & ")
            if len(cells) < 2:
                continue
            if r"\multicolumn" in line:
                spans = re.findall(r"\\multicolumn\{\d\}\{c\}\{(.*?)\}", line)
                spanned = sum(drawn_width(span) + 12 for span in spans)
                continue
            lines = [re.sub(r"\\shortstack\[r\]\{(.*)\}", r"\1", cell).split(r"\\") for cell in cells]
            drawn = [max(map(drawn_width, each)) + 12 for each in lines]
            columns = [max(pair) for pair in zip_longest(columns, drawn, fillvalue=0.0)]
        scale = next((factor for size, factor in sizes.items() if size in table), 1.0)
        widths.append(scale * max(sum(columns), spanned))
    return widths


@pytest.mark.parametrize("baseline", [None, Baseline("easy")])
def test_latex_tables_fit_the_width_of_a_page(baseline: Baseline | None) -> None:
    """An article at 10 pt has 345 pt; what is too wide becomes several tables, and no metric is lost."""
    names = [metric.name for metric in METRICS_OF_ALL if metric.needs is None]
    runs = [
        Measured(
            {"log": log, "part": str(part), "load": load, "platform": "half-as-large", "scheduler": name},
            {metric: (part + 3.7) * (12345.678 + place + len(name)) for place, metric in enumerate(names)},
        )
        for log in ("KTH-SP2", "SDSC-DS-2004")
        for load in ("0.85", "1.15")
        for name in ("easy", "conservative", "easy-sjbf")
        for part in (1, 2, 3)
    ]
    text = latex(tables_of(aggregate(runs, names, baseline=baseline)))
    widths = table_widths(text)
    assert len(widths) > 2
    assert max(widths) <= 345
    columns = 3 if baseline else 1
    assert text.count("& conservative &") == 4 * len(widths)
    assert sum(line.count("r") for line in re.findall(r"tabular}{l+(r+)}", text)) == columns * len(names)
    assert "(1 of" in text
    assert f"({len(widths)} of {len(widths)})" in text


def loads(metrics: int, choices: int) -> list[PivotTable]:
    """Tables with a load in each column: EASY, FCFS that is worse in every part, and SJF that is not."""
    names = ["mean_waiting_time", "mean_turnaround_time"][:metrics]
    longer = {"easy": [0, 0, 0, 0], "fcfs": [500, 501, 499, 500], "sjf": [40, -40, 30, -30]}
    runs = [
        Measured(
            {"log": "kth", "part": str(part), "load": f"{load / 10:g}", "scheduler": scheduler},
            {name: 1000.0 + 100 * part + more * load for name in names},
        )
        for scheduler, differences in longer.items()
        for load in range(1, choices + 1)
        for part, more in enumerate(differences, start=1)
    ]
    by = ["scheduler", "load"]
    return pivoted(aggregate(runs, names, by, Baseline("easy")), "load")


def test_choices_in_columns_have_stars_where_they_differ_from_the_baseline() -> None:
    (table,) = loads(1, 2)
    assert table.headings == ["load 0.1", "load 0.2"]
    stars = {choices[0]: [cell.text.count("*") for cell in cells] for choices, cells in table.rows}
    assert stars == {"easy": [0, 0], "fcfs": [3, 3], "sjf": [0, 0]}
    for said in ("up to 4 parts", "95% confidence", "Holm's method over the 4 tests", "the scheduler easy"):
        assert said in table.note


def test_choices_in_columns_are_one_latex_table_that_fits() -> None:
    text = latex(loads(2, 4))
    (width,) = table_widths(text)
    assert width <= 345
    assert text.count(r"\multicolumn{5}{l}{\emph{") == 2
    assert r" & 0.1 & 0.2 & 0.3 & 0.4 \\" in text


def test_too_many_choices_for_a_page_become_several_latex_tables() -> None:
    text = latex(loads(1, 12))
    widths = table_widths(text)
    assert len(widths) > 1
    assert max(widths) <= 345
    assert f"({len(widths)} of {len(widths)})" in text


def test_rows_need_something_to_show() -> None:
    results = aggregate(TWO, METRICS)
    with pytest.raises(InputError, match="nothing but the scheduler"):
        pivoted(results, "scheduler")


def test_widths_are_estimated_with_room_to_spare() -> None:
    for letter in string.ascii_letters + string.digits + " .,:;()+-/%*&@#=":
        assert width_of(letter) >= drawn_width(letter), letter


def test_long_latex_tables_are_split_by_rows() -> None:
    runs = [run(number, 1, 1, scheduler=f"s{number}") for number in range(95)]
    text = latex(tables(runs))
    bodies = [part.count(r" \\") - 1 for part in text.split(r"\begin{table}")[1:]]
    assert bodies == [40, 40, 15]


def test_a_latex_that_is_installed_finds_nothing_too_wide(tmp_path: Path) -> None:
    if (pdflatex := shutil.which("pdflatex")) is None:
        pytest.skip("needs LaTeX: apt-get install texlive-latex-base")
    body = latex(tables([run(7210.8 * n, 8480.5, 0.6 / n, scheduler=f"policy-{n}") for n in (1, 2, 3)]))
    (tmp_path / "table.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs}\begin{document}" + body + r"\end{document}"
    )
    done = subprocess.run(
        [pdflatex, "-interaction=batchmode", "table.tex"], cwd=tmp_path, timeout=600, check=False
    )
    assert done.returncode == 0
    assert "Overfull" not in (tmp_path / "table.log").read_text(errors="replace")


def test_what_is_shown_as_zero_has_no_sign() -> None:
    runs = [
        run(100.0 + seed, 2.0, 0.5 - 1e-9 * (name == "fcfs") * seed, scheduler=name, seed=str(seed))
        for name in ("easy", "fcfs")
        for seed in (1, 2, 3)
    ]
    (table,) = tables_of(aggregate(runs, ["utilization"], baseline=Baseline("easy")))
    assert table.rows[1][1][1].text.startswith("0.0000 ± 0.0000")


def test_one_run_a_cell_says_why_there_is_no_difference() -> None:
    (table,) = tables_of(aggregate(TWO, METRICS, baseline=Baseline("easy")))
    cells = {choices[0]: [cell.text for cell in row] for choices, row in table.rows}
    assert [cells["fcfs"][1], cells["easy"][1]] == ["one pair", ""]
    assert table.note == (
        "The best of each column is bold, which one run cannot tell from chance. A difference to easy needs "
        "two pairs or more, which are made by parts of a log or by seeds, and a test needs 3; where there "
        "are fewer, its place says so."
    )
    apart = [*REPEATED, run(5, 2, 0.5, scheduler="sjf", platform="half")]
    (table,) = tables_of(aggregate(apart, METRICS, by=["scheduler"], baseline=Baseline("easy")))
    assert {choices[0]: row[1].text for choices, row in table.rows}["sjf"] == "no pair"
    (table,) = tables_of(aggregate(PAIRED[:6], METRICS, baseline=Baseline("easy")))
    assert "two pairs or more" not in table.note


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
    assert table.rows[0][1][1].text == "2.000 [1.083, 12.991]", "no slowdown is below 1"


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


SURE = [
    run(100 * seed + worse * (10 + seed % 3), 2.0, 0.5, scheduler=scheduler, seed=str(seed))
    for scheduler, worse in (("easy", 0), ("fcfs", 1))
    for seed in (1, 2, 3, 4, 5, 7)
]


def test_schedulers_are_compared_seed_by_seed() -> None:
    """Waits differ by 200 s between seeds, and by about 10 s between the schedulers in each of them."""
    (comparison,) = compare(SURE, ["mean_waiting_time"])
    assert (comparison.better, comparison.worse, comparison.metric) == ("easy", "fcfs", "mean_waiting_time")
    assert comparison.paired.nb_units == 6
    assert comparison.is_shown
    assert comparisons_markdown([comparison]) == (
        "\n### Compared in pairs\n\n"
        "- kth, full: easy is better than fcfs in mean_waiting_time by 11.2 ± 0.79 s (p = 3e-07 by Holm over "
        "1, sign test 0.031; 6 seeds).\n"
    )


def test_a_difference_that_is_not_shown_is_called_so() -> None:
    sentences = [str(each) for each in compare(PAIRED, METRICS)]
    assert sentences[0] == (
        "kth, full: no difference shown between easy and fcfs in mean_waiting_time: 10 ± 0 s "
        "(p = 0.75 by Holm over 3, sign test 0.25; 3 seeds)."
    )
    assert not any("better" in sentence for sentence in sentences)


def test_other_choices_than_schedulers_are_compared_in_pairs() -> None:
    runs = [
        run(
            100 * seed + worse * (10 + seed % 3),
            2.0,
            0.5,
            scheduler="easy",
            platform=platform,
            seed=str(seed),
        )
        for platform, worse in (("now", 0), ("half", 1), ("double", -1))
        for seed in range(6)
    ]
    compared = compare(runs, ["mean_waiting_time"], "platform=now")
    assert [(each.better, each.worse, each.is_shown) for each in compared] == [
        ("now", "half", True),
        ("double", "now", True),
    ]
    table = aggregate(runs, ["mean_waiting_time"], baseline=Baseline("now", "platform"))
    assert [row["mean_waiting_time"].p_value for _, row in table.rows[1:]] == [
        each.p_value for each in compared
    ], "one test for table and sentences"


def test_nothing_is_compared_without_seeds() -> None:
    assert comparisons_markdown(list(compare(TWO, METRICS))) == ""
