"""What a live Slurm tells when it is asked. Nothing that is run here changes anything in it."""

import os
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.protocol.hosts import expand
from batsched_py.slurm.forecast.scontrol import job_id, moment_of, read_scontrol, records
from batsched_py.slurm.jobs import task_names
from batsched_py.slurm.policy.settings import Configuration, NodeSettings
from batsched_py.slurm.reading import Findings
from batsched_py.slurm.sbatch import Submission
from batsched_py.workload.sources import read_log

#: The commands that are run, all of them: each only reads.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "jobs": ("scontrol", "show", "job"),
    "nodes": ("scontrol", "-o", "show", "node"),
    "reservations": ("scontrol", "-o", "show", "reservation"),
    "queue": ("squeue", "-h", "-a", "-r", "-o", "%i|%T"),
    "loops": ("sdiag",),
    "ended": ("sacct", "-P", "-n", "-X", "-o", "JobID,State,Start", "-j"),
    "log": (
        *("sacct", "-P", "-a", "-D", "-X", "-S", "now-30days", "--delimiter=\x1f", "-o"),
        "JobID,JobName,User,Account,QOS,Partition,Submit,Eligible,Start,End,State,ElapsedRaw,Timelimit,ReqCPUS,"
        "AllocCPUS,ReqNodes,NNodes,NodeList,ReqMem,ReqTRES,AllocTRES,Constraints,Reservation,SubmitLine",
    ),
}

#: An answer takes no longer than this, in seconds.
PATIENCE = 60.0

#: In words that `scontrol show node` tells of the state of a node that nothing starts on.
AWAY = ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "POWERED_DOWN", "UNKNOWN", "FUTURE", "MAINT")

_NOW = re.compile(r"sdiag output at .*\(([0-9]+)\)")
_NODE = re.compile(r"NodeName=(\S+).*? State=(\S+)")


class Silent(Exception):
    """Slurm does not answer, or not so that it can be read."""


class Poll(Struct, kw_only=True):
    """What was told at a moment."""

    now: float
    """By the clock of the controller, in Unix time."""
    jobs: list[Submission]
    """Those that wait or run."""
    states: dict[str, str]
    """Of all jobs that the controller lists, each task of an array by itself."""
    started: dict[str, float]
    """When those started that have."""
    down: list[str]
    """Nodes on which nothing starts."""
    reservations: str
    queue: dict[str, str]
    """The same jobs as `squeue` lists them a moment later."""


class Asking:
    """Asks a live Slurm."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # dates are in UTC, whatever zone the cluster is in
        self._environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"}

    def ask(self, what: str, *more: str) -> str:
        """What a command prints."""
        command = [*COMMANDS[what], *more]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=PATIENCE, env=self._environment, check=False
            )
        except FileNotFoundError:
            raise Silent(f"{command[0]}: there is no such command") from None
        except subprocess.TimeoutExpired:
            raise Silent(f"{command[0]} did not answer within {PATIENCE:.0f} s") from None
        if done.returncode:
            told = (done.stderr.strip() or done.stdout.strip() or "failed").splitlines()[-1]
            raise Silent(f"{command[0]}: {told}")
        return done.stdout

    def poll(self) -> Poll:
        """What is told now."""
        now = _NOW.search(self.ask("loops"))
        if now is None:
            raise Silent("sdiag does not tell when it was printed")
        text, queue = self.ask("jobs"), self.ask("queue")
        nodes, reservations = self.ask("nodes"), self.ask("reservations")
        findings = Findings()
        path = self._folder / "jobs.txt"
        path.write_text(text)
        live = read_scontrol(path, text, "UTC", findings)
        states, started = dict[str, str](), dict[str, float]()
        for _, fields in records(path, text, findings):
            moment = moment_of(fields, "StartTime", "UTC")
            for name in tasks_of(job_id(fields)):
                states[name] = fields["JobState"]
                if moment is not None and fields["JobState"] != "PENDING":
                    started[name] = moment
        if findings.mistakes:
            raise Silent(str(findings.mistakes[0]))
        rows = (line.partition("|") for line in queue.splitlines())
        return Poll(
            now=float(now[1]),
            jobs=live.jobs,
            states=states,
            started=started,
            down=[name for name, state in _NODE.findall(nodes) if any(word in state for word in AWAY)],
            reservations="" if reservations.startswith("No reservations") else reservations,
            queue={name.strip(): state.strip() for name, _, state in rows},
        )

    def ended(self, names: Collection[str]) -> dict[str, tuple[str, float | None]]:
        """The states and starts of jobs that the controller has forgotten, as far as `sacct` knows them."""
        found: dict[str, tuple[str, float | None]] = {}
        for line in self.ask("ended", ",".join(names)).splitlines() if names else ():
            name, state, start = line.split("|")[:3]
            told = {} if start in ("Unknown", "None") else {"Start": start}
            found[name] = state.split()[0], moment_of(told, "Start", "UTC")
        return found

    def log(self) -> Path:
        """A log of the last weeks, in a file."""
        path = self._folder / "log.sacct"
        path.write_text(self.ask("log"))
        read_log(path, "sacct", {"zone": "UTC"})
        return path


def tasks_of(name: str) -> Iterator[str]:
    """The jobs that a record stands for.

    >>> list(tasks_of("7")), list(tasks_of("7_[2,4-5%1]"))
    (['7'], ['7_2', '7_4', '7_5'])
    """
    array, bracket, tasks = name.partition("_[")
    yield from task_names(array, tasks.rstrip("]") if bracket else "")[0]


def with_down(configuration: Configuration, down: Collection[str]) -> Configuration:
    """The configuration of a cluster of which some nodes are down."""
    plain = NodeSettings("")
    told = {name: each for each in configuration.nodes for name in expand(each.nodes)}
    more = [replace(told.get(name, plain), nodes=name, state="down") for name in sorted(down)]
    return replace(configuration, nodes=(*configuration.nodes, *more))
