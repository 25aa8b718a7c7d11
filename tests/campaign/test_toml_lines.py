from __future__ import annotations

import pytest

from batsched_py.campaign.plan import KeyPath, line_of

TEXT = """\
# a comment = with an equals sign
title = "T"

[logs]
kth = { file = "a" }
"ctc 2" = { file = "b",
            walltime = "max" }

[platforms.small]
hosts = 4

[platforms]
large.hosts = 8
[[exclude]]
log = "kth"
[[exclude]]
platform = ["small"]
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("logs",), 4),
        (("logs", "kth"), 5),
        (("logs", "kth", "file"), 5),
        (("logs", "ctc 2", "file"), 6),
        (("platforms", "small"), 9),
        (("platforms", "small", "hosts"), 10),
        (("platforms", "small", "missing"), 9),
        (("platforms", "large", "hosts"), 13),
        (("exclude", 0, "log"), 15),
        (("exclude", 1, "platform"), 17),
        (("exclude", 1, "log"), 16),
        (("nowhere",), 1),
    ],
)
def test_the_line_of_a_key(path: KeyPath, line: int) -> None:
    assert line_of(TEXT, path) == line
