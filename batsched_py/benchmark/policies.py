"""The policies that are compared: schedulers, classes in files, those of PyBatsim, programs."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from batsched_py.benchmark.tasks import Task
from batsched_py.campaign.files import digest_of_code, digest_of_file, digest_of_value
from batsched_py.decision.pybatsim import pybatsim_version
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Scenario
from batsched_py.plugins import PYBATSIM
from batsched_py.schedulers import SCHEDULERS
from batsched_py.testing.programs import PORT, SOCKET
from batsched_py.trust import check_code

#: The word that stands for the Python of this process, so that a command is the same on every machine.
PYTHON = "python"


class Policy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who decides: a scheduler, or a program that is asked over ZeroMQ."""

    name: str
    """What tables call it."""
    scheduler: Choice | None = None
    command: tuple[str, ...] = ()

    @classmethod
    def parse(cls, words: Sequence[str], options: Mapping[str, str], name: str = "") -> Policy:
        """What a command line says: the name of a scheduler, or a command with the place of the address.

        >>> Policy.parse(["easy"], {"order": "wfp3"}).name
        'easy order=wfp3'
        """
        if any(SOCKET in word or PORT in word for word in words):
            if options:
                raise InputError("a program takes its options in its own command; leave out -o")
            program = words[1] if words[0] == PYTHON and len(words) > 1 else words[0]
            return cls(name=name or Path(program).name, command=tuple(words))
        if len(words) != 1:
            raise InputError(
                "give one policy, or the command of a program with {socket} where the address goes"
            )
        usual = " ".join([words[0], *(f"{key}={value}" for key, value in options.items())])
        return cls(name=name or usual, scheduler=Choice(words[0], dict(options)))

    def __post_init__(self) -> None:
        if (self.scheduler is None) == (not self.command):
            raise ValueError("either a scheduler or a command")

    @property
    def file_name(self) -> str:
        """Where its result is kept unless somebody says it.

        >>> Policy.parse(["easy"], {"order": "wfp3"}).file_name
        'easy-order-wfp3.benchmark.json'
        """
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.") + ".benchmark.json"

    @property
    def is_foreign(self) -> bool:
        """Whether it is of PyBatsim or a program: it knows hosts only, and its users cannot react."""
        return self.scheduler is None or self.scheduler.name.startswith(PYBATSIM)

    def applies(self, task: Task) -> bool:
        """Whether it can do a task."""
        return not self.is_foreign or (task.users, task.machine) == ("rigid", "plain")

    def check(self) -> None:
        """Refuse in one line what cannot be found, or may not be executed."""
        if self.scheduler is None:
            check_code(shlex.join(self.command))
        elif not self.is_foreign:
            SCHEDULERS.create(self.scheduler.name, self.scheduler.options)

    @property
    def words(self) -> list[str]:
        """The command, with the Python of this process where that is meant."""
        first, *others = self.command
        return [sys.executable if first == PYTHON else first, *others]

    @property
    def code(self) -> str:
        """The digest of the code that decides, as far as it is known."""
        if self.scheduler is None:
            return digest_of_value(
                {word: digest_of_file(word) for word in self.command if Path(word).is_file()}
            )
        actors = Actors(scheduler=self.scheduler)
        return digest_of_code(Experiment(scenario=Scenario(), actors=actors))

    @property
    def versions(self) -> dict[str, str]:
        """Of what it needs beside this package."""
        is_pybatsim = self.scheduler is not None and self.is_foreign
        return {"pybatsim": pybatsim_version()} if is_pybatsim else {}
