"""Running a simulation with a Batsim in a process of its own, and our decision process in another.

Batsim exits with 0 after some errors and after a deadlock, and waits for ever for a scheduler that died. So
what counts is which side ended first, whether the end of the simulation was announced, and whether the files
hold every job; exit codes are only a hint.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

import batsched_py
from batsched_py.errors import BatschedError, InputError
from batsched_py.experiment import Experiment, Machine, Scenario, Workloads
from batsched_py.experiment.build import check_sizes, check_withdrawals, read_machine
from batsched_py.experiment.run import options_of, serve_options
from batsched_py.experiment.value import Failures
from batsched_py.output_files import write_file
from batsched_py.protocol.dialect import Dialect
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.protocol.sizes import refuse_in_messages
from batsched_py.simulator.agenda import as_generic_events, read_events
from batsched_py.simulator.machine_files import reader_of
from batsched_py.simulator.outputs import quoted
from batsched_py.simulator.simgrid_xml import simgrid_lines
from batsched_py.workload.batsim_json import write_batsim_json
from batsched_py.workload.model import Workload


def options_of_batsim5(scenario: Scenario, endpoint: str, prefix: Path, folder: Path) -> list[str]:
    """The options of Batsim 5 for a scenario, whose external events are written to files that it reads.

    What is enabled is not among them: the decision process asks for that.
    """
    settings, machine = scenario.settings, scenario.machine
    if settings.compute_sharing or not settings.storage_sharing:
        raise InputError("a Batsim 5 does not say who may share hosts; leave out what a plan says about that")
    options = ["--edc-socket-str", endpoint, settings.scheduler_config, "-e", f"{prefix}_", "-q"]
    for file in scenario.workloads.files:
        options += ["-w", file]
    assert machine.file is not None
    options += ["-p", machine.file]
    if machine.master_host != Machine().master_host:
        options += ["-m", machine.master_host]
    if machine.mmax:
        options += ["--mmax", str(machine.mmax)]
    for role in machine.roles:
        hosts, _, name = role.rpartition(":")
        for host in hosts.split(","):
            options += ["-r", host, name]
    for number, file in enumerate(scenario.events):
        path = folder / f"events{number}.txt"
        path.write_text(as_generic_events(read_events(file, forward_unknown=True)), encoding="utf-8")
        options += ["--external-events", str(path)]
    if scenario.energy:
        options += ["--energy-host", "--trace-pstate-changes"]
    return options + ["--trace-machine-state"] * scenario.traces_machine_states


def fill_in_notes(jobs_csv: Path, notes_csv: Path) -> None:
    """Write the notes of a decision process into the column ``metadata`` of a ``jobs.csv``."""
    with notes_csv.open(newline="", encoding="utf-8") as file:
        notes = {row["job_id"]: row["metadata"] for row in csv.DictReader(file)}
    with jobs_csv.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    number, workload, metadata = map(header.index, ("job_id", "workload_name", "metadata"))
    lines = [",".join(header)]
    for row in rows:
        cells = list(map(quoted, row))
        cells[metadata] = f'"{notes.get(f"{row[workload]}!{row[number]}", row[metadata])}"'
        lines.append(",".join(cells))
    write_file(jobs_csv, "\n".join(lines) + "\n")


#: A simulation may take so long unless told otherwise, in seconds.
TIME_LIMIT = 3600.0

_PAUSE = 0.01
_GRACE = 10.0

#: How long a simulator may take to tell its version, in seconds.
_VERSION_LIMIT = 60.0


class SimulatorFailed(BatschedError):
    """A simulation did not end as it should."""


class Simulator(Struct, frozen=True):
    """A Batsim that is installed."""

    command: str
    version: str

    def __str__(self) -> str:
        return f"{self.command} {self.version}"

    @property
    def is_batsim5(self) -> bool:
        """Whether it speaks the protocol of Batsim 5: by its version, or the built-in one by its options."""
        return bool(re.match(r"v?5\.", self.version) or re.search(r"--protocol[ =]5\b", self.command))


@lru_cache(maxsize=8)
def find_simulator(command: str) -> Simulator:
    """The Batsim that a command starts, such as ``batsim`` or ``/opt/batsim/bin/batsim --sg-cfg=...``."""
    arguments = shlex.split(command)
    if not arguments or shutil.which(arguments[0]) is None:
        raise InputError(f"there is no command {command!r}; install Batsim, or say how it is started")
    try:
        told = subprocess.run(
            [*arguments, "--version"], capture_output=True, text=True, timeout=_VERSION_LIMIT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{command!r} does not tell its version: {error}") from None
    if not told.stdout.strip():
        raise InputError(f"{command!r} does not tell its version, so it is hardly a Batsim")
    return Simulator(command, told.stdout.strip().splitlines()[0])


def run_batsim(
    simulator: Simulator,
    experiment: Experiment,
    workloads: Sequence[Workload],
    prefix: Path,
    time_limit: float | None,
) -> None:
    """Simulate; afterwards Batsim's files are there under ``prefix``, with every job in them."""
    limit = TIME_LIMIT if time_limit is None else time_limit
    with TemporaryDirectory(prefix="batsim-") as name:
        inputs = Path(name)
        endpoint = f"ipc://{inputs}/socket"
        notes = inputs / "notes.csv"
        serve = [sys.executable, "-m", batsched_py.__name__, "serve", "--endpoint", endpoint]
        if simulator.is_batsim5:
            scenario = _for_batsim(experiment, workloads, inputs, BATSIM5)
            options = options_of_batsim5(scenario, endpoint, prefix, inputs)
            serve += ["--notes", str(notes)]
        else:
            scenario = _for_batsim(experiment, workloads, inputs, BATSIM4)
            trace = [] if scenario.schedule_trace else ["--disable-schedule-tracing"]
            told = options_of(replace(scenario, schedule_trace=None))
            options = ["-s", endpoint, "-e", str(prefix), *told, "-q", *trace]
        simulate = [*shlex.split(simulator.command), *options]
        with (
            _Process("the decision process", [*serve, *serve_options(experiment)], inputs) as server,
            _Process("Batsim", simulate, inputs) as batsim,
        ):
            _wait(server, batsim, limit)
        summary = "schedule.json" if simulator.is_batsim5 else "schedule.csv"
        _check(prefix, summary, sum(len(workload.jobs) for workload in workloads))
        if simulator.is_batsim5:
            fill_in_notes(Path(f"{prefix}_jobs.csv"), notes)


