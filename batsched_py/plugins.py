"""Finding classes by name: shipped, installed by other packages, or in a file of the user's own."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from batsched_py.errors import InputError

Plugin = TypeVar("Plugin")


class Registry(Generic[Plugin]):
    """The known subclasses of one base class.

    Each module of a package may define some, found by their ``name``; other distributions offer theirs in
    an entry-point group; and ``path/to/file.py:ClassName`` names one that is installed nowhere.
    """

    def __init__(self, kind: str, base: type[Plugin], package: str, group: str) -> None:
        self.kind = kind
        self._base = base
        self._package = package
        self._group = group

    def all(self) -> dict[str, type[Plugin]]:
        """Every known class by name, in alphabetical order."""
        found = {self._name(cls): cls for module in self._modules() for cls in self._defined_in(module)}
        for point in entry_points(group=self._group):
            found[point.name] = point.load()
        return dict(sorted(found.items()))

    def find(self, name: str) -> type[Plugin]:
        """The class called ``name``."""
        if ".py:" in name:
            return self._from_file(name)
        known = self.all()
        if name not in known:
            raise InputError(
                f"there is no {self.kind} {name!r}; known are {', '.join(known)}, "
                "or give path/to/file.py:ClassName"
            )
        return known[name]

    def create(self, name: str, options: Mapping[str, str]) -> Plugin:
        """An instance of the class called ``name``, its options converted to their declared types."""
        cls = self.find(name)
        fields = [f.name for f in dataclasses.fields(cls) if f.init] if dataclasses.is_dataclass(cls) else []
        for key in options:
            if key not in fields:
                known = f"it knows {', '.join(fields)}" if fields else "it has none"
                raise InputError(f"{self.kind} {name!r} has no option {key!r}; {known}")
        if not fields:
            return cls()
        try:
            return msgspec.convert(dict(options), cls, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"{self.kind} {name!r}: {_explained(error, cls)}") from None

    def _modules(self) -> Iterator[ModuleType]:
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            yield importlib.import_module(f"{self._package}.{module.name}")

    def _defined_in(self, module: ModuleType) -> list[type[Plugin]]:
        return [
            cls
            for cls in vars(module).values()
            if inspect.isclass(cls)
            and issubclass(cls, self._base)
            and not inspect.isabstract(cls)
            and cls.__module__ == module.__name__
        ]

    def _name(self, cls: type[Plugin]) -> str:
        return str(getattr(cls, "name", cls.__name__.lower()))

    def _from_file(self, name: str) -> type[Plugin]:
        file, _, class_name = name.rpartition(":")
        path = Path(file)
        if not path.is_file():
            raise InputError(f"{self.kind} {name!r}: there is no file {file}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise InputError(f"{self.kind} {name!r}: {file} cannot be loaded: {error!r}") from error
        cls = getattr(module, class_name, None)
        if not (inspect.isclass(cls) and issubclass(cls, self._base)):
            defined = ", ".join(c.__name__ for c in self._defined_in(module)) or "none"
            raise InputError(
                f"{self.kind} {name!r}: {file} defines no {self.kind} {class_name!r} (it defines {defined})"
            )
        return cls


def _explained(error: msgspec.ValidationError, cls: type[Any]) -> str:
    """What is wrong, with the choices there are if it is one that does not exist."""
    option = str(error).rpartition("`$.")[2].rstrip("`")
    hint = get_type_hints(cls).get(option)
    return f"{error}; choose among {', '.join(get_args(hint))}" if get_origin(hint) is Literal else str(error)
