from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.events import SimulationBegins
from batsched_py.protocol.jobs import Host
from batsched_py.simulator.platform import (
    Platform,
    PlatformHost,
    PowerState,
    Role,
    SleepState,
    parse_roles,
    read_platform,
)
from batsched_py.simulator.simgrid_xml import parse_radical, parse_speed
from batsched_py.workload.swf.conventions import LOG_SPEED

OWN = Path(__file__).parents[1] / "data" / "golden"
MASTER = '<host id="master_host" speed="1Gf"/>'
HOST = '<host id="h" speed="1Gf"/>'


@pytest.fixture
def write(tmp_path: Path):
    """Writes the inside of a zone (or, when it begins with ``<?xml``, a whole file) and returns its path."""

    def write(text: str) -> Path:
        path = tmp_path / "platform.xml"
        if not text.lstrip().startswith("<?xml"):
            text = f'<platform version="4.1"><zone id="z" routing="Full">{text}</zone></platform>'
        path.write_text(text)
        return path

    return write


def announced(folder: Path) -> tuple[list[Host], list[Host]]:
    """The hosts that Batsim showed when the recorded simulation began."""
    with (folder / "conversation.jsonl").open() as lines:
        message = BATSIM4.codec().decode_request(json.loads(next(lines))["message"].encode())
    (begins,) = message.events
    assert isinstance(begins, SimulationBegins)
    return begins.hosts, begins.storages


def recordings(root: Path) -> list[Path]:
    return sorted(file.parent for file in root.glob("*/conversation.jsonl"))


def platform_file(folder: Path) -> Path:
    (path,) = folder.glob("*.xml")
    return path


def names(hosts: list[PlatformHost]) -> list[str]:
    return [host.name for host in hosts]


def refusal(path: Path, **options) -> str:
    with pytest.raises(InputError) as error:
        read_platform(path, **options)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)
    return str(error.value)


# What the real Batsim made of the same files


@pytest.mark.parametrize("folder", recordings(OWN), ids=lambda folder: folder.name)
def test_hosts_are_those_batsim_announced(folder: Path) -> None:
    assert read_platform(platform_file(folder)).as_protocol() == announced(folder)


def test_hosts_are_those_batsim_announced_for_its_own_examples(shared: Path) -> None:
    folders = recordings(shared / "golden" / "batsim-examples")
    assert folders
    for folder in folders:
        assert read_platform(platform_file(folder)).as_protocol() == announced(folder), folder.name


def test_power_states_of_a_recorded_platform() -> None:
    platform = read_platform(OWN / "power60_sleeper" / "power8.xml")
    assert platform.hosts[0].pstates == [
        PowerState(1e9, 95, 120, 190),
        PowerState(0.5e9, 93, 100, 150),
        PowerState(1, 9, 9, 9),
        PowerState(0.1, 100, 100, 100),
        PowerState(0.05, 125, 125, 125),
    ]
    assert platform.hosts[0].sleep_states == {2: SleepState(sleep=2, switch_off=3, switch_on=4)}
    assert platform.hosts[0].has_power


# Names, numbers and properties


def test_hosts_are_numbered_by_name_as_text(write) -> None:
    path = write('<cluster id="c" prefix="a" suffix=".org" radical="0-2,10,100" speed="1Gf"/>' + MASTER)
    hosts = read_platform(path).hosts
    assert names(hosts) == ["a0.org", "a1.org", "a10.org", "a100.org", "a2.org"]
    assert [host.id for host in hosts] == [0, 1, 2, 3, 4]


