"""What the page asks of Python: one simulation, its summary and its jobs."""

import json
import logging
import re
from pathlib import Path

import batsched_py as bp

#: What a summary says of files and of time, which mean nothing in a browser.
_OF_THE_COMPUTER = {"files", "", "took", "  engine"}


class Remarks(logging.Handler):
    """Keeps what a simulation warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.texts.append(record.getMessage())


def simulate(asked: str) -> str:
    """Simulate what a JSON object asks for; the answer is one, too, with an error if there was one.

    It names the log, a file here; the scheduler, by its name or as code; and the hosts, null for as many as
    the log says that its machine had.
    """
    request = json.loads(asked)
    remarks = Remarks()
    logging.getLogger("batsched_py").addHandler(remarks)
    try:
        hosts = {} if request["hosts"] is None else {"hosts": request["hosts"]}
        result = bp.simulate(request["log"], _scheduler(request), export="out", progress=False, **hosts)
    except bp.BatschedError as error:
        return json.dumps({"error": str(error), "remarks": remarks.texts})
    finally:
        logging.getLogger("batsched_py").removeHandler(remarks)
    rows = [row for row in result.overview.rows() if row[0] not in _OF_THE_COMPUTER]
    return json.dumps({"rows": rows, "jobs": Path("out_jobs.csv").read_text(), "remarks": remarks.texts})


def _scheduler(request: dict[str, str]) -> str:
    """The name of a scheduler, or of the last class in code, which is written to a file."""
    if "code" not in request:
        return request["scheduler"]
    classes = re.findall(r"^class (\w+)", request["code"], re.MULTILINE)
    if not classes:
        raise bp.BatschedError(
            "the code has no class; a scheduler is a class with a method schedule(self, cluster)"
        )
    Path("policy.py").write_text(request["code"])
    return f"policy.py:{classes[-1]}"
