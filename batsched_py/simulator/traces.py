"""What happened to the machines over time, as Batsim's output files tell it."""

from __future__ import annotations

from collections.abc import Sequence

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.bill import Bill
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.machines import Machines
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import PlatformHost

MACHINE_STATES_HEADER = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n"
ENERGY_HEADER = "time,energy,event_type,wattmin,epower\n"
POWER_STATES_HEADER = "time,machine_id,new_pstate\n"

#: Two rows that are closer than this in time have no mean power between them.
LEAST_INTERVAL = 1e-6


class MachineStateTrace:
    """How many hosts are in which state, in ``machine_states.csv``."""

    def __init__(self, machines: Machines, agenda: Agenda, outputs: Outputs) -> None:
        self._machines = machines
        self._agenda = agenda
        self._write = outputs.open("machine_states", MACHINE_STATES_HEADER)

    def row(self) -> None:
        """Write down what is now. Storage hosts are not among the idle ones until they have worked."""
        count = self._machines.number_in
        self._write(
            f"{self._agenda.clock:g},{count(HostState.SLEEPING)},{count(HostState.SWITCHING_ON)},"
            f"{count(HostState.SWITCHING_OFF)},{count(HostState.IDLE) - self._machines.storages},"
            f"{count(HostState.COMPUTING)}\n"
        )


class EnergyTrace:
    """The energy at starts and ends of jobs and at changes of power states, in ``consumed_energy.csv``."""

    def __init__(self, meter: Meter, agenda: Agenda, outputs: Outputs, bill: Bill | None = None) -> None:
        self.meter = meter
        self.bill = bill
        self._agenda = agenda
        self._write = outputs.open("consumed_energy", ENERGY_HEADER)
        self._before = (0.0, 0.0)
        self._first_submission = self._last_end = -1.0

    @property
    def consumed_joules(self) -> float:
        """What was drawn from the first submission of a static job to the last end of a job.

        Batsim begins with -1 for both.
        """
        return self._last_end - self._first_submission

    def first_submission(self, _: None) -> None:
        """The first static job is submitted now."""
        self._first_submission = self.meter.total()

    def job_starts(self, hosts: HostSet) -> float:
        """A job is about to start; what its hosts have drawn before."""
        self._row("s")
        return self.meter.drawn_by(hosts)

    def job_ends(self, hosts: HostSet) -> float:
        """A job has left its hosts; what they have drawn until now."""
        self._last_end = self._row("e")
        if self.bill is not None:
            self.meter.tell_drawn()
            self.bill.job_ends()
        return self.meter.drawn_by(hosts)

    def job_resizes(self, taken: HostSet, left: HostSet) -> float:
        """A job is about to take some hosts and to leave others; what the former have drawn more so far."""
        self._row("r")
        return self.meter.drawn_by(taken) - self.meter.drawn_by(left)

    def power_states_change(self) -> None:
        """Power states are about to change, or have changed."""
        self._row("p")

    def _row(self, kind: str) -> float:
        now, joules = self._agenda.clock, self.meter.total()
        (time, before), self._before = self._before, (now, joules)
        power = f"{(joules - before) / (now - time):g}" if now - time >= LEAST_INTERVAL else "NA"
        self._write(f"{now:g},{joules:g},{kind},{self.meter.least_watts:g},{power}\n")
        return joules


class PowerStateTrace:
    """The changes of power states, in ``pstate_changes.csv``."""

    def __init__(self, hosts: Sequence[PlatformHost], agenda: Agenda, outputs: Outputs) -> None:
        self._agenda = agenda
        self._write = outputs.open("pstate_changes", POWER_STATES_HEADER)
        for pstate in sorted({host.pstate for host in hosts}):
            self.row(HostSet.of(host.id for host in hosts if host.pstate == pstate), pstate)

    def row(self, hosts: HostSet, pstate: int) -> None:
        """Hosts are in a power state now; -1 and -2 are on the way to a computing or sleeping one."""
        self._write(f"{self._agenda.clock:g},{hosts},{pstate}\n")