def test_cabinets_and_peers_are_hosts(write) -> None:
    path = write(
        '<zone id="y" routing="Cluster">'
        '<cabinet id="c" prefix="c-" suffix="" radical="1-2" speed="2Gf" bw="1Gbps" lat="1us"/></zone>'
        '<zone id="x" routing="Vivaldi">'
        '<peer id="p" coordinates="0 0 1" speed="3Gf" bw_in="1Gbps" bw_out="1Gbps"/></zone>' + MASTER
    )
    assert [(host.name, host.speed) for host in read_platform(path).hosts] == [
        ("c-1", 2e9),
        ("c-2", 2e9),
        ("p", 3e9),
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_peer_beside_a_host_is_refused_as_simgrid_does(write, order: tuple[int, int]) -> None:
    parts = (
        '<host id="h" coordinates="0 0 0" speed="1Gf"/>',
        '<peer id="p" coordinates="0 0 1" speed="3Gf" bw_in="1Gbps" bw_out="1Gbps"/>',
    )
    path = write(f'<zone id="x" routing="Vivaldi">{"".join(parts[place] for place in order)}</zone>' + MASTER)
    with pytest.raises(InputError, match="SimGrid allows no <peer> in a zone with a <host>"):
        read_platform(path)


def test_old_spelling_of_zones_and_blank_lines_before_the_declaration(write) -> None:
    path = write(
        "\n\n<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://nowhere.invalid/simgrid.dtd">'
        '<platform version="4"><config id="General"><prop id="contexts/guard-size" value="0"/></config>'
        f'<AS id="z" routing="Full">{MASTER}<host id="h" speed="1Gf"/></AS></platform>'
    )
    assert read_platform(path).hosts[0].zone_properties == {}


def test_version_3_calls_the_speed_power(write) -> None:
    path = write(
        '<?xml version="1.0"?><platform version="3"><AS id="z" routing="Full">'
        f'{MASTER.replace("speed", "power")}<host id="h" power="5E8"/></AS></platform>'
    )
    assert read_platform(path).hosts[0].speed == 5e8


def test_properties_of_an_inner_zone_win(write) -> None:
    path = write(
        f'<prop id="site" value="A"/><prop id="room" value="1"/>{MASTER}'
        '<zone id="y" routing="Full"><prop id="room" value="2"/><host id="h" speed="1Gf"/></zone>'
    )
    assert read_platform(path).hosts[0].zone_properties == {"site": "A", "room": "2"}


def test_properties_of_a_cluster_are_its_hosts_and_its_zones(write) -> None:
    path = write(
        '<cluster id="c" prefix="a" suffix="" radical="0-0" speed="1Gf" core="4">'
        '<prop id="memory" value="64"/></cluster>' + MASTER
    )
    (host,) = read_platform(path).hosts
    assert host.properties == {"role": "", "memory": "64"}
    assert host.zone_properties == {"memory": "64"}
    assert host.cores == 4


def test_first_pstate_decides_the_speed_unless_told_otherwise(write) -> None:
    path = write(f'{MASTER}<host id="a" speed="3Gf, 2Gf"/><host id="b" speed="3Gf, 2Gf" pstate="1"/>')
    assert [host.speed for host in read_platform(path).hosts] == [3e9, 2e9]


def test_host_without_watts_has_no_power(write) -> None:
    (host,) = read_platform(write(f'{MASTER}<host id="h" speed="1Gf"/>')).hosts
    assert not host.has_power
    assert host.pstates == [PowerState(1e9, 0, 0, 0)]


def test_mmax_keeps_the_first_computing_hosts(write) -> None:
    path = write(
        f'{MASTER}<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/><host id="c" speed="1Gf"/>'
        '<host id="disk" speed="1Gf"><prop id="role" value="storage"/></host>'
    )
    platform = read_platform(path, mmax=2)
    assert names(platform.hosts) == ["a", "b"]
    assert [(host.id, host.name) for host in platform.storages] == [(2, "disk")]
    assert len(read_platform(path, mmax=0).hosts) == 3


def test_mmax_beyond_the_platform_is_refused(write) -> None:
    assert "--mmax" in refusal(write(f'{MASTER}<host id="h" speed="1Gf"/>'), mmax=2)


# Roles


def test_master_named_otherwise(write) -> None:
    path = write('<host id="front" speed="1Gf"/><host id="h" speed="1Gf"/>')
    assert names(read_platform(path, master_host="front").hosts) == ["h"]
    assert names(read_platform(path, roles={"front": "master"}).hosts) == ["h"]


def test_storage_given_by_option_shows_its_role(write) -> None:
    path = write(f'{MASTER}<host id="h" speed="1Gf"/><host id="disk" speed="0f"/>')
    platform = read_platform(path, roles=parse_roles(["disk:storage"]))
    assert platform.as_protocol() == (
        [Host(0, "h", properties={"role": ""})],
        [Host(1, "disk", properties={"role": "storage"})],
    )
    assert platform.storages[0].role is Role.STORAGE


@pytest.mark.parametrize("option", ["disk", "disk:tape", ":storage", "disk:storage:master"])
def test_malformed_role_option_is_refused(option: str) -> None:
    with pytest.raises(InputError, match="HOST"):
        parse_roles([option])


@pytest.mark.parametrize(
    ("zone", "roles", "complaint"),
    [
        (HOST, {}, "there is no master host"),
        (MASTER + HOST, {"g": "storage"}, "no host 'g'"),
        (
            MASTER
            + '<host id="h" speed="1Gf"/><host id="m" speed="1f"><prop id="role" value="master"/></host>',
            {},
            "both master",
        ),
        (
            MASTER
            + '<host id="h" speed="1Gf"/><host id="m" speed="1f"><prop id="role" value="tape"/></host>',
            {},
            "'tape' is unknown",
        ),
        (
            MASTER
            + '<host id="h" speed="1Gf"/><host id="m" speed="1f"><prop id="role" value="storage"/></host>',
            {"m": "storage"},
            "give it once",
        ),
    ],
)
def test_roles_that_cannot_be_are_refused(write, zone: str, roles: dict[str, str], complaint: str) -> None:
    assert complaint in refusal(write(zone), roles=roles)


# Files that cannot be used


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ('<host id="h"/>', "lacks its attribute 'speed'"),
        ('<host speed="1Gf"/>', "lacks its attribute 'id'"),
        ('<host id="h" speed="1 GHz"/>', "host 'h': '1 GHz' is not a speed"),
        ('<host id="h" speed="-1Gf"/>', "'-1Gf' is not a speed"),
        ('<host id="h" speed="0f"/>', "host 'h': its speed in pstate 0 must be more than 0"),
        ('<host id="h" speed="1Gf,0f"/>', "pstate 1 must be more than 0"),
        ('<host id="h" speed="1Gf,"/>', "'' is not a speed"),
        ('<host id="h" speed="1e308Gf"/>', "too large"),
        ('<host id="h" speed="1Gf" pstate="1"/>', "begins in pstate 1 but has 1 speeds"),
        ('<host id="h" speed="1Gf" core="0"/>', "has no core"),
        ('<host id="h" speed="1Gf" core="many"/>', "core 'many'"),
        ('<host id="h" speed="1Gf" speed_file="x.trace"/>', "not simulated"),
        ('<trace_connect kind="SPEED" trace="t" element="h"/><host id="h" speed="1Gf"/>', "not simulated"),
        ('<host id="h" speed="1Gf"/><host id="h" speed="1Gf"/>', "host 'h' is declared twice"),
        ('<host id="h" speed="1Gf"><prop id="a"/></host>', "lacks its attribute 'value'"),
        ('<cluster id="c" prefix="" suffix="" radical="3-1" speed="1Gf"/>', "cluster 'c'"),
        ('<cluster id="c" prefix="" suffix="" radical="a-b" speed="1Gf"/>', "radical 'a-b'"),
        ('<include file="other.xml"/>', "<include>"),
        ("", "no host to compute on"),
    ],
)
def test_unusable_hosts_are_refused(write, host: str, complaint: str) -> None:
    assert complaint in refusal(write(MASTER + host))


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("wattage_per_state", "1:2", "describes 1 pstates, but there are 4 speeds"),
        ("wattage_per_state", "1:2, 1:2, 1:2, 1", "'1' where it needs IDLE"),
        ("wattage_per_state", "1:2, 1:2, 1:2, 1:2:3:4", "'1:2:3:4' where it needs IDLE"),
        ("wattage_per_state", "1:2, 1:2, 1:2, 1:x", "'x' where it needs a power"),
        ("wattage_per_state", "1:2, 1:2, 1:2, 1:-2", "'-2' where it needs a power"),
        ("wattage_off", "little", "'little' where it needs a power"),
        ("sleep_pstates", "1:2", "'1:2' where it needs SLEEP"),
        ("sleep_pstates", "1:2:9", "the pstates are 0 to 3"),
        ("sleep_pstates", "1:2:x", "the pstates are 0 to 3"),
        ("sleep_pstates", "1:2:3,1:2:3", "twice"),
        ("sleep_pstates", "1:2:3,2:3:3", "for sleeping and for switching"),
    ],
)
def test_bad_power_properties_are_refused(write, key: str, value: str, complaint: str) -> None:
    path = write(f'{MASTER}<host id="h" speed="3f,2f,1f,1f"><prop id="{key}" value="{value}"/></host>')
    message = refusal(path)
    assert complaint in message
    assert "host 'h': " + key in message


