"""``batsched-py batsim``: the built-in Batsim as a process of its own, with Batsim's options."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from batsched_py.cli.options import (
    SECONDS,
    choose_platform,
    communication_option,
    platform_options,
    read_workloads,
    workload_options,
)
from batsched_py.errors import InputError
from batsched_py.protocol.events import Settings
from batsched_py.simulation import simulate
from batsched_py.simulator import client
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import parse_roles
from batsched_py.workload.model import Workload
from batsched_py.workload.swf import WalltimeRule

#: What each of Batsim's levels lets through here; the messages themselves are the client's debug lines.
_LEVELS = {
    "quiet": {"batsched_py": logging.ERROR},
    "network-only": {client.__name__: logging.DEBUG},
    "information": {},
    "debug": {"batsched_py": logging.DEBUG},
}


@click.command("batsim", short_help="The built-in Batsim, with Batsim's options.")
@platform_options
@workload_options(required=False)
@click.option(
    "-e", "--export", "prefix", metavar="PREFIX", default="out", show_default=True, help="Where results go."
)
@click.option(
    "-s",
    "--socket-endpoint",
    "endpoint",
    metavar="ENDPOINT",
    default=client.DEFAULT_ENDPOINT,
    show_default=True,
    help="Where the decision process listens.",
)
@click.option(
    "--timeout",
    metavar="S",
    type=SECONDS,
    help="Give up when the decision process is silent for S seconds.  [default: wait for ever]",
)
@click.option(
    "-m", "--master-host", metavar="NAME", default="master_host", show_default=True, help="The host left out."
)
@click.option(
    "-r",
    "--add-role-to-hosts",
    "roles",
    metavar="HOST[,HOST...]:ROLE",
    multiple=True,
    help="Give hosts of the platform a role: master, compute_node or storage.",
)
@click.option("--mmax", metavar="N", type=click.IntRange(0), default=0, help="Keep the first N hosts only.")
@click.option(
    "--mmax-workload", is_flag=True, help="Keep as many hosts as the largest workload was made for."
)
@click.option(
    "--forward-profiles-on-submission", is_flag=True, help="Send each job's profile with its submission."
)
@click.option("--enable-dynamic-jobs", is_flag=True, help="Let the decision process register jobs.")
@click.option("--acknowledge-dynamic-jobs", is_flag=True, help="Announce registered jobs as submitted.")
@click.option("--enable-profile-reuse", is_flag=True, help="Keep the profiles of jobs that are over.")
@click.option("--sched-cfg", metavar="TEXT", default="", help="A text for the decision process.")
@click.option(
    "--sched-cfg-file", metavar="FILE", type=click.Path(path_type=Path), help="The same, from a file."
)
@communication_option
@click.option("--disable-schedule-tracing", is_flag=True, help="No effect: that file is never written.")
@click.option("--disable-machine-state-tracing", is_flag=True, help="No effect: that file is never written.")
@click.option(
    "--dump-execution-context", is_flag=True, help="Print the endpoint and the prefix as JSON, and exit."
)
@click.option(
    "-v",
    "--verbosity",
    type=click.Choice(list(_LEVELS)),
    default="information",
    show_default=True,
    help="What is logged; network-only logs the messages.",
)
@click.option("-q", "--quiet", is_flag=True, help="The same as -v quiet.")
def command(
    platform_file: Path | None,
    hosts: int | None,
    speed: float | None,
    workload_files: Sequence[Path],
    walltime_factor: float,
    walltime_rule: WalltimeRule,
    prefix: str,
    endpoint: str,
    timeout: float | None,
    master_host: str,
    roles: Sequence[str],
    mmax: int,
    mmax_workload: bool,
    forward_profiles_on_submission: bool,
    enable_dynamic_jobs: bool,
    acknowledge_dynamic_jobs: bool,
    enable_profile_reuse: bool,
    sched_cfg: str,
    sched_cfg_file: Path | None,
    ignore_communication: bool,
    disable_schedule_tracing: bool,
    disable_machine_state_tracing: bool,
    dump_execution_context: bool,
    verbosity: str,
    quiet: bool,
) -> None:
    """Simulate workloads on a machine, and ask a decision process over ZeroMQ what to do.

    Takes the options of Batsim 4, so a script that calls `batsim` can call `batsched-py batsim` instead.
    Where Batsim aborts, this says which rule was broken by which decision, and exits with code 1.

    \b
    Example, with a decision process in a second terminal:
      batsched-py serve -s easy
      batsched-py batsim -p platform.xml -w workload.json -e out
    """
    if dump_execution_context:
        click.echo(msgspec.json.encode(_execution_context(endpoint, prefix)))
        return
    for name, level in _LEVELS["quiet" if quiet else verbosity].items():
        logging.getLogger(name).setLevel(level)
    if enable_profile_reuse and not enable_dynamic_jobs:
        raise InputError("--enable-profile-reuse makes sense with --enable-dynamic-jobs only")
    settings = Settings(
        dynamic_jobs=enable_dynamic_jobs,
        acknowledge_dynamic_jobs=acknowledge_dynamic_jobs,
        profile_reuse=enable_profile_reuse,
        forward_profiles=forward_profiles_on_submission,
        scheduler_config=_scheduler_config(sched_cfg, sched_cfg_file),
    )
    workloads = read_workloads(workload_files, walltime_factor, walltime_rule)
    most = _limit(mmax, workloads if mmax_workload else ())
    platform = choose_platform(platform_file, hosts, speed, master_host, parse_roles(roles), most)
    if platform is None:
        raise InputError("a simulation needs a machine; give -p PLATFORM.xml or --hosts N")
    batsim = Batsim(platform, workloads, settings, Outputs(prefix), ignore_communication)
    with client.RemoteProcess(endpoint, timeout) as process:
        simulate(batsim, process)


def _execution_context(endpoint: str, prefix: str) -> dict[str, str | int | bool]:
    return {
        "socket_endpoint": endpoint,
        "redis_enabled": False,
        "redis_hostname": "127.0.0.1",
        "redis_port": 6379,
        "redis_prefix": "default",
        "export_prefix": prefix,
        "external_scheduler": True,
    }


def _scheduler_config(text: str, file: Path | None) -> str:
    if file is None:
        return text
    if text:
        raise InputError("both --sched-cfg and --sched-cfg-file are given; give one of them")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _limit(mmax: int, workloads: Sequence[Workload]) -> int:
    """How many hosts to keep at most; 0 keeps all."""
    sizes = [workload.nb_hosts for workload in workloads]
    if None in sizes:
        raise InputError("--mmax-workload: a workload does not say how large its machine was; use --mmax N")
    return min(filter(None, (mmax, max(filter(None, sizes), default=0))), default=0)
