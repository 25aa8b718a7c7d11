"""A preset: how the columns of one kind of table are those of a log.

batsched-py run -w jobs.csv -i preset=examples/own_preset.py:Campus -s easy
"""

from batsched_py.workload.presets import Preset


class Campus(Preset):
    """Tables of a computing centre that writes limits in minutes and local times."""

    name = "campus"
    columns = (
        "submit:asked,start:began,end:done,requested_time:limit/min,allocated_processors:cores,status:how"
    )
    signature = ("asked", "began", "done", "limit")
    zone = "Europe/Stockholm"
    states = {"fine": 1, "stopped": 5}
