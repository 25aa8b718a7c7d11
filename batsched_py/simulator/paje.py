"""The schedule as a Paje trace, which ViTE and other viewers draw: ``PREFIX_schedule.trace`` of Batsim 4.

Each host is a container with a state: it waits, or it computes a job, for which a value and a colour are
defined when it first starts. A job that is killed, or reaches its walltime, is an event of each of its hosts.
"""

from collections.abc import Callable, Iterable, Sequence
from colorsys import hsv_to_rgb
from typing import Final

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import JobState

#: The kinds of lines, in the order of their numbers from 1 on, with the fields of each. The spaces at the
#: ends of lines are Batsim's.
_KINDS: Final = {
    "DefineContainerType": ("Type string", "Alias string", "Name string"),
    "CreateContainer": (
        "Time date ",
        "Type string  ",
        "Alias string ",
        "Name string   ",
        "Container string  ",
    ),
    "DestroyContainer": ("Time date", "Name string ", "Type string"),
    "DefineStateType": ("Alias string ", "Type string ", "Name string "),
    "DefineEntityValue": ("Alias string  ", "Type string  ", "Name string  ", "Color color "),
    "SetState": ("Time date  ", "Type string  ", "Container string  ", "Value string  "),
    "DefineEventType": ("Type string", "Alias string", "Name string"),
    "NewEvent": ("Time date", "Type string", "Container string", "Value string"),
    "DefineVariableType": ("Type string", "Alias string", "Name string", "Color string"),
    "SetVariable": ("Time date", "Type string", "Container string", "Value double"),
}

#: The states of hosts that have no job of their own.
_WAITING: Final = "w"
_LAUNCHING: Final = "l"

_NO_HOSTS: Final = HostSet()

#: What a computation returns that was killed.
CANCELLED: Final = -2

#: How many colours jobs have. Batsim shuffles them anew in each run; here neighbours are always as far apart.
_COLOURS: Final = 64
_STEP: Final = 27


def colours() -> list[str]:
    """The colours of jobs, in the order in which jobs get them.

    >>> colours()[0], len(set(colours()))
    ('"1.000000 0.000000 0.000000"', 64)
    """
    hues = [_STEP * place % _COLOURS / _COLOURS for place in range(_COLOURS)]
    return ['"{:f} {:f} {:f}"'.format(*hsv_to_rgb(hue, 1, 1)) for hue in hues]


def shows_kill(state: JobState, return_code: int) -> bool:
    """Whether a trace shows that a job was ended; Batsim leaves out those that were killed asleep."""
    return state is JobState.WALLTIME_REACHED or (state is JobState.KILLED and return_code == CANCELLED)


class PajeTrace:
    """Writes a trace line by line, as things happen."""

    def __init__(self, names: Sequence[str], new_file: Callable[[str], Callable[[str], object]]) -> None:
        """``names`` are those of all hosts; ``new_file`` begins the file, and gives what writes to it."""
        self._hosts = len(names)
        self._write = new_file("".join(f"{line}\n" for line in _beginning(names)))
        self._colours = colours()
        self._jobs: set[str] = set()
        self._on: dict[int, list[str]] = {}
        """The jobs of each host that has some; the first one is shown."""

    def job_launches(self, hosts: HostSet, time: float) -> None:
        """A job is being started on hosts, which takes time."""
        self._set_states(time, ((host, _LAUNCHING) for host in hosts if host not in self._on))

    def job_begins(self, job_id: str, hosts: HostSet, time: float) -> None:
        """A job begins on hosts."""
        if job_id not in self._jobs:
            colour = self._colours[len(self._jobs) % _COLOURS]
            self._jobs.add(job_id)
            self._write(f'5 j{job_id} machine_state "{job_id}" {colour}\n')
        for host in hosts:
            self._on.setdefault(host, []).append(job_id)
        first = (host for host in hosts if len(self._on[host]) == 1)
        self._set_states(time, ((host, f"j{job_id}") for host in first))

    def job_ends(
        self, job_id: str, hosts: HostSet, time: float, is_killed: bool, away: HostSet = _NO_HOSTS
    ) -> None:
        """A job leaves its hosts; those that are ``away`` do not wait for the next one."""
        if is_killed:
            self._write(f'8 {time:f} kk k "{job_id}"\n')
            self._write("".join(f'8 {time:f} km m{host} "{job_id}"\n' for host in hosts))
        states = []
        for host in hosts:
            jobs = self._on[host]
            was_shown = jobs[0] == job_id
            jobs.remove(job_id)
            if not jobs:
                del self._on[host]
                if host not in away:
                    states.append((host, _WAITING))
            elif was_shown:
                states.append((host, f"j{jobs[0]}"))
        self._set_states(time, states)

    def complete(self, time: float) -> None:
        """All is over."""
        lines = ["", "# End of events, containers destruction"]
        lines += [f"3 {time:f} m{host} machine_ct" for host in range(self._hosts)]
        lines += [f"3 {time:f} root root_ct"]
        self._write("".join(f"{line}\n" for line in lines))

    def _set_states(self, time: float, states: Iterable[tuple[int, str]]) -> None:
        self._write("".join(f"6 {time:f} machine_state m{host} {state}\n" for host, state in states))


def _beginning(names: Sequence[str]) -> list[str]:
    """The lines before anything happens."""
    lines = []
    for number, (kind, fields) in enumerate(_KINDS.items(), 1):
        lines += [f"%EventDef Paje{kind} {number}", *(f"% {field}" for field in fields)]
        lines += ["%EndEventDef " if kind == "SetState" else "%EndEventDef", ""]
    lines += [
        "# Container types creation",
        '1 0 root_ct "Machines"',
        '1 root_ct machine_ct "Machine"',
        '1 0 scheduler_ct "Scheduler"',
        '1 scheduler_ct killer_ct "Killer"',
        "",
        "# Event types creation",
        '7 killer_ct kk "Job kill"',
        '7 machine_ct km "Job kill"',
        "",
        "# Variable types creation",
        '9 scheduler_ct vu_vt "Utilization" "0.0 0.5 0.0"',
        "",
        "# Containers creation",
        '2 0.000000 root_ct root "Machines" 0',
    ]
    lines += [f'2 0.000000 machine_ct m{host} "{name}" root' for host, name in enumerate(names)]
    lines += [
        '2 0.000000 scheduler_ct sc "Scheduler" 0',
        '2 0.000000 killer_ct k "Killer" sc',
        "",
        "# States creation",
        '4 machine_state machine_ct "Machine state"',
        "",
        "# Creation of the different values the machine state can be",
        f'5 {_WAITING} machine_state "Waiting" "0.0 0.0 0.0"',
        f'5 {_LAUNCHING} machine_state "Launching" "0.3 0.3 0.3"',
        "",
        "# Begin of events",
    ]
    return [*lines, *(f"6 0.000000 machine_state m{host} {_WAITING}" for host in range(len(names)))]
