"""Schedulers of PyBatsim 3.2, and decision components of PyBatsim 4, run unchanged in our process.

PyBatsim's own code drives its scheduler; only its socket is replaced, by a channel that hands over our
messages in the form of Batsim's wire (Batsim 5's for PyBatsim 4). What its schedulers print and log, which is
a lot, is shown on the standard error where we log everything ourselves, and nowhere otherwise. PyBatsim is an
optional peer: nothing else needs it. The two versions cannot be installed together.
"""

import contextlib
import importlib
import inspect
import io
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from os.path import isfile
from pathlib import Path
from types import ModuleType
from typing import Any

from batsched_py.blame import culprit
from batsched_py.errors import InputError, PolicyError, ProtocolError, RuleBroken
from batsched_py.ledger.ledger import Ledger
from batsched_py.plugins import PYBATSIM, execute_file
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialect import Dialect
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.trust import check_code

_log = logging.getLogger(__name__)

_INSTALL = (
    "pip install --no-deps pybatsim==3.2.1 procset sortedcontainers docopt "
    "(--no-deps, because it asks for a pyzmq that no longer installs)"
)


class JsonChannel:
    """Stands in PyBatsim's place of a socket."""

    def __init__(self) -> None:
        self.request: dict[str, Any] = {}
        self.reply: dict[str, Any] = {}

    def recv(self, blocking: bool = False) -> dict[str, Any]:
        """What Batsim says."""
        return self.request

    def send(self, reply: dict[str, Any]) -> None:
        """What the scheduler says."""
        self.reply = reply

    def bind(self) -> None:
        """There is nothing to bind to."""

    def close(self) -> None:
        """There is nothing to close."""


class PyBatsimProcess:
    """A decision process whose decisions a ``BatsimScheduler`` of PyBatsim makes."""

    def __init__(self, name: str, options: Mapping[str, str], dialect: Dialect = BATSIM4) -> None:
        self.finished = False
        self.needs = ev.Settings()
        """What a simulator must allow; a scheduler of PyBatsim 3 has no way to say it."""
        self._name = name
        self._options = {key: _value(text) for key, text in options.items()}
        self._codec = dialect.codec()
        self._driver: Any = None
        self._ledger: Ledger | None = None

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of the simulator."""
        if self._ledger is None:
            if not request.events or not isinstance(request.events[0], ev.SimulationBegins):
                raise ProtocolError("the conversation must begin with SIMULATION_BEGINS")
            self._begin(request.events[0])
        for event in request.events:
            self.ledger.learn(event)
        self.finished = isinstance(request.events[-1], ev.SimulationEnds)
        said = self._codec.encode_request(request)
        try:
            with quietly():
                answer = self._converse(said)
        except (Exception, SystemExit) as error:
            raise PolicyError(
                f"scheduler {self._name!r} failed at time {request.now:g}: "
                f"{type(error).__name__}: {error} ({culprit(error)})"
            ) from error
        try:
            reply = self._codec.decode_reply(answer)
            self.ledger.follow(reply, request.now)
        except (ProtocolError, RuleBroken) as broken:
            what = f"broke a rule at time {request.now:g}: {broken}"
            raise PolicyError(f"scheduler {self._name!r} {what}") from None
        return reply

    @property
    def ledger(self) -> Ledger:
        """The account of the machine and its jobs, of the simulation that has begun."""
        assert self._ledger is not None
        return self._ledger

    def _begin(self, begins: ev.SimulationBegins) -> None:
        self._ledger = Ledger(begins)

    def _converse(self, request: bytes) -> bytes:
        """What the scheduler answers to a request."""
        raise NotImplementedError


class PyBatsim3Process(PyBatsimProcess):
    """One for schedulers of PyBatsim 3."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._scheduler = load_scheduler(name, self._options)
        self._channel = JsonChannel()

    def _converse(self, request: bytes) -> bytes:
        self._channel.request = json.loads(request)
        if self._driver is None:
            self._driver = self._connect()
        else:
            self._driver.do_next_event()
        return json.dumps(self._channel.reply).encode()

    def _connect(self) -> Any:
        """PyBatsim's driver, which reads the first message at once."""
        module: Any = _import("batsim.batsim")
        sockets, module.NetworkHandler = module.NetworkHandler, lambda *_, **__: self._channel
        try:
            return module.Batsim(self._scheduler, network_endpoint="", timeout=None)
        finally:
            module.NetworkHandler = sockets


