"""How users give a setting: on the command line, in Python and in the plan of a campaign.

A field of a struct becomes a setting when its type is annotated with an :class:`Option`::

    hosts: Annotated[int | None, Option("--hosts N", "A machine of N equal hosts.", "platforms")] = None

:mod:`batsched_py.experiment.settings` reads these annotations. Everything else is made from them.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Option(Struct, frozen=True):
    """What a user writes to give a value to a setting, and what it means.

    >>> platform = Option("-p, --platform FILE", "A platform of SimGrid.", "platforms.file")
    >>> platform.flags, platform.metavar, platform.word
    (['-p', '--platform'], 'FILE', 'platform')
    >>> Option("--with-colours / --without-colours", "Whether there are colours.").off
    '--without-colours'
    """

    usage: str
    """The flags, and what stands for the value, as the help shows them. A ``FILE`` is the name of a file."""
    help: str
    plan: str = ""
    """The table of a plan, such as ``logs``, or ``logs.file`` if the key is not the name of the field."""
    usual: str = ""
    """What happens by default, in words, where the default value does not tell."""
    pairs: Option | None = None
    """Gives the options of what is chosen, as ``KEY=VALUE``."""
    short: Option | None = None
    """Gives one of these options, the one that has the name of this flag."""
    from_file: Option | None = None
    """Gives a text by the name of its file."""

    @property
    def flags(self) -> list[str]:
        """The flags, without the one for no; a manifest has the first of them."""
        usage = self.usage.partition(" / ")[0].split()
        return [word.rstrip(",") for word in usage if word.startswith("-")]

    @property
    def off(self) -> str:
        """The flag for no, if neither yes nor no is the default."""
        return self.usage.partition(" / ")[2]

    @property
    def metavar(self) -> str | None:
        """What stands for the value in the help."""
        last = self.usage.split()[-1]
        return None if last.startswith("-") else last

    @property
    def word(self) -> str:
        """The name in Python: the first long flag."""
        return next(flag[2:] for flag in self.flags if flag.startswith("--")).replace("-", "_")

    @property
    def names_files(self) -> bool:
        """Whether a value is the name of a file."""
        return self.metavar == "FILE"

    @property
    def further(self) -> Iterator[Option]:
        """The options that give parts of the same setting."""
        return (option for option in (self.pairs, self.short, self.from_file) if option is not None)
