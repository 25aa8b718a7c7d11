"""Orders that are formulas: a score written with the known quantities of a job, such as ``size * walltime``.

The text is parsed and checked node by node, never executed as code. Published scores are one line each, and
a search over their weights needs no Python:

    submit + 1000 * log10(size)
    -size * (wait / walltime) ** 3
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Final

from batsched_py.errors import InputError
from batsched_py.ledger.queue import Floats, Waiting

#: A part of a formula: its values for waiting jobs at a time.
Part = Callable[[Waiting, float], Floats]

#: What is known of a waiting job.
QUANTITIES: Final[Mapping[str, Part]] = {
    "size": lambda waiting, now: waiting.size.astype(float),
    "walltime": lambda waiting, now: waiting.estimate,
    "wait": lambda waiting, now: now - waiting.submission,
    "submit": lambda waiting, now: waiting.submission,
}

#: How much the user of a job has used the machine; it is counted only where a formula names it.
USAGE: Final = "usage"

#: The functions of numpy that a formula may call, by the names that they have in it, with how many arguments.
FUNCTIONS: Final = {
    "abs": ("abs", 1),
    "exp": ("exp", 1),
    "log": ("log", 1),
    "log2": ("log2", 1),
    "log10": ("log10", 1),
    "max": ("maximum", 2),
    "min": ("minimum", 2),
    "sqrt": ("sqrt", 1),
}

_OPERATORS: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
    ast.USub: "negative",
    ast.UAdd: "positive",
}

#: Longer ones are hardly written by hand, and deep ones would end Python's stack.
_LONGEST: Final = 1000
_DEEPEST: Final = 50

#: A constant is kept for so many waiting jobs, and for more when there are more.
_USUAL_LENGTH: Final = 64


class Formula:
    """A score that a text defines; the lowest goes first, and what is not a number goes last."""

    def __init__(self, text: str, usage: Part | None = None) -> None:
        self.text = text
        self.names: set[str] = set()
        self._usage = usage
        if len(text) > _LONGEST:
            raise self._error(f"it has more than {_LONGEST} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise self._error("it is not one") from None
        self._score = self._part(tree.body, 0)
        if not self.names:
            raise self._error("it names no quantity, so all jobs would have the same score")

    def __call__(self, waiting: Waiting, now: float) -> Floats:
        """The score of each job."""
        import numpy as np

        scores = self.values(waiting, now)
        return np.where(np.isnan(scores), np.inf, scores)

    def values(self, waiting: Waiting, now: float) -> Floats:
        """What the formula comes to for each job, which may be no number."""
        import numpy as np

        with np.errstate(all="ignore"):
            return self._score(waiting, now)

    def _part(self, node: ast.expr, depth: int) -> Part:
        """What computes a part of the formula."""
        if depth > _DEEPEST:
            raise self._error(f"it is nested more than {_DEEPEST} times")
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return _constant(float(value))
            case ast.Name(id=name):
                return self._quantity(name)
            case ast.UnaryOp(op=operator, operand=operand) if type(operator) in _OPERATORS:
                return _applied(_OPERATORS[type(operator)], self._part(operand, depth + 1))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                parts = self._part(left, depth + 1), self._part(right, depth + 1)
                return _applied(_OPERATORS[type(operator)], *parts)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                function, count = FUNCTIONS[name]
                if len(arguments) != count:
                    raise self._error(f"{name} takes {count} argument{'s' * (count > 1)}")
                return _applied(function, *(self._part(argument, depth + 1) for argument in arguments))
        raise self._error(f"{ast.unparse(node)!r} is not allowed in it")

    def _quantity(self, name: str) -> Part:
        if name == USAGE:
            if self._usage is None:
                raise self._error(f"{USAGE} is not known here")
            part = self._usage
        elif name in QUANTITIES:
            part = QUANTITIES[name]
        else:
            raise self._error(f"{name!r} is unknown")
        self.names.add(name)
        return part

    def _error(self, fault: str) -> InputError:
        return InputError(
            f"order {_shortened(self.text)!r} is neither a name nor a formula: {fault}; a formula has "
            f"numbers, {', '.join(QUANTITIES)}, {USAGE}, + - * / **, and {', '.join(FUNCTIONS)}"
        )


def _constant(value: float) -> Part:
    import numpy as np

    kept = np.full(_USUAL_LENGTH, value)

    def part(waiting: Waiting, now: float) -> Floats:
        nonlocal kept
        length = len(waiting)
        if length > len(kept):
            kept = np.full(2 * length, value)
        return kept[:length]

    return part


def _applied(name: str, *parts: Part) -> Part:
    """A function of numpy, applied to the values of parts."""
    import numpy as np

    function = getattr(np, name)
    if len(parts) == 1:
        (one,) = parts
        return lambda waiting, now: function(one(waiting, now))
    first, second = parts
    return lambda waiting, now: function(first(waiting, now), second(waiting, now))


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
