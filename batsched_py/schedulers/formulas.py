"""Orders that are formulas: a score written with the known quantities of a job, such as ``size * walltime``.

The text is parsed and checked node by node, never executed as code. Published scores are one line each, and
a search over their weights needs no Python:

    submit + 1000 * log10(size)
    -size * (wait / walltime) ** 3
"""

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

#: The functions of numpy that take two arguments.
_OF_TWO: Final = frozenset(("add", "subtract", "multiply", "divide", "power", "maximum", "minimum"))

#: Longer ones are hardly written by hand, and deep ones would end Python's stack.
_LONGEST: Final = 1000
_DEEPEST: Final = 50

#: A constant is kept for so many waiting jobs, and for more when there are more.
_USUAL_LENGTH: Final = 64


#: These give the same bits wherever they are computed, so that the library may do it, too.
_EXACT: Final = frozenset(
    ("number", *QUANTITIES, USAGE, "add", "subtract", "multiply", "divide", "negative", "positive")
)

#: What a score is made of that changes with the estimate of a job only.
_LASTING: Final = frozenset(("size", "walltime", "submit"))


class Formula:
    """A score that a text defines; the lowest goes first, and what is not a number goes last.

    It is kept as steps, each with a number: the values of quantities and numbers are put on a stack, and a
    function takes its arguments from there.
    """

    def __init__(self, text: str, usage: Part | None = None) -> None:
        self.text = text
        self.names: set[str] = set()
        self.usage = usage
        """Tells what the user of each job has used."""
        self.steps: list[tuple[str, float]] = []
        self._columns: dict[float, Floats] = {}
        """Of each number, a column that is long enough for the waiting jobs so far."""
        if len(text) > _LONGEST:
            raise self._error(f"it has more than {_LONGEST} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise self._error("it is not one") from None
        self._add(tree.body, 0)
        if not self.names:
            raise self._error("it names no quantity, so all jobs would have the same score")
        self.fixed = self.names <= _LASTING
        """Whether the score of a waiting job changes with its estimate only."""

    def __call__(self, waiting: Waiting, now: float) -> Floats:
        """The score of each job."""
        import numpy as np

        scores = self.values(waiting, now)
        return np.where(np.isnan(scores), np.inf, scores)

    def values(self, waiting: Waiting, now: float) -> Floats:
        """What the formula comes to for each job, which may be no number."""
        import numpy as np

        with np.errstate(all="ignore"):
            return self._steps_done(waiting, now)

    @property
    def in_library(self) -> list[tuple[str, float]] | None:
        """The steps, if the library of the native engine computes them to the same bits."""
        is_exact = type(self) is Formula and all(step in _EXACT for step, _ in self.steps)
        return self.steps if is_exact else None

    def _steps_done(self, waiting: Waiting, now: float) -> Floats:
        import numpy as np

        stack: list[Floats] = []
        for step, value in self.steps:
            if step == "number":
                stack.append(self._column(value, len(waiting)))
            elif step in QUANTITIES:
                stack.append(QUANTITIES[step](waiting, now))
            elif step == USAGE:
                assert self.usage is not None
                stack.append(self.usage(waiting, now))
            elif step in _OF_TWO:
                second = stack.pop()
                stack.append(getattr(np, step)(stack.pop(), second))
            else:
                stack.append(getattr(np, step)(stack.pop()))
        return stack.pop()

    def _column(self, value: float, length: int) -> Floats:
        column = self._columns.get(value)
        if column is None or length > len(column):
            import numpy as np

            self._columns[value] = column = np.full(max(2 * length, _USUAL_LENGTH), value)
        return column[:length]

    def _add(self, node: ast.expr, depth: int) -> None:
        """Add the steps that a part of the formula takes."""
        if depth > _DEEPEST:
            raise self._error(f"it is nested more than {_DEEPEST} times")
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                self.steps.append(("number", float(value)))
            case ast.Name(id=name):
                self._add_quantity(name)
            case ast.UnaryOp(op=operator, operand=operand) if type(operator) in _OPERATORS:
                self._add_function(_OPERATORS[type(operator)], [operand], depth)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
                self._add_function(_OPERATORS[type(operator)], [left, right], depth)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                function, count = FUNCTIONS[name]
                if len(arguments) != count:
                    raise self._error(f"{name} takes {count} argument{'s' * (count > 1)}")
                self._add_function(function, arguments, depth)
            case _:
                raise self._error(f"{ast.unparse(node)!r} is not allowed in it")

    def _add_function(self, name: str, arguments: list[ast.expr], depth: int) -> None:
        for argument in arguments:
            self._add(argument, depth + 1)
        self.steps.append((name, 0.0))

    def _add_quantity(self, name: str) -> None:
        if name == USAGE and self.usage is None:
            raise self._error(f"{USAGE} is not known here")
        if name != USAGE and name not in QUANTITIES:
            raise self._error(f"{name!r} is unknown")
        self.names.add(name)
        self.steps.append((name, 0.0))

    def _error(self, fault: str) -> InputError:
        return InputError(
            f"order {_shortened(self.text)!r} is neither a name nor a formula: {fault}; a formula has "
            f"numbers, {', '.join(QUANTITIES)}, {USAGE}, + - * / **, and {', '.join(FUNCTIONS)}"
        )


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
