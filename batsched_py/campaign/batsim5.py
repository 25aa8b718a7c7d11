"""What a Batsim 5 takes and gives: its options, its files of external events, notes on jobs."""

from __future__ import annotations

import csv
from pathlib import Path

from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.experiment import Machine, Scenario
from batsched_py.simulator.agenda import as_generic_events, read_events
from batsched_py.simulator.outputs import quoted


def options_of_batsim5(scenario: Scenario, endpoint: str, prefix: Path) -> list[str]:
    """The options of Batsim 5 for a scenario.

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
    for file in scenario.events:
        options += ["--external-events", file]
    if scenario.energy:
        options += ["--energy-host", "--trace-pstate-changes"]
    return options + ["--trace-machine-state"] * scenario.traces_machine_states


def with_generic_events(scenario: Scenario, folder: Path) -> Scenario:
    """The scenario with its external events in files that a Batsim 5 reads."""
    files = []
    for number, file in enumerate(scenario.events):
        path = folder / f"events{number}.txt"
        path.write_text(as_generic_events(read_events(file, forward_unknown=True)), encoding="utf-8")
        files.append(str(path))
    return replace(scenario, events=tuple(files))


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
    jobs_csv.write_text("\n".join(lines) + "\n", encoding="utf-8")
