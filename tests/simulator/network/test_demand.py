"""What tasks ask for of hosts, links and storages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from batsched_py.errors import RuleBroken
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.profiles import Parallel
from batsched_py.simulator.network.solver import Demand, Use, add_io


def test_what_is_sent_to_all_is_sent_and_received_by_storages() -> None:
    network: Any = SimpleNamespace(all_to_all=lambda hosts: SimpleNamespace(bytes={}, latency=0.0))
    demand = Demand(stored={1: 0.0, 2: 1.0, 9: 0.0})
    demand.send_to_all(network, [0, 1, 2], 5.0)
    assert demand.stored == {1: 20.0, 2: 21.0, 9: 0.0}


@pytest.mark.parametrize(
    ("use", "is_even"),
    [(Use(6.0, 6.0), True), (Use(6.0, 3.0, 2), True), (Use(6.0, 4.0, 2), False), (Use(6.0, 2.0, 1), True)],
)
def test_a_use_is_even_if_all_its_parts_are_alike(use: Use, is_even: bool) -> None:
    assert use.is_even == is_even


@pytest.mark.parametrize("hosts", ["3", "3-5"])
def test_an_io_job_has_as_many_hosts_as_its_profile_is_made_for(hosts: str) -> None:
    profiles: dict[str, Any] = {"io": Parallel((1.0, 1.0), (0.0, 2.0, 0.0, 0.0))}
    execution: Any = SimpleNamespace(
        io=(HostSet.parse(hosts), profiles["io"]), job=SimpleNamespace(id="w0!a"), frames=[]
    )
    with pytest.raises(RuleBroken, match=f"the IO job of job w0!a has {len(HostSet.parse(hosts))} hosts"):
        add_io(Demand(), execution, profiles, None)
    execution.io = HostSet.parse("3-4"), profiles["io"]
    add_io(demand := Demand(), execution, profiles, None)
    assert [tuple(each) for each in demand.flops] == [(3, 1.0), (4, 1.0)]