def test_sleeping_host_may_have_no_speed_but_switching_takes_time(write) -> None:
    prop = '<prop id="sleep_pstates" value="1:2:3"/>'
    assert read_platform(write(f'{MASTER}<host id="h" speed="1Gf,0f,1f,1f">{prop}</host>'))
    assert "pstate 3" in refusal(write(f'{MASTER}<host id="h" speed="1Gf,0f,1f,0f">{prop}</host>'))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<?xml version='1.0'?><platform version='4'><zone></platform>", "not well-formed XML"),
        ("<?xml version='1.0'?><workload/>", "no SimGrid platform"),
        ("<?xml version='1.0'?><platform version='2'/>", "version '2'"),
        ("<?xml version='1.0'?><platform/>", "version ''"),
        ("<?xml version='1.0' encoding='klingon'?><platform/>", "not well-formed XML"),
    ],
)
def test_files_that_are_no_platform_are_refused(write, text: str, complaint: str) -> None:
    assert complaint in refusal(write(text))


def test_missing_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "absent.xml")


# Speeds, radicals, watts


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("98.095Mf", 98.095e6),
        ("1f", 1.0),
        ("2kf", 2e3),
        ("1Ef", 1e18),
        ("1e-9Mf", 1e-3),
        ("0.1639344262295082f", 0.1639344262295082),
        (" 1e9 ", 1e9),
        ("3gigaflops", 3e9),
        ("0", 0.0),
    ],
)
def test_speeds(text: str, speed: float) -> None:
    assert parse_speed(text) == pytest.approx(speed, rel=1e-15)


