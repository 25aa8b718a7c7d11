"""Decision components of PyBatsim 4, run unchanged in our process.

PyBatsim's own code drives its component; only its socket is replaced, by a channel that hands over our
messages in the form of Batsim 5's wire. PyBatsim 4 is an optional peer, like PyBatsim 3 in
:mod:`~batsched_py.decision.pybatsim`; they cannot be installed together.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Mapping
from os.path import isfile
from pathlib import Path
from typing import Any

from batsched_py.decision.pybatsim import PyBatsimProcess, quietly
from batsched_py.errors import InputError
from batsched_py.plugins import PYBATSIM, execute_file
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM5


class Channel:
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
        self._channel = Channel()
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
            raise self._unloadable(error) from error
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
