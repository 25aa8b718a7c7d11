"""Going through a simulation step by step, by commands."""

from collections.abc import Callable
from types import CodeType

from batsched_py.errors import InputError
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol import events as ev
from batsched_py.watch.scenes import Scene
from batsched_py.watch.telling import host_lines, kept_back, queue_lines, running_lines, told, waits

HELP = """\
  n, or nothing    go on until the policy is asked again
  until TIME       go on until a time, in seconds, or as 90m, 5h or 2d
  job JOB          go on until something happens to a job
  when CONDITION   go on until it holds: now, queue, running, free, busy, started, ended are numbers,
                   as in `when queue > 10 and free >= 8`
  queue, running, hosts
                   show them (q, r, h)
  why JOB          why a job waits (w)
  continue         go on to the end (c)
  quit             give the simulation up (x)
  help             this (?)"""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: Whether to stop at a scene.
Stop = Callable[[Scene], bool]


class Stepper:
    """Watches a simulation; stops where it is told to, shows how things stand, and asks what to do.

    Where a command comes from and where a line goes are for the caller to say: a terminal, or a test.
    """

    def __init__(self, ask: Callable[[], str], say: Callable[[str], None], first: str = "") -> None:
        self._ask = ask
        self._say = say
        self._stop: Stop = _always
        if first:
            self._command(first, None)

    def __call__(self, scene: Scene) -> None:
        """A scene of the simulation."""
        if not self._stop(scene):
            return
        for line in told(scene):
            self._say(line)
        self._stop = _always
        while not self._command(self._ask(), scene):
            pass

    def _command(self, line: str, scene: Scene | None) -> bool:
        """Do what a command says; whether the simulation is to go on then."""
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        try:
            match word:
                case "" | "n" | "next":
                    return True
                case "until" | "u":
                    time = _time(rest)
                    self._stop = lambda scene: scene.now >= time
                    return True
                case "job" | "j":
                    self._stop = _about(_needed(rest, "job JOB"))
                    return True
                case "when":
                    self._stop = _when(_needed(rest, "when CONDITION"))
                    return True
                case "continue" | "c":
                    self._stop = lambda scene: False
                    return True
                case "quit" | "x":
                    raise KeyboardInterrupt("stopped by `quit`")
                case "help" | "?" | "h?":
                    self._say(HELP)
                case _ if scene is not None:
                    self._show(word, rest, scene)
                case _:
                    raise InputError(f"{line!r}: begin with until TIME, job JOB or when CONDITION")
        except InputError as error:
            if scene is None:
                raise
            self._say(f"  {error}")
        return False

    def _show(self, word: str, rest: str, scene: Scene) -> None:
        lists = {"queue": queue_lines, "running": running_lines, "hosts": host_lines}
        for name, lines in lists.items():
            if word in (name, name[0]):
                for line in lines(scene.ledger, scene.now):
                    self._say(line)
                return
        if word not in ("why", "w"):
            raise InputError(f"there is no command {word!r}; `help` shows which there are")
        self._say(f"      {_why(_needed(rest, 'why JOB'), scene)}")


def _why(name: str, scene: Scene) -> str:
    """Why a job waits, or that it does not."""
    ledger = scene.ledger
    for place, job in enumerate(ledger.queue, 1):
        if name in (job.id, job.name):
            return f"{waits(job, ledger, scene.now)}; it is number {place} in the queue"
    for job, why in kept_back(ledger):
        if name in (job.id, job.name):
            return f"{job.id} {why}"
    for running in ledger.running:
        if name in (running.job.id, running.job.name):
            return f"{running.job.id} runs since {running.start:.10g} on {running.hosts}"
    return f"job {name} neither waits nor runs now"


def _always(scene: Scene) -> bool:
    return True


def _about(name: str) -> Stop:
    """Whether a job is submitted, started, rejected, killed or ends."""

    def is_it(job_id: str) -> bool:
        return name in (job_id, job_id.partition("!")[2])

    def concerned(thing: object) -> bool:
        if isinstance(thing, ev.KillJobs | ev.JobsKilled):
            return any(map(is_it, thing.job_ids))
        job = getattr(thing, "job", None)
        return is_it(getattr(thing, "job_id", "") if job is None else job.id)

    return lambda scene: any(map(concerned, (*scene.happened, *scene.decided)))


def _when(condition: str) -> Stop:
    try:
        code: CodeType = compile(condition, "<condition>", "eval")
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{condition!r} is no condition: {error}") from None
    unknown = set(code.co_names) - set(_NUMBERS)
    if unknown:
        raise InputError(f"{condition!r}: there is no {min(unknown)!r}; there are {', '.join(_NUMBERS)}")

    def holds(scene: Scene) -> bool:
        numbers = {name: number(scene) for name, number in _NUMBERS.items() if name in code.co_names}
        try:
            return bool(eval(code, {"__builtins__": {}}, numbers))
        except Exception as error:
            raise InputError(f"{condition!r} is no condition: {error}") from None

    return holds


_NUMBERS: dict[str, Callable[[Scene], float]] = {
    "now": lambda scene: scene.now,
    "queue": lambda scene: len(scene.ledger.queue),
    "running": lambda scene: len(scene.ledger.running),
    "free": lambda scene: scene.ledger.free.count,
    "busy": lambda scene: len(scene.ledger.busy()),
    "started": lambda scene: sum(isinstance(each, RunningJob | ev.ExecuteJob) for each in scene.decided),
    "ended": lambda scene: sum(isinstance(each, ev.JobCompleted) for each in scene.happened),
}


def _time(text: str) -> float:
    """A time in seconds.

    >>> _time("90m"), _time("12.5")
    (5400.0, 12.5)
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        return float(number) * _UNITS[unit]
    except ValueError:
        raise InputError(f"{text!r} is no time; write seconds, or 90m, 5h, 2d") from None


def _needed(text: str, usage: str) -> str:
    if not text:
        raise InputError(f"say more: {usage}")
    return text
