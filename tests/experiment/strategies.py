"""Any experiment that can be written down, whether it makes sense or not."""

from __future__ import annotations

from hypothesis import strategies as st

from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.protocol.events import Settings

#: What a command line can carry.
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
names = texts.filter(bool)
numbers = st.floats(allow_nan=False, allow_infinity=False)
several = st.lists(names, max_size=3).map(tuple)

machines = st.builds(
    Machine,
    file=st.none() | names,
    hosts=st.none() | st.integers(),
    speed=st.none() | numbers,
    bandwidth=st.none() | names,
    latency=st.none() | names,
    backbone=st.none() | names,
    fat_tree=st.none() | names,
    master_host=texts,
    roles=several,
    reject_larger=st.booleans(),
    mmax=st.integers(min_value=0),
    mmax_workload=st.booleans(),
)
settings = st.builds(
    Settings,
    *[st.booleans()] * 7,
    scheduler_config=texts,
)
scenarios = st.builds(
    Scenario,
    workloads=st.builds(
        Workloads,
        files=st.lists(names, min_size=1, max_size=3).map(tuple),
        walltime=st.sampled_from(["max", "requested"]),
        walltime_factor=numbers,
        cancelled=st.sampled_from(["leave-out", "withdraw"]),
        input_options=several,
    ),
    machine=machines,
    settings=settings,
    energy=st.booleans(),
    events=several,
    ignore_communication=st.booleans(),
    machine_states=st.none() | st.booleans(),
    schedule_trace=st.none() | st.booleans(),
    launch_time=st.floats(min_value=0, max_value=1e9),
    cleaning_time=st.floats(min_value=0, max_value=1e9),
)
choices = st.builds(
    Choice, names, st.dictionaries(names.filter(lambda key: "=" not in key), texts, max_size=3)
)
experiments = st.builds(
    Experiment,
    scenario=scenarios,
    actors=st.builds(
        Actors,
        scheduler=choices,
        users=st.none() | choices,
        scheduling_delay=st.floats(min_value=0, max_value=1e9),
    ),
    remarks=st.booleans(),
)
