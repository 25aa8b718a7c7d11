"""Commands, those that belong together in one file; parsing and printing only.

A command's module imports what its options are made of, and inside its functions what they use: to show the
help of any command, nothing is loaded that simulates, draws or computes.
"""

import sys
import typing
from importlib.util import find_spec, module_from_spec
from types import ModuleType

#: What libraries import and seldom use, and takes as long to load as they do; and what they do use of it,
#: which ``typing`` has, too.
_SELDOM_USED = {
    "inspect": (),  # by click
    "traceback": (),  # by logging
    "ipaddress": (),  # by urllib
    "textwrap": (),  # by msgspec
    "typing_extensions": ("NotRequired", "Required", "get_type_hints"),  # by msgspec
}


class _LoadedWhenUsed(ModuleType):
    """A module that was imported, and is loaded when something of it is used."""

    def __getattr__(self, name: str) -> typing.Any:
        if name == "__path__":  # an import asks whether this is a package
            raise AttributeError(name)
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(self, name)


for _name, _used in _SELDOM_USED.items():
    if _name not in sys.modules and (_spec := find_spec(_name)) is not None:
        sys.modules[_name] = _module = module_from_spec(_spec)
        vars(_module).update({each: getattr(typing, each) for each in _used})
        _module.__class__ = _LoadedWhenUsed
