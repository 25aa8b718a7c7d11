"""A scheduler or a behaviour of users, chosen by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from batsched_py.settings import Rename


class Choice(Struct, frozen=True):
    """A scheduler or a behaviour of users: its name, and its options as the command line gives them.

    An option whose name ends in ``file``, or whose value ends in ``.json``, names a file; one whose value is
    like ``file.py:Class`` names code.
    """

    name: str
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, options: Mapping[str, object]) -> Choice:
        """A choice whose options are not yet texts.

        >>> Choice.of("sleeper", {"idle_time": 600, "eager": True}).options
        {'idle_time': '600', 'eager': 'true'}
        """
        return cls(name, {key: _text(value) for key, value in options.items()})

    @property
    def code_files(self) -> list[str]:
        """The files with its code, if that is not installed.

        >>> Choice("mine/easy.py:Easy").code_files, Choice("pybatsim:sched.py").code_files
        (['mine/easy.py'], ['sched.py'])
        >>> Choice("calm.py:Calm(patience(own.py:Own))").code_files
        ['calm.py', 'own.py']
        >>> Choice("think-time", {"sessions": "weekly.py:Weekly"}).code_files
        ['weekly.py']
        """
        names = [*_layers(self.name), *filter(_names_code, self.options.values())]
        return [file for _, file, _ in map(_parts, names) if file is not None]

    @property
    def files(self) -> list[str]:
        """All files that it reads: its code, and what its options name."""
        return files_in(self.renamed)

    def renamed(self, rename: Rename) -> Choice:
        """The same choice with other names for its files."""

        def moved(name: str) -> str:
            before, file, after = _parts(name)
            return before if file is None else f"{before}{rename(file)}{after}"

        layers = [moved(layer) for layer in _layers(self.name)]
        options = {
            key: moved(value) if _names_code(value) else rename(value) if _names_a_file(key, value) else value
            for key, value in self.options.items()
        }
        return Choice("(".join(layers) + ")" * (len(layers) - 1), options)


def files_in(renamed: Callable[[Rename], object]) -> list[str]:
    """The files that something gives new names to, in their order."""
    found: list[str] = []

    def note(file: str) -> str:
        found.append(file)
        return file

    renamed(note)
    return found


def _layers(name: str) -> list[str]:
    """The names in ``outer(inner)``, from the outermost to the innermost."""
    layers = []
    while name.endswith(")") and "(" in name:
        outer, _, name = name[:-1].partition("(")
        layers.append(outer)
    return [*layers, name]


def _parts(layer: str) -> tuple[str, str | None, str]:
    """What stands in front of the file in a name, the file, and what stands behind it."""
    head, colon, tail = layer.rpartition(":")
    if head.endswith(".py"):
        return "", head, f":{tail}"
    if colon and tail.endswith(".py"):
        return f"{head}:", tail, ""
    return layer, None, ""


def _names_code(value: str) -> bool:
    return ".py:" in value


def _names_a_file(option: str, value: str) -> bool:
    return bool(value) and (option.endswith("file") or value.endswith(".json"))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