def load_scheduler(name: str, options: Mapping[str, Any]) -> Any:
    """The scheduler behind ``pybatsim:path/to/file.py`` or ``pybatsim:NAME``, loaded as PyBatsim does it.

    A file ``mySched.py`` is expected to define the class ``MySched``.
    """
    _import("batsim.batsim")
    place = name.removeprefix(PYBATSIM)
    if place.endswith(".py") and not isfile(place):
        raise InputError(f"scheduler {name!r}: there is no file {place}")
    if not place.isidentifier():
        check_code(place)
    complaint = io.StringIO()
    try:
        with quietly(), contextlib.redirect_stdout(complaint):
            return _import("batsim.tools.launcher").instanciate_scheduler(place, options=dict(options))
    except SystemExit:
        raise InputError(f"scheduler {name!r}: {' '.join(complaint.getvalue().split())}") from None
    except Exception as error:
        raise _unloadable(name, error) from error


def _unloadable(name: str, error: Exception) -> InputError:
    return InputError(f"scheduler {name!r} cannot be loaded: {type(error).__name__}: {error}")


def pybatsim_version() -> str:
    """Which PyBatsim is installed."""
    from importlib import metadata

    try:
        return metadata.version("pybatsim")
    except metadata.PackageNotFoundError as error:
        raise _missing(error) from None


class Nowhere(io.StringIO):
    """Forgets what is written to it."""

    def write(self, text: str) -> int:
        """Accept anything."""
        return len(text)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep what schedulers print and log from the standard output."""
    if _log.isEnabledFor(logging.DEBUG):
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        with contextlib.redirect_stdout(Nowhere()):
            yield
    finally:
        logging.disable(before)


def _import(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(error) from None


def _missing(error: ImportError) -> InputError:
    return InputError(f"schedulers of PyBatsim need PyBatsim ({error}): {_INSTALL}")


def _value(text: str) -> Any:
    """An option: a JSON value where it is one, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class TextChannel:
    """Stands in PyBatsim's place of a socket."""

    def __init__(self) -> None:
        self.request = b""
        self.reply = b""

    def recv(self) -> bytes:
        """What Batsim says, in bytes."""
        return self.request

    def recv_string(self) -> str:
        """What Batsim says."""
        return self.request.decode()

    def send(self, reply: bytes) -> None:
        """What the component says, in bytes."""
        self.reply = reply

    def send_json(self, reply: dict[str, Any]) -> None:
        """What the component says."""
        self.reply = json.dumps(reply).encode()


class PyBatsim4Process(PyBatsimProcess):
    """A decision process whose decisions a component of PyBatsim 4 makes."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options, BATSIM5)
        self._channel = TextChannel()
        with quietly():
            asked = self._codec.open(self._greet)
        assert asked is not None
        self.needs = asked

    def _greet(self, said: bytes) -> bytes:
        """What the component answers to the opening words."""
        module = importlib.import_module("pybatsim.batsim")
        self._driver = module.Batsim(endpoint="")
        self._driver._zmq_socket = self._channel
        self._channel.request = said
        self._driver._recv_init_msg()
        try:
            self._component = _load(self._name)(self._driver, self._options)
            self._driver.register_edc(self._component)
        except InputError:
            raise
        except Exception as error:
            raise _unloadable(self._name, error) from error
        return self._channel.reply

    def _converse(self, request: bytes) -> bytes:
        self._channel.request = request
        self._driver.recv_msg()
        self._driver.dispatch_msg()
        self._driver.send_msg()
        if self.finished:
            self._component.finalize()
        return self._channel.reply

    def _begin(self, begins: ev.SimulationBegins) -> None:
        super()._begin(begins)
        self._driver.simulation_metadata.edc_init_str = begins.settings.scheduler_config


def _load(name: str) -> Any:
    """The class behind ``pybatsim:NAME``, or the only one in ``pybatsim:path/to/file.py``."""
    place = name.removeprefix(PYBATSIM)
    if not place.endswith(".py"):
        known = dict(importlib.import_module("pybatsim.plugin").find_plugin_edcs())
        if place not in known:
            raise InputError(f"scheduler {name!r}: No such scheduler; PyBatsim 4 knows {', '.join(known)}")
        return known[place]
    if not isfile(place):
        raise InputError(f"scheduler {name!r}: there is no file {place}")
    module = execute_file(Path(place))
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__ and hasattr(value, "handle_msg")
    ]
    if len(classes) != 1:
        names = ", ".join(each.__name__ for each in classes) or "none"
        raise InputError(f"scheduler {name!r}: expected one decision component in the file, found {names}")
    return classes[0]
