"""Commands, those that belong together in one file; parsing and printing only.

A command's module imports what its options are made of, and inside its functions what they use: to show the
help of any command, nothing is loaded that simulates, draws or computes.
"""

import os
import sys
import typing
from collections.abc import Callable, Mapping
from importlib.util import find_spec, module_from_spec
from types import ModuleType

#: What is imported by libraries, and by us, and seldom used; and what they do use of it, which is easily had.
_SELDOM_USED: Mapping[str, Mapping[str, object]] = {
    "inspect": {},  # by click
    "ipaddress": {},  # by urllib
    "logging": {},  # by ourselves, where there is nothing to say
    "ntpath": {},  # by pathlib, elsewhere than on Windows
    "platform": {"system": lambda: os.uname().sysname},  # by uuid
    "textwrap": {},  # by msgspec
    "traceback": {},  # by ourselves
    "typing_extensions": {
        name: getattr(typing, name) for name in ("NotRequired", "Required", "get_type_hints")
    },  # by msgspec
}

#: What to do when a module is loaded.
_THEN: dict[str, Callable[[], None]] = {}


class _LoadedWhenUsed(ModuleType):
    """A module that was imported, and is loaded when something of it is used."""

    def __getattr__(self, name: str) -> typing.Any:
        if name == "__path__":  # an import asks whether this is a package
            raise AttributeError(name)
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        self.__class__ = ModuleType  # type: ignore[assignment]
        if (then := _THEN.pop(self.__name__, None)) is not None:
            then()
        return getattr(self, name)


for _name, _used in _SELDOM_USED.items():
    if _name not in sys.modules and (_spec := find_spec(_name)) is not None:
        sys.modules[_name] = _module = module_from_spec(_spec)
        vars(_module).update(_used)
        _module.__class__ = _LoadedWhenUsed


def once_loaded(name: str, then: Callable[[], None]) -> None:
    """Do something when a module is loaded; at once if it is."""
    if isinstance(sys.modules.get(name), _LoadedWhenUsed):
        _THEN[name] = then
    else:
        then()
