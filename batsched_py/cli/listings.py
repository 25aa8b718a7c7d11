"""``batsched-py list``, ``schedulers``, ``users``, ``models``, ``changes``: what there is to choose from."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import click
import msgspec

from batsched_py.api import lazy
from batsched_py.cli.options import OneOf
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
    if options := _options(cls, flag):
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


#: What there is to choose from: the registry, the option for its options, what it is for, examples.
_KINDS: dict[str, tuple[Callable[[], Registry[Any]], str, str, tuple[str, ...]]] = {
    "schedulers": (
        lambda: lazy.schedulers.SCHEDULERS,
        "-o",
        "List the schedulers",
        ("easy", "my_policy.py:MyPolicy"),
    ),
    "users": (
        lambda: lazy.users.USERS,
        "-u",
        "List the behaviours of users",
        ("think-time", "my_users.py:MyBehaviour"),
    ),
    "models": (
        lambda: lazy.models.MODELS,
        "-p",
        "List the models that `batsched-py generate` knows",
        ("lublin",),
    ),
    "changes": (
        lambda: lazy.changes.CHANGES,
        "",
        "List the changes that `batsched-py change` can do",
        ("load",),
    ),
}


def _text(kind: str, name: str | None) -> str:
    """The list of a kind, or what one of it says about itself."""
    registry, flag, _, _ = _KINDS[kind]
    return describe_all(registry()) if name is None else describe(registry(), name, flag)


@click.command("list")
@click.argument("kind", required=False, metavar="[KIND]", type=OneOf(list(_KINDS)))
@click.argument("name", required=False)
def list_command(kind: str | None, name: str | None) -> None:
    """List what there is to choose from, or describe the one called NAME with its options.

    KIND is schedulers, users (their behaviours), models (which generate logs) or changes (of a log); without
    it, all are listed. `batsched-py schedulers` and so on do the same.

    \b
    Examples:
      batsched-py list
      batsched-py list schedulers
      batsched-py list schedulers easy
    """
    if kind is not None:
        return click.echo(_text(kind, name), nl=False)
    click.echo("\n".join(f"{each}:\n{_indented(_text(each, None))}" for each in _KINDS), nl=False)


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _listing(kind: str) -> click.Command:
    """A command that does the same as ``list`` with a kind."""
    _, _, help, examples = _KINDS[kind]
    shown = "\n".join(f"  batsched-py {kind} {example}".rstrip() for example in ("", *examples))

    @click.command(
        kind,
        help=f"{help}, or describe the one called NAME with its options.\n\n\b\nExamples:\n{shown}\n",
    )
    @click.argument("name", required=False)
    def listing(name: str | None) -> None:
        click.echo(_text(kind, name), nl=False)

    return listing


schedulers_command = _listing("schedulers")
users_command = _listing("users")
models_command = _listing("models")
changes_command = _listing("changes")