@pytest.mark.parametrize("text", ["", "f", "1g", "1 Gf", "nan", "inf", "0x10f", "1Gf 2Gf"])
def test_what_is_no_speed(text: str) -> None:
    with pytest.raises(ValueError, match="not a speed"):
        parse_speed(text)


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 20)), min_size=1))
def test_radicals_list_their_intervals_in_order(groups: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" if more else str(first) for first, more in groups)
    assert parse_radical(text) == [
        number for first, more in groups for number in range(first, first + more + 1)
    ]


def test_power_is_linear_in_the_load_but_for_an_idle_host() -> None:
    pstate = PowerState(1e9, idle_watts=95, epsilon_watts=120, full_watts=190)
    assert [pstate.watts(load) for load in (0, 0.5, 1)] == [95, 155, 190]


def test_power_state_without_speed_is_always_fully_loaded() -> None:
    assert PowerState(0.0, idle_watts=9, epsilon_watts=10, full_watts=11).watts(0) == 11


def test_host_computes_in_the_states_that_are_neither_sleep_nor_transition() -> None:
    host = PlatformHost(0, "h", [PowerState(1.0)] * 5, sleep_states={2: SleepState(2, 3, 4)})
    assert [pstate for pstate in range(-1, 7) if host.computes_in(pstate)] == [0, 1]


# Equal hosts


def test_homogeneous_hosts_are_relative_to_the_machine_of_the_log() -> None:
    platform = Platform.homogeneous(12, speed=2)
    assert [(host.id, host.name) for host in platform.hosts[::11]] == [(0, "host0"), (11, "host11")]
    assert platform.hosts[5].speed == 2 * LOG_SPEED
    assert platform.as_protocol()[0][3] == Host(3, "host3", properties={"role": ""})


@pytest.mark.parametrize(("count", "speed"), [(0, 1.0), (4, 0.0), (4, float("nan")), (4, float("inf"))])
def test_impossible_homogeneous_platform_is_refused(count: int, speed: float) -> None:
    with pytest.raises(InputError):
        Platform.homogeneous(count, speed)
