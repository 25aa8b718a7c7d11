"""Finding classes by name: shipped, installed by other packages, or in a file of the user's own.

This belongs to no room: ``schedulers`` and ``users`` both keep a registry, and neither knows the other.
"""

import dataclasses
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from batsched_py.blame import take_part
from batsched_py.errors import BatschedError, InputError, did_you_mean
from batsched_py.trust import NotTrusted, check_code

#: What the name of a scheduler begins with if it is PyBatsim's, of which registries know nothing.
PYBATSIM = "pybatsim:"

Plugin = TypeVar("Plugin")


class Registry(Generic[Plugin]):
    """The known subclasses of one base class.

    Each module of a package may define some, found by their ``name``, and so may those of other packages that
    are named (``also``) and not imported before they are searched; other distributions offer theirs in an
    entry-point group, under names that are not taken; and ``path/to/file.py:ClassName`` names one that is
    installed nowhere. Without a package, none are shipped.
    """

    def __init__(
        self, kind: str, base: type[Plugin], package: str | None, group: str, also: tuple[str, ...] = ()
    ) -> None:
        self.kind = kind
        self.base = base
        self._packages = tuple(filter(None, (package, *also)))
        self._group = group

    def all(self) -> dict[str, type[Plugin]]:
        """Every known class by name, in alphabetical order."""
        return dict(sorted((self._installed() | self._shipped()).items()))

    def find(self, name: str) -> type[Plugin]:
        """The class called ``name``; no more is imported than it takes to find it."""
        if ".py:" in name:
            return self._from_file(name)
        found = self._in_its_module(name) or self._in_any_module(name) or self._installed(name).get(name)
        if found is None:
            known = f"known are {', '.join(self.all())}, or" if self.all() else "none is installed;"
            meant = did_you_mean(name, self.all())
            raise InputError(
                f"there is no {self.kind} {name!r}{meant}; {known} give path/to/file.py:ClassName"
            )
        return found

    def knows(self, cls: type[Plugin]) -> bool:
        """Whether a class is found by its name."""
        return cls in self._shipped().values()

    def create(self, name: str, options: Mapping[str, str]) -> Plugin:
        """An instance of the class called ``name``, its options converted to their declared types."""
        return self.make(self.find(name), name, options)

    def make(self, cls: type[Plugin], name: str, options: Mapping[str, object]) -> Plugin:
        """An instance of a class, under whatever name it is known."""
        take_part(each for each in cls.__mro__ if issubclass(each, self.base))
        fields = _options(cls)
        for key in options:
            if key not in fields:
                known = f"it knows {', '.join(fields)}" if fields else "it has none"
                meant = did_you_mean(key, fields)
                raise InputError(f"{self.kind} {name!r} has no option {key!r}{meant}; {known}")
        try:
            return _made(cls, options) if fields else cls()
        except msgspec.ValidationError as error:
            raise InputError(f"{self.kind} {name!r}: {_explained(error, cls)}") from None
        except BatschedError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(f"{self.kind} {name!r} cannot be made with its options: {error!r}") from error

    def instance(self, given: object) -> Plugin:
        """What is given: an instance itself, or one of the class that is given or named."""
        if isinstance(given, str):
            return self.create(given, {})
        if isinstance(given, type) and issubclass(given, self.base):
            return self.make(given, given.__name__, {})
        if isinstance(given, self.base):
            return given
        raise InputError(f"{given!r} is neither the name of a {self.kind} nor a {self.base.__name__}")

    def options(self, name: str) -> list[str]:
        """The names of the options that the class called ``name`` has."""
        return _options(self.find(name))

    def layers(self, name: str) -> list[str]:
        """The names of all classes that take part when this one is named."""
        return [name]

    def _in_its_module(self, name: str) -> type[Plugin] | None:
        """The class of this name in the module of this name, if there are such."""
        if (own := name.replace("-", "_")).isidentifier():
            for module in (f"{package}.{own}" for package in self._packages):
                if importlib.util.find_spec(module) is not None:
                    return self._defined_in(importlib.import_module(module)).get(name)
        return None

    def _in_any_module(self, name: str) -> type[Plugin] | None:
        """The class of this name in the first module that has one."""
        defined = map(self._defined_in, self._modules())
        return next((classes[name] for classes in defined if name in classes), None)

    def _shipped(self) -> dict[str, type[Plugin]]:
        found: dict[str, type[Plugin]] = {}
        for module in self._modules():
            found |= self._defined_in(module)
        return found

    def _installed(self, wanted: str | None = None) -> dict[str, type[Plugin]]:
        from importlib.metadata import entry_points

        points = entry_points(group=self._group)
        return {point.name: point.load() for point in points if wanted in (None, point.name)}

    def _modules(self) -> Iterator[ModuleType]:
        from pkgutil import iter_modules

        for package in self._packages:
            for module in iter_modules(importlib.import_module(package).__path__):
                yield importlib.import_module(f"{package}.{module.name}")

    def _defined_in(self, module: ModuleType) -> dict[str, type[Plugin]]:
        return {
            str(getattr(cls, "name", cls.__name__.lower())): cls
            for cls in vars(module).values()
            if isinstance(cls, type)
            and issubclass(cls, self.base)
            and not getattr(cls, "__abstractmethods__", None)
            and cls.__module__ == module.__name__
        }

    def _from_file(self, name: str) -> type[Plugin]:
        file, _, class_name = name.rpartition(":")
        path = Path(file)
        if not os.path.isfile(path):
            raise InputError(f"{self.kind} {name!r}: there is no file {file}")
        try:
            module = execute_file(path)
        except NotTrusted:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(f"{self.kind} {name!r}: {file} cannot be loaded: {error!r}") from error
        cls = getattr(module, class_name, None)
        if not (isinstance(cls, type) and issubclass(cls, self.base)):
            defined = ", ".join(cls.__name__ for cls in self._defined_in(module).values()) or "none"
            raise InputError(
                f"{self.kind} {name!r}: {file} defines no {self.kind} {class_name!r} (it defines {defined})"
            )
        return cls


