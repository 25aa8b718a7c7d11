"""Where a machine and its users settle: more load makes answers slower, slower answers make less load."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Annotated

import numpy as np
import pandas as pd
from msgspec import Meta

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import Sheet, TableKind
from batsched_py.analysis.plots.runs import by_log, check_columns, configurations, in_unit
from batsched_py.errors import InputError

#: A point of a curve: jobs a day, and what users feel.
Place = tuple[float, float]


def crossing(first: Sequence[Place], second: Sequence[Place]) -> Place | None:
    """Where two lines through points meet first, if they do.

    >>> crossing([(0, 0), (2, 2)], [(0, 2), (2, 0)])
    (1.0, 1.0)
    """
    for (a, b), (c, d) in product(pairwise(first), pairwise(second)):
        along, across, apart = (np.subtract(*pair) for pair in ((b, a), (d, c), (c, a)))
        turn = _cross(along, across)
        if turn == 0:
            continue
        on_first, on_second = _cross(apart, across) / turn, _cross(apart, along) / turn
        if 0 <= on_first <= 1 and 0 <= on_second <= 1:
            x, y = np.array(a) + on_first * along
            return float(x), float(y)
    return None


def _cross(first: np.ndarray, second: np.ndarray) -> float:
    return float(first[0] * second[1] - first[1] * second[0])


@dataclass(frozen=True)
class Equilibrium(TableKind):
    """Throughput and response of a machine at several loads, and of its users on several machines.

    The campaign has users who do not react, at several `loads`, and users who do, on several platforms. The
    line of the machine shows how its response grows with the load; that of the users, how much they submit
    if machines answer so soon. Where they cross, both match. A square is the simulation of both together; it
    lies elsewhere as far as users who react also come at other times. Points are means over parts and seeds.
    """

    name = "equilibrium"
    shows = "Where the load that users make and the performance that it leaves them match."

    platform: Annotated[str, Meta(title="NAME", description="The machine; the first one if not given.")] = ""
    rigid: Annotated[str, Meta(title="NAME", description="The users who do not react.")] = "rigid"
    metric: Annotated[str, Meta(title="NAME", description="What users feel.")] = "mean_turnaround_time"

    def draw(self, sheet: Sheet, table: pd.DataFrame) -> None:
        """Draw both lines, and where they cross."""
        check_columns(table, "load", "platform", "users", "throughput", self.metric)
        platform = self.platform or str(table["platform"].iloc[0])
        machine, users = self.curves(table, platform)
        unit, label = in_unit(table, self.metric)
        sheet.resize(3.4)
        panel = sheet.subplots()
        for name, curve, look in zip(
            (f"{platform}, at loads {_ends(machine)}", "users, on " + ", ".join(map(str, users.index))),
            (machine, users),
            sheet.line_looks(2),
            strict=True,
        ):
            panel.plot(curve["throughput"], curve[self.metric] / unit, **look, marker="o", ms=3.5, label=name)
        together = users.loc[[platform]] if platform in users.index else users[:0]
        panel.plot(
            together["throughput"], together[self.metric] / unit, "s", ms=7, mfc="none", mec=style.BLACK
        )
        found = crossing(*(list(curve.itertuples(index=False, name=None)) for curve in (machine, users)))
        if found is None:
            panel.set_title("the lines do not cross: other loads or machines are needed")
        else:
            jobs, felt = found[0], found[1] / unit
            panel.plot(jobs, felt, marker="D", ms=7, mfc="none", mec=style.BLACK)
            simulated = "".join(f"; simulated: {each:.3g}" for each in together["throughput"])
            panel.set_title(f"they match at {jobs:.3g} jobs a day{simulated}")
        panel.set_xlabel("throughput (jobs a day)")
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        style.plain_numbers(panel.xaxis, panel.yaxis)
        style.shared_legend(sheet, [panel])

    def curves(self, table: pd.DataFrame, platform: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Throughput and the metric: of the machine at each load, and of the users on each machine."""
        shown, reacts = ["throughput", self.metric], table["users"] != self.rigid
        several = {
            "log": len(by_log(table)),
            "kind of users who react": table.loc[reacts, "users"].nunique(),
            "scheduler or other setting": len([*configurations(table, "load", "platform", "users")]),
        }
        for what, count in several.items():
            if count > 1:
                raise InputError(f"equilibrium shows one {what}, and the campaign has {count}")
        loads = table["load"].astype(float)
        still = table[~reacts & (table["platform"] == platform)]
        machine = still.groupby(loads[still.index])[shown].mean()
        users = table[reacts & (loads == 1)].groupby("platform")[shown].mean().sort_values("throughput")
        if len(machine) < 2 or len(users) < 2:
            raise InputError(
                f"equilibrium needs users {self.rigid!r} on platform {platform!r} at two loads or more, not "
                f"{len(machine)}, and users who react on two platforms or more at load 1, not {len(users)}"
            )
        return machine, users


def _ends(curve: pd.DataFrame) -> str:
    return f"{curve.index[0]:g} to {curve.index[-1]:g}"
