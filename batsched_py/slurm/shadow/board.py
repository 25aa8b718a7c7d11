"""What a shadow shows: a page, the forecast in JSON, and figures for Prometheus, on loopback only."""

import html
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click
import msgspec

from batsched_py.analysis import pages
from batsched_py.errors import InputError
from batsched_py.slurm.forecast.forecast import Forecast
from batsched_py.slurm.forecast.page import forecast_cells, forecast_heads
from batsched_py.slurm.shadow.memory import Kept
from batsched_py.slurm.shadow.queue_changes import Tried

TITLE = "A twin beside Slurm"
LOOPBACK = "127.0.0.1"

#: The page is asked for again after so many seconds.
REFRESH = 30


class Board:
    """What is shown now."""

    def __init__(self, folder: Path) -> None:
        self._page = folder / "page.html"
        self.polls = self.failures = 0
        self.trouble = ""
        """Why Slurm does not answer; nothing if it does."""
        self.answered: float | None = None
        """When it answered last, in Unix time."""
        self.drift = 0
        self.counts: dict[str, int] = {}
        self.tried: Sequence[Tried] = ()
        self.kept = Kept(
            forecasts=0,
            covered=None,
            covered_as_drawn=None,
            median_error=None,
            median_error_by_limits=None,
            median_error_by_plan=None,
        )
        self.forecast: Forecast | None = None
        self._write()

    def show(self, found: Forecast | None) -> None:
        """Slurm has answered, and this is forecast."""
        self.polls += 1
        self.trouble, self.answered, self.forecast = "", time.time(), found
        self._write()

    def silent(self, trouble: str) -> None:
        """Slurm has not answered."""
        self.polls += 1
        self.failures += 1
        self.trouble = trouble
        self._write()

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """The kind and the content of what is asked for."""
        match path:
            case "/":
                return "text/html; charset=utf-8", self._page.read_bytes()
            case "/metrics":
                return "text/plain; version=0.0.4; charset=utf-8", self.metrics().encode()
            case "/forecast.json":
                return "application/json", msgspec.json.encode(self.forecast)
        return None

    # --- Prometheus ------------------------------------------------------------------------------

    def metrics(self) -> str:
        """All figures, as Prometheus reads them."""
        kept = self.kept
        figures: list[tuple[str, str, str, float | None]] = [
            ("up", "", "Whether Slurm has answered the last time.", not self.trouble),
            ("polls_total", "", "How often Slurm was asked.", self.polls),
            ("failures_total", "", "How often it has not answered.", self.failures),
            ("last_answer_timestamp_seconds", "", "When it answered last.", self.answered),
            ("drift_jobs", "", "Jobs that squeue tells otherwise than the twin.", self.drift),
            ("forecasts_scored", "", "Forecasts of jobs that have started.", kept.forecasts),
            ("covered_ratio", "", "Starts in their 80 % intervals.", kept.covered),
            ("covered_as_drawn_ratio", "", "The same before they are stretched.", kept.covered_as_drawn),
            *(
                ("error_median_seconds", f'{{by="{by}"}}', "Of starts that were forecast.", error)
                for by, error in (
                    ("twin", kept.median_error),
                    ("limits", kept.median_error_by_limits),
                    ("slurm", kept.median_error_by_plan),
                )
            ),
        ]
        figures += [
            ("jobs", f'{{state="{state}"}}', "Jobs that are known.", count)
            for state, count in self.counts.items()
        ]
        for each in self.tried:
            label = f'{{change="{_label(each.change)}"}}'
            figures.append(("what_if_before_seconds", label, "Mean time until a start.", each.before))
            figures.append(("what_if_after_seconds", label, "The same with a change.", each.after))
        lines, told = [], set[str]()
        for name, label, text, value in sorted(figures, key=lambda each: each[0]):
            if value is None:
                continue
            full = f"batsched_shadow_{name}"
            if name not in told:
                told.add(name)
                kind = "counter" if name.endswith("_total") else "gauge"
                lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
            lines.append(f"{full}{label} {float(value):.12g}")
        return "\n".join(lines) + "\n"

    # --- the page --------------------------------------------------------------------------------

    def _write(self) -> None:
        kept, found = self.kept, self.forecast
        answers = "yes" if not self.trouble else "no"
        shown = pages.tiles(
            [
                ("Slurm answers", answers, html.escape(self.trouble)),
                ("waiting", f"{len(found.jobs) if found else 0:,}", ""),
                ("running", f"{found.running if found else 0:,}", ""),
                ("known otherwise by squeue", f"{self.drift}", "jobs"),
                (
                    "in the 80 % interval",
                    pages.or_unknown(kept.covered, ".0%"),
                    f"{pages.or_unknown(kept.covered_as_drawn, '.0%')} as drawn; {kept.forecasts:,} starts",
                ),
                ("median error", _time(kept.median_error), f"by limits {_time(kept.median_error_by_limits)}"),
                ("Slurm's StartTime", _time(kept.median_error_by_plan), "median error"),
            ]
        )
        moment = "" if found is None else f"As of {found.now} UTC. "
        note = (
            f"{moment}Nothing here acts on the cluster. Intervals are moved and stretched by what earlier "
            "forecasts have missed."
        )
        header = f'<h1>{TITLE}</h1>\n<p class="note">{note}</p>\n<div id="tiles">{shown}</div>'
        sections = ""
        if self.tried:
            heads = ("change", "mean time until a start", "with it", "earlier", "later", "start no more")
            rows = [
                [html.escape(each.change), _time(each.before), _time(each.after)]
                + [f"{count:,}" for count in (each.earlier, each.later, each.no_more)]
                for each in self.tried
            ]
            sections += pages.section(
                "What if", "Of the jobs that wait now.", pages.table("", heads, rows), layout="wide"
            )
        if found is not None:
            rows = [[*map(html.escape, (job.id, *forecast_cells(job, found)))] for job in found.jobs]
            table = pages.table("", forecast_heads(found, "80 % interval"), rows)
            sections += pages.section("Jobs", "Those that start first come first.", table, layout="wide")
        pages.write_figures_page(self._page, TITLE, header, sections, {})


def _label(text: str) -> str:
    """A text as the value of a label.

    >>> _label('a="b"')
    'a=\\\\"b\\\\"'
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _time(seconds: float | None) -> str:
    return "?" if seconds is None else pages.time_text(seconds)


@contextmanager
def serving(board: Board, port: int) -> Iterator[None]:
    """Show a board on a port of this machine, where others cannot reach it; 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        """Answers what is asked for."""

        def do_GET(self) -> None:
            """Answer."""
            found = board.answer(self.path.partition("?")[0])
            if found is None:
                self.send_error(404)
                return
            kind, content = found
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if self.path == "/":
                self.send_header("Refresh", str(REFRESH))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on the terminal."""

    try:
        server = ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as error:
        raise InputError(f"port {port}: cannot listen on it ({error.strerror})") from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    click.echo(f"http://{LOOPBACK}:{server.server_port}/ shows the twin, /metrics its figures", err=True)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