class LayeredRegistry(Registry[Plugin]):
    """Classes some of which go around others, and are named so: ``outer(inner)``.

    An option is for each of them that has one of its name. With ``NAME.`` in front it is for that one only.
    """

    wrapper: ClassVar[type[Any]]
    """What goes around others; each instance has what it is around as ``inner``.

    The class says as ``around`` what that is when nothing is said, and may say that nothing goes around it
    (``outermost``).
    """
    example: ClassVar[str]
    """How one is named around another."""

    def find(self, name: str) -> type[Plugin]:
        """The outermost class."""
        return super().find(self._names(name)[0])

    def options(self, name: str) -> list[str]:
        """The names of the options that one of the classes has."""
        found = (
            option for layer in self.layers(name) for option in super(LayeredRegistry, self).options(layer)
        )
        return list(dict.fromkeys(found))

    def create(self, name: str, options: Mapping[str, str]) -> Plugin:
        """The outermost, around all others."""
        layers = self.layers(name)
        if len(layers) == 1:
            return super().create(name, options)
        given = self._shared_out(name, layers, options)
        created: list[Any] = [
            super(LayeredRegistry, self).create(layer, mine)
            for layer, mine in zip(layers, given, strict=True)
        ]
        for outer, inner in pairwise(created):
            outer.inner = inner
        outermost: Plugin = created[0]
        return outermost

    def layers(self, name: str) -> list[str]:
        """The names from the outermost class to the innermost, which goes around nothing."""
        layers = self._names(name)
        while issubclass(last := super().find(layers[-1]), self.wrapper):
            layers.append(last.around)  # type: ignore[attr-defined]
        for layer in layers[:-1]:
            if not issubclass(super().find(layer), self.wrapper):
                raise InputError(f"{self.kind} {name!r}: {layer!r} goes around no other one")
        for outer, inner in pairwise(layers):
            if getattr(super().find(inner), "outermost", False):
                raise InputError(f"{self.kind} {name!r}: write {inner}({outer}(...)), not {outer}({inner})")
        return layers

    def _names(self, name: str) -> list[str]:
        """The names in ``outer(inner)``, from the outermost to the innermost."""
        layers = []
        rest = name
        while rest.endswith(")"):
            outer, bracket, inner = rest[:-1].partition("(")
            if not (outer.strip() and bracket and inner.strip()):
                raise InputError(f"{self.kind} {name!r}: write outer(inner), like {self.example}")
            layers.append(outer.strip())
            rest = inner.strip()
        return [*layers, rest]

    def _shared_out(self, name: str, layers: list[str], options: Mapping[str, str]) -> list[dict[str, str]]:
        """For each class, the options that are for it; what is for one only comes first."""
        known = [super(LayeredRegistry, self).options(layer) for layer in layers]
        given: list[dict[str, str]] = [{} for _ in layers]
        for key, value in options.items():
            hits = 0
            for layer, fields, mine in zip(layers, known, given, strict=True):
                if key in fields:
                    mine.setdefault(key, value)
                    hits += 1
                elif key.startswith(f"{layer}.") and (own := key.removeprefix(f"{layer}.")) in fields:
                    mine[own] = value
                    hits += 1
            if not hits:
                all_known = ", ".join(
                    f"{layer}.{field}"
                    for layer, fields in zip(layers, known, strict=True)
                    for field in fields
                )
                raise InputError(
                    f"{self.kind} {name!r} has no option {key!r}; it knows {all_known or 'none'}"
                )
        return given


def _options(cls: type[Any]) -> list[str]:
    """The names of the options that a class has."""
    return [f.name for f in dataclasses.fields(cls) if f.init] if dataclasses.is_dataclass(cls) else []


def _made(cls: type[Plugin], options: Mapping[str, object]) -> Plugin:
    """An instance with these options; without any, their types need not be known, which takes long."""
    if not options:
        try:
            return cls()
        except (TypeError, ValueError):
            pass  # what is wrong is told below
    return msgspec.convert(dict(options), cls, strict=False)


def execute_file(path: Path) -> ModuleType:
    """A fresh module of a file as it is now, if its code may be executed.

    Whatever its name, it gets into no other module's way. It is registered, because classes look there for
    what their annotations mean.
    """
    check_code(path)
    import hashlib

    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:12]
    module = ModuleType(f"{path.stem.replace('.', '_')}@{digest}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module


def _explained(error: msgspec.ValidationError, cls: type[Any]) -> str:
    """What is wrong, with the choices there are if it is one that does not exist."""
    option = str(error).rpartition("`$.")[2].rstrip("`")
    hint = get_type_hints(cls).get(option)
    if get_origin(hint) is not Literal:
        return str(error)
    return f"{error}; choose among {', '.join(map(str, get_args(hint)))}"
