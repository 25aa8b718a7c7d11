"""How the jobs of a run are told apart where each group of them is measured by itself."""

from typing import Final, Literal, get_args

#: By what jobs are told apart.
Grouping = Literal["class", "partition", "account", "user"]
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)
