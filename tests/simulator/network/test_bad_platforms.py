"""Networks that cannot be: one line says what is wrong, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.errors import InputError
from batsched_py.simulator.platform import read_platform
from tests.processes import call_here

MASTER = '<host id="master_host" speed="1Gf"/>'
TWO = '<host id="a" speed="1Gf"/>\n<host id="b" speed="1Gf"/>\n'
LINK = '<link id="l" bandwidth="1GBps" latency="1us"/>\n'
CLUSTER = '<cluster id="c" prefix="c" suffix="" radical="0-3" speed="1Gf" bw="1Gbps" lat="0" {}/>'
ZONES = (
    '<zone id="y" routing="Full"><host id="a" speed="1Gf"/></zone>\n'
    '<zone id="x" routing="Full"><host id="b" speed="1Gf"/></zone>\n' + LINK
)
ROUTE = '<route src="a" dst="b"><link_ctn id="l"/></route>'


def write(folder: Path, inside: str, routing: str = "Full") -> Path:
    path = folder / "platform.xml"
    path.write_text(
        f'<platform version="4.1">\n<zone id="z" routing="{routing}">{MASTER}\n{inside}</zone></platform>'
    )
    return path


@pytest.mark.parametrize(
    ("inside", "line", "complaint"),
    [
        (
            TWO + '<link id="l" bandwidth="0" latency="0"/>',
            5,
            "bandwidth of link 'l': a bandwidth must be more than 0",
        ),
        (TWO + '<link id="l" bandwidth="nan"/>', 5, "bandwidth of link 'l': 'nan' is not a bandwidth"),
        (TWO + '<link id="l" bandwidth="-1GBps"/>', 5, "'-1GBps' is not a bandwidth"),
        (TWO + '<link id="l" bandwidth="1e999GBps"/>', 5, "'1e999GBps' is not a bandwidth"),
        (
            TWO + '<link id="l" bandwidth="1GBps" latency="soon"/>',
            5,
            "latency of link 'l': 'soon' is not a latency",
        ),
        (TWO + '<link id="l" bandwidth="1GBps" latency="nan"/>', 5, "'nan' is not a latency"),
        (TWO + '<link id="l"/>', 5, "<link> 'l' lacks its attribute 'bandwidth'"),
        (TWO + LINK + LINK, 6, "there are two links called 'l'"),
        (TWO + '<link id="l" bandwidth="1GBps" sharing_policy="WIFI"/>', 5, "unknown sharing_policy 'WIFI'"),
        (
            TWO + '<link id="l" bandwidth="1GBps" bandwidth_file="t"/>',
            5,
            "bandwidth_file would change it with time",
        ),
        (TWO + LINK + ROUTE.replace("a", "q", 1).replace('"a"', '"q"'), 6, "called 'q'"),
        (TWO + ROUTE, 5, "there is no link called 'l'"),
        (TWO + LINK + '<route src="a" dst="b"/>', 6, "the route from 'a' to 'b' has no links"),
        (TWO + LINK + ROUTE + "\n" + ROUTE, 7, "the route from 'a' to 'b' is given twice"),
        (
            TWO + LINK + '<route src="a" dst="b"><link_ctn id="l" direction="UP"/></route>',
            6,
            "no direction 'UP'",
        ),
        (TWO + "<bypassRoute/>", 5, "<bypassRoute> is not supported"),
        (TWO + '<router id="a"/>', 5, "two hosts, routers or zones called 'a'"),
        (ZONES + '<route src="y" dst="x"><link_ctn id="l"/></route>', 6, "'y' is a zone; use <zoneRoute>"),
        (
            ZONES + '<zoneRoute src="y" dst="x" gw_src="b" gw_dst="a"><link_ctn id="l"/></zoneRoute>',
            6,
            "its gateway 'b' is no host or router of zone 'y'",
        ),
        (
            ZONES + '<zoneRoute src="y" dst="y" gw_src="a" gw_dst="a"><link_ctn id="l"/></zoneRoute>',
            6,
            "leads from a zone to itself",
        ),
        (
            ZONES + '<zoneRoute src="z" dst="y" gw_src="a" gw_dst="a"><link_ctn id="l"/></zoneRoute>',
            6,
            "is in zone 'z', but 'z' is not",
        ),
        (TWO + '<zone id="z" routing="Full"/>', 5, "two hosts, routers or zones called 'z'"),
        (TWO + '<zone id="y" routing="Wifi"/>', 5, "zone 'y' has the unknown routing 'Wifi'"),
        (
            TWO + '<cabinet id="k" prefix="k" suffix="" radical="1" speed="1f" bw="1Bps" lat="0"/>',
            5,
            "<cabinet> belongs",
        ),
        (CLUSTER.format('topology="RING"'), 3, "unknown topology 'RING'"),
        (CLUSTER.format('topology="TORUS" topo_parameters="3,3"'), 3, "has 9 places, but there are 4 hosts"),
        (CLUSTER.format('topology="FAT_TREE" topo_parameters="1;4"'), 3, "a fat tree needs LEVELS"),
        (
            CLUSTER.format('topology="FAT_TREE" topo_parameters="1;4;0;1"'),
            3,
            "'0' is not a list of numbers above 0",
        ),
        (
            CLUSTER.format('topology="DRAGONFLY" topo_parameters="4,1;1,1;1,1;1"'),
            3,
            "needs as many blades, not 1",
        ),
        (CLUSTER.format('bb_bw="0"'), 3, "bb_bw of cluster 'c': a bandwidth must be more than 0"),
    ],
)
def test_a_bad_network_is_refused_with_its_line(
    tmp_path: Path, inside: str, line: int, complaint: str
) -> None:
    path = write(tmp_path, inside)
    with pytest.raises(InputError) as error:
        read_platform(path)
    message = str(error.value)
    assert message.startswith(f"{path}: line {line}: ")
    assert complaint in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("inside", "routing", "complaint"),
    [
        (TWO + LINK, "Full", "there is no route from 'a' to 'b'"),
        (TWO + LINK + ROUTE.replace('"b"', '"master_host"'), "Floyd", "there is no route from 'a' to 'b'"),
        (TWO + LINK + ROUTE.replace('"b"', '"master_host"'), "Dijkstra", "there is no route from 'a' to 'b'"),
        (TWO + LINK, "None", "there is no route from 'a' to 'b'"),
        (ZONES, "Full", "there is no route from 'y' to 'x'"),
        (
            '<host id="a" speed="1Gf"/><zone id="y" routing="Full"><host id="b" speed="1Gf"/></zone>' + LINK,
            "Full",
            "'a' stands in zone 'z' beside other zones",
        ),
    ],
)
def test_a_route_that_is_missing_is_told_when_it_is_needed(
    tmp_path: Path, inside: str, routing: str, complaint: str
) -> None:
    network = read_platform(write(tmp_path, inside, routing)).network
    assert network is not None
    with pytest.raises(InputError, match=r"platform\.xml: ") as error:
        network.route(0, 1)
    assert complaint in str(error.value)


def test_hosts_of_different_worlds_have_no_route(tmp_path: Path) -> None:
    path = tmp_path / "platform.xml"
    path.write_text(
        f'<platform version="4.1"><zone id="z" routing="Vivaldi">{MASTER}<host id="b" speed="1f"/></zone>'
        '<zone id="y" routing="Vivaldi"><host id="c" speed="1f"/></zone><host id="a" speed="1f"/></platform>'
    )
    network = read_platform(path).network
    assert network is not None
    for pair in ((0, 1), (1, 2)):
        with pytest.raises(InputError, match="there is no route from"):
            network.route(*pair)


def configured(folder: Path, name: str, value: str) -> Path:
    path = folder / "platform.xml"
    path.write_text(
        f'<platform version="4.1">\n<config>\n<prop id="{name}" value="{value}"/></config>\n'
        f'<zone id="z" routing="Full">{MASTER}{TWO}{LINK}{ROUTE}</zone></platform>'
    )
    return path


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("surf/precision", "1e-3", "surf/precision is '1e-3' where only 1e-09 is simulated"),
        ("maxmin/precision", "0.1", "maxmin/precision is '0.1' where only 1e-05 is simulated"),
        ("precision/work-amount", "fine", "precision/work-amount is 'fine' where only 1e-05 is simulated"),
        ("maxmin/concurrency-limit", "2", "maxmin/concurrency-limit is '2' where only -1 is simulated"),
        ("host/solver", "bmf", "host/solver is 'bmf' where only fairbottleneck is simulated"),
        ("network/model", "CM02", "network/model is 'CM02': jobs need SimGrid's model ptask_L07"),
        ("network/TCP-gamma", "0", "network/TCP-gamma is '0' where it needs a number above 0"),
        ("network/loopback-bw", "nan", "network/loopback-bw is 'nan' where it needs a number above 0"),
        (
            "network/tcp-gamma",
            "65536",
            "network/tcp-gamma of <config> is neither simulated nor known to have no effect",
        ),
        (
            "nonsense/option",
            "1",
            "nonsense/option of <config> is neither simulated nor known to have no effect",
        ),
        ("plugin", "host_dvfs", "plugin of <config> is neither simulated nor known to have no effect"),
    ],
)
def test_a_property_that_would_change_what_is_not_simulated_is_refused(
    tmp_path: Path, name: str, value: str, complaint: str
) -> None:
    path = configured(tmp_path, name, value)
    with pytest.raises(InputError) as error:
        read_platform(path)
    assert str(error.value).startswith(f"{path}: line 3: {complaint}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("network/bandwidth-factor", "0.9"),
        ("network/weight-S", "20000"),
        ("contexts/stack-size", "16"),
        ("tracing/filename", "x.trace"),
        ("host/model", "ptask_L07"),
        ("surf/precision", "1e-9"),
        ("maxmin/precision", "0.00001"),
        ("host/solver", "fairbottleneck"),
    ],
)
def test_a_property_without_effect_on_parallel_tasks_changes_nothing(
    tmp_path: Path, name: str, value: str
) -> None:
    assert read_platform(configured(tmp_path, name, value)).network is not None


def test_a_command_says_it_in_one_line(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.json"
    jobs.write_text(
        '{"nb_res": 2, "jobs": [{"id": "1", "subtime": 0, "res": 2, "profile": "p"}], '
        '"profiles": {"p": {"type": "parallel_homogeneous", "cpu": 1, "com": 1}}}'
    )
    path = write(tmp_path, TWO + LINK)
    code, _, err = call_here(["run", "-w", jobs, "-p", path, "-s", "fcfs", "-e", tmp_path / "out"])
    assert code != 0
    assert err == f"batsched-py: error: {path}: there is no route from 'a' to 'b'\n"
