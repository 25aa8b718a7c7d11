"""The policy test kit on machines of nodes."""

from __future__ import annotations

import pytest

from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.testing import findings
from batsched_py.testing.properties import PROPERTIES

OTHERS = [name for name in PROPERTIES if name != "works on nodes"]


class OnlyCounts(Scheduler):
    """Looks at the number of free hosts only, as was right on plain machines."""

    name = "only-counts"

    def schedule(self, cluster: Cluster) -> None:
        for job in list(cluster.queue):
            if job.size <= cluster.nb_free:
                cluster.start(job, cluster.free.lowest(job.size))


def test_that_a_policy_that_only_counts_hosts_is_found() -> None:
    found = findings(OnlyCounts, waived=OTHERS, examples=12, nodes=True)
    assert any("do not have free what the job asks for" in finding.fault for finding in found)
    assert any("are not all on nodes that the job may run on" in finding.fault for finding in found)
    assert all("    node n0: " in str(finding) for finding in found)


@pytest.mark.slow
@pytest.mark.parametrize("policy", sorted(SCHEDULERS.all()))
def test_that_all_policies_work_on_nodes_and_keep_their_promises(policy: str) -> None:
    promise = policy if policy in ("fcfs", "easy", "conservative") else None
    assert findings(policy, promise=promise, waived=OTHERS, examples=25, nodes=True) == []  # type: ignore[arg-type]