def _for_batsim(
    experiment: Experiment, workloads: Sequence[Workload], folder: Path, dialect: Dialect
) -> Scenario:
    """What is to be simulated, in files that a Batsim reads; those that are missing are written."""
    scenario = experiment.simulated
    if scenario.ignore_communication:
        raise InputError("a Batsim simulates communication; leave out ignore_communication for it")
    if scenario.links:
        raise InputError("what links carry is recorded by the built-in simulator only; leave out links")
    if scenario.launch_time or scenario.cleaning_time:
        raise InputError(
            "a Batsim starts and cleans jobs in no time; leave out launch_time and cleaning_time for it"
        )
    if scenario.machine.bandwidth is not None:
        raise InputError(
            "a Batsim needs a platform file with its network; leave out bandwidth, or give a file"
        )
    if scenario.failing != Failures():
        raise InputError("a Batsim is told of failures by event files; give events instead of failures")
    static = workloads if scenario.workloads.files else ()
    check_withdrawals(static)
    for workload in workloads:
        refuse_in_messages(workload.jobs)
    for workload in static:
        write_batsim_json(folder / f"{workload.name}.json", workload, dialect)
    return replace(
        scenario,
        workloads=Workloads(files=tuple(str(folder / f"{workload.name}.json") for workload in static)),
        machine=_machine_for_batsim(scenario.machine, workloads, folder),
        machine_states=None if scenario.traces_machine_states else False,
    )


def _machine_for_batsim(machine: Machine, workloads: Sequence[Workload], folder: Path) -> Machine:
    platform = read_machine(machine, workloads)
    hosts = platform.hosts
    check_sizes(workloads, platform, machine.reject_larger)
    machine = replace(machine, reject_larger=False)
    file = folder / "platform.xml"
    if machine.file is None:
        file.write_text(_equal_hosts(len(hosts), hosts[0].speed))
    elif reader_of(machine.file) is not None:
        file.write_text("".join(f"{line}\n" for line in simgrid_lines(platform)))
    else:
        return replace(machine, mmax=len(hosts), mmax_workload=False) if machine.mmax_workload else machine
    return Machine(file=str(file))


def _equal_hosts(count: int, speed: float) -> str:
    """A SimGrid platform of equal hosts behind a network without latency."""
    width = len(str(count - 1))
    names = ["master_host", *(f"host{number:0{width}}" for number in range(count))]
    hosts = "".join(f'    <host id="{name}" coordinates="0 0 0" speed="{speed!r}f"/>\n' for name in names)
    return (
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1">\n'
        f'  <zone id="main" routing="Vivaldi">\n{hosts}  </zone>\n'
        "</platform>\n"
    )


class _Process:
    """One of the two processes, as a context; at its end all that it started is killed."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self._command = command
        self._log = folder / f"{name.replace(' ', '-')}.log"

    def __enter__(self) -> _Process:
        package = str(Path(batsched_py.__file__).parents[1])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def code(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.poll()

    def last_line(self) -> str:
        """The last line of its output."""
        lines = self._log.read_text(errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        return said.removeprefix("batsched-py: ").removeprefix("error: ")


def _wait(server: _Process, batsim: _Process, limit: float) -> None:
    """Wait until both have ended well; raise as soon as it is clear that they will not."""
    end = time.monotonic() + limit
    while batsim.code is None:
        if server.code:
            raise SimulatorFailed(f"{server.name} failed: {server.last_line()}")
        if time.monotonic() > end:
            raise SimulatorFailed(f"not finished after {limit:g} s, the time limit")
        time.sleep(_PAUSE)
    end = time.monotonic() + _GRACE
    while server.code is None and time.monotonic() < end:
        time.sleep(_PAUSE)
    if server.code:
        raise SimulatorFailed(f"{server.name} failed: {server.last_line()}")
    if server.code is None:
        raise SimulatorFailed(
            f"{batsim.name} ended with exit code {batsim.code} before the simulation did, "
            f"by an error or a deadlock: {batsim.last_line()}"
        )


def _check(prefix: Path, summary: str, nb_jobs: int) -> None:
    for name in ("jobs.csv", summary):
        if not Path(f"{prefix}_{name}").is_file():
            raise SimulatorFailed(f"Batsim has not written its {name}")
    with Path(f"{prefix}_jobs.csv").open("rb") as file:
        rows = sum(1 for _ in file) - 1
    if rows < nb_jobs:
        raise SimulatorFailed(f"Batsim's jobs.csv has {rows} jobs, the workload {nb_jobs}")
