"""``batsched-py schedulers``, ``users``, ``models`` and ``changes``: what there is to choose from."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from typing import Any

import click
import msgspec

from batsched_py.plugins import Registry


def describe_all(registry: Registry[Any]) -> str:
    """A line for each class that is known."""
    classes = registry.all()
    width = max(map(len, classes))
    return "".join(f"{name:<{width}}  {_doc(cls).splitlines()[0]}\n" for name, cls in classes.items())


def describe(registry: Registry[Any], name: str, flag: str) -> str:
    """What one class says about itself, and its options, which are given with ``flag``."""
    cls = registry.find(name)
    formatter = click.HelpFormatter()
    formatter.write(f"{name}\n\n{_doc(cls)}\n")
    options = _options(cls, flag)
    if options:
        with formatter.section("Options"):
            formatter.write_dl(options)
    return formatter.getvalue()


def _doc(cls: type[Any]) -> str:
    return inspect.getdoc(cls) or "(no description)"


def _options(cls: type[Any], flag: str) -> list[tuple[str, str]]:
    """How each option is given, and what it means; first its own, then those that it shares with others."""
    if not dataclasses.is_dataclass(cls):
        return []
    hints = typing.get_type_hints(cls, include_extras=True)
    shared = {name for base in cls.__mro__[1:] for name in getattr(base, "__dataclass_fields__", ())}
    return [
        (f"{flag} {field.name}={_type_name(hints[field.name])}".strip(), _meaning(field, hints[field.name]))
        for field in sorted(dataclasses.fields(cls), key=lambda field: field.name in shared)
        if field.init
    ]


def _type_name(hint: Any) -> str:
    """How a value is written: ``int``, ``both|batch``, or ``int,...`` for several; "or nothing" is left out.

    >>> _type_name(typing.Annotated[float, msgspec.Meta(gt=0)] | None)
    'float'
    >>> _type_name(tuple[int, ...])
    'int,...'
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _type_name(arguments[0])
    if origin is typing.Literal:
        return "|".join(map(str, arguments))
    if origin in (typing.Union, types.UnionType):
        return "|".join(_type_name(each) for each in arguments if each is not types.NoneType)
    if origin is tuple:
        return f"{_type_name(arguments[0])},..."
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _meaning(field: dataclasses.Field[Any], hint: Any) -> str:
    notes = [
        extra.description for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, msgspec.Meta)
    ]
    if field.default not in (dataclasses.MISSING, None, "", ()):
        notes.append(f"[default: {field.default}]")
    return "  ".join(filter(None, notes))


def _tell(registry: Registry[Any], name: str | None, flag: str) -> None:
    click.echo(describe_all(registry) if name is None else describe(registry, name, flag), nl=False)


@click.command("schedulers")
@click.argument("name", required=False)
def schedulers_command(name: str | None) -> None:
    """List the schedulers, or describe the one called NAME with its options.

    \b
    Examples:
      batsched-py schedulers
      batsched-py schedulers easy
      batsched-py schedulers my_policy.py:MyPolicy
    """
    from batsched_py.schedulers import SCHEDULERS

    _tell(SCHEDULERS, name, "-o")


@click.command("users")
@click.argument("name", required=False)
def users_command(name: str | None) -> None:
    """List the behaviours of users, or describe the one called NAME with its options.

    \b
    Examples:
      batsched-py users
      batsched-py users think-time
      batsched-py users my_users.py:MyBehaviour
    """
    from batsched_py.users import USERS

    _tell(USERS, name, "-u")


@click.command("models")
@click.argument("name", required=False)
def models_command(name: str | None) -> None:
    """List the models that `batsched-py generate` knows, or describe the one called NAME with its options.

    \b
    Examples:
      batsched-py models
      batsched-py models lublin
    """
    from batsched_py.workload.models import MODELS

    _tell(MODELS, name, "-p")


@click.command("changes")
@click.argument("name", required=False)
def changes_command(name: str | None) -> None:
    """List the changes that `batsched-py change` can do, or describe the one called NAME with its options.

    \b
    Examples:
      batsched-py changes
      batsched-py changes load
    """
    from batsched_py.workload.changes import CHANGES

    _tell(CHANGES, name, "")
