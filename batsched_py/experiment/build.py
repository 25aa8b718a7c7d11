"""From an experiment to what is simulated and who decides: files are read, objects are made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from batsched_py.decision import observers
from batsched_py.decision.process import DecisionProcess, Outlook
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.experiment.value import Failures, OnFailure, OutsideFiles
from batsched_py.outside.curve import CURVES, NOTHING_KNOWN, Known, read_curve
from batsched_py.plugins import PYBATSIM
from batsched_py.protocol.events import Event, Settings
from batsched_py.protocol.jobs import Host
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.schedulers.decisions import HEADER, remark_writer
from batsched_py.settings import pairs_in, settings_of
from batsched_py.simulator.outputs import NewFile, OutputFile, Outputs
from batsched_py.simulator.platform import Platform, parse_roles, read_platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import USERS, Behaviour, UsersOf
from batsched_py.users.rigid import Cancelling
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload, as_jobs, number_of
from batsched_py.workload.read import read_workload

if TYPE_CHECKING:
    from batsched_py.decision.pybatsim import PyBatsimProcess
    from batsched_py.decision.submissions import FailureRule
    from batsched_py.engines.python import Batsim
    from batsched_py.outside.failures import Outage
    from batsched_py.simulator.network.routing import SimpleNetwork
    from batsched_py.workload.requests import NodeWords
    from batsched_py.workload.swf.log import SwfLog


def with_failure_rule(experiment: Experiment) -> Experiment:
    """The experiment with what becomes of jobs on hosts that fail, if nodes fail and nobody says it."""
    failing, restarting = experiment.scenario.failing, experiment.actors.restarting
    if restarting.on_failure is not None or (failing.failures is None and failing.failure_trace is None):
        return experiment
    restarting = replace(restarting, on_failure="resubmit")
    return replace(experiment, actors=replace(experiment.actors, restarting=restarting))


def failure_rule(restarting: OnFailure) -> FailureRule | None:
    """What becomes of jobs on hosts that fail."""
    for setting in settings_of(OnFailure) if restarting.on_failure != "checkpoint" else ():
        if setting.name.startswith("checkpoint_") and getattr(restarting, setting.name) != setting.default:
            raise InputError(f"{setting.option.flags[-1]} is for --on-failure checkpoint; give it too")
    if restarting.on_failure is None:
        return None
    from batsched_py.decision.submissions import FailureRule
    from batsched_py.outside.failures import Checkpoints

    saves = Checkpoints(restarting.checkpoint_interval, restarting.checkpoint_overhead)
    return FailureRule(
        resubmits=restarting.on_failure != "kill",
        checkpoints=saves if restarting.on_failure == "checkpoint" else None,
    )


def failures_of(
    failing: Failures, platform: Platform, workloads: Sequence[Workload]
) -> list[Iterator[Outage]]:
    """The failures of the machine, of each node or one by one."""
    if failing.failures is None and failing.failure_trace is None:
        if failing.mtbf is not None:
            raise InputError("--mtbf is for failures at random; give --failures exponential or weibull too")
        return []
    if failing.failures is not None and failing.failure_trace is not None:
        raise InputError("both --failures and --failure-trace say when nodes fail; give one of them")
    from batsched_py.outside.failures import RandomFailures, read_trace
    from batsched_py.outside.tables import Units

    units = Units(platform.as_protocol()[0])
    if failing.failure_trace is not None:
        return [iter([outage]) for outage in read_trace(failing.failure_trace, units)]
    if failing.mtbf is None or failing.failures is None:
        raise InputError("--failures needs --mtbf S, the mean time from a repair to the next failure")
    if not 1 <= failing.mtbf < inf:
        raise InputError(f"--mtbf must be a second at least, not {failing.mtbf:g}")
    if failing.failures_until is not None and not 0 <= failing.failures_until < inf:
        raise InputError(f"--failures-until must be a time that comes, not {failing.failures_until:g}")
    law = RandomFailures(
        failing.failures, failing.mtbf, failing.repair_time, failing.weibull_shape, failing.failure_seed
    )
    until = failing.failures_until
    if until is None:
        submissions = [as_jobs(workload.jobs).submission_times for workload in workloads]
        last = max((float(times.max()) for times in submissions if len(times)), default=0.0)
        until = max(2 * last, 86400.0)
    return law.outages(units, until)


def outlook_of(files: OutsideFiles) -> Outlook | None:
    """What tells it to a machine, if anything is said; the files are read when the hosts are known."""
    known = read_curves(files)
    if files.closures is None and known is NOTHING_KNOWN:
        if files.outside_period is not None:
            raise InputError(
                "--outside-period is for --price, --carbon, --temperature and --power-cap; give one of them"
            )
        return None

    def outlook(hosts: Sequence[Host]) -> Known:
        if files.closures is None:
            return known

        from batsched_py.outside.closures import read_closures

        return replace(known, closures=tuple(read_closures(files.closures, hosts).all))

    return outlook


def read_curves(files: OutsideFiles) -> Known:
    """What the files say of prices, carbon, temperature and the power that may be drawn."""
    named = {name: getattr(files, name) for name in CURVES}
    curves: dict[str, Any] = {
        name: read_curve(file, files.outside_period) for name, file in named.items() if file is not None
    }
    return Known(**curves) if curves else NOTHING_KNOWN


class Given(Struct, frozen=True):
    """Objects that a Python program gives for the actors, where their names are not enough to find them."""

    policy: Scheduler | None = None
    behaviour: Behaviour | None = None
    monitors: tuple[observers.Monitor, ...] = ()
    data: tuple[observers.AdditionalData, ...] = ()


#: The largest share of jobs that may be larger than the machine without anybody saying so.
MOST_LARGER = 0.1

#: So few of them are no reason to refuse a workload, such as one that was written by hand.
FEW_LARGER = 10

#: Scheduler and users are found by their names.
NOTHING_GIVEN = Given()


def build(
    experiment: Experiment,
    workloads: Sequence[Workload],
    prefix: str,
    new_file: NewFile = OutputFile,
    given: Given = NOTHING_GIVEN,
) -> tuple[Setup, DecisionProcess | PyBatsimProcess, Outputs]:
    """What is simulated, the decision process, and the files, ``PREFIX_jobs.csv`` and so on."""
    platform = read_machine(experiment.scenario.machine, workloads)
    check_sizes(workloads, platform, experiment.scenario.machine.reject_larger)
    experiment = with_failure_rule(experiment)
    experiment = replace(experiment, actors=with_users(experiment.actors, workloads, given))
    process = new_process(experiment.actors, workloads, given)
    if experiment.remarks and not isinstance(process, DecisionProcess):
        raise InputError("a scheduler of PyBatsim cannot leave remarks; leave out --remarks")
    if experiment.decisions and not isinstance(process, DecisionProcess):
        raise InputError("the decisions of a scheduler of PyBatsim cannot be measured; leave out --decisions")
    static = workloads if experiment.actors.users is None else ()
    scenario = with_needs(experiment.simulated, process.needs)
    setup = new_setup(scenario, platform, static, failing_for=workloads)
    setup = replace(setup, known=read_curves(experiment.actors.outside))
    outputs = Outputs(
        prefix, scenario.traces_machine_states, new_file, scenario.links, bool(scenario.schedule_trace)
    )
    _write_absences(experiment, platform, workloads, outputs)
    if experiment.remarks and isinstance(process, DecisionProcess):
        process.heed(remark_writer(outputs.open("remarks", HEADER)))
    if _have_dependencies(workloads):
        if not isinstance(process, DecisionProcess):
            raise InputError("a scheduler of PyBatsim does not know jobs that wait for others")
        from batsched_py.ledger import holds

        process.on_release(holds.release_writer(outputs.open("held", holds.RELEASES_HEADER)))
    if experiment.decisions and isinstance(process, DecisionProcess):
        process.meter = partial(observers.measuring, outputs.open("decisions", observers.DECISIONS_HEADER))
    if isinstance(process, observers.ObservedProcess):
        process.record(outputs.open)
    return setup, process, outputs


def with_users(actors: Actors, workloads: Sequence[Workload], given: Given = NOTHING_GIVEN) -> Actors:
    """The same, but with users who submit jobs as recorded where only users can do what is asked for.

    That is to withdraw jobs, and to submit jobs again that failed or were put back into the queue.
    """
    if actors.users is None and (
        _has_cancelled(workloads) or actors.restarting.on_failure or _requeues(actors.scheduler, given)
    ):
        return replace(actors, users=Choice("rigid"))
    return actors


def _write_absences(
    experiment: Experiment, platform: Platform, workloads: Sequence[Workload], outputs: Outputs
) -> None:
    """Write down which hosts fail and which are closed, if any do or are."""
    failing, closures = experiment.scenario.failing, experiment.actors.outside.closures
    if failing.failures is None and failing.failure_trace is None and closures is None:
        return
    from batsched_py.outside.closures import read_closures
    from batsched_py.outside.failures import ABSENCES_HEADER, absence_lines

    hosts = platform.as_protocol()[0]
    closed = () if closures is None else read_closures(closures, hosts).all
    write = outputs.open("absences", ABSENCES_HEADER)
    outages = chain.from_iterable(failures_of(failing, platform, workloads))
    for line in absence_lines(outages, closed):
        write(line)


def with_needs(scenario: Scenario, needs: Settings) -> Scenario:
    """The scenario with everything allowed that the decision process needs."""
    wanted = {name: True for name, value in asdict(needs).items() if value is True}
    return replace(scenario, settings=replace(scenario.settings, **wanted))


def new_process(
    actors: Actors,
    workloads: Sequence[Workload] = (),
    given: Given = NOTHING_GIVEN,
) -> DecisionProcess | PyBatsimProcess:
    """The decision process; if it has users, they submit the jobs of the workloads."""
    scheduler, rule = actors.scheduler, failure_rule(actors.restarting)
    if given.policy is None and scheduler.name.startswith(PYBATSIM):
        observing = actors.monitors or actors.outside.data
        refused = {
            "kills and restarts jobs itself; leave out --failures, --on-failure": rule,
            "knows nothing of closures, prices, carbon or temperature": outlook_of(actors.outside),
            "decides without monitors and additional data": observing or given != NOTHING_GIVEN,
            "decides without users and without a scheduling delay": actors.users or actors.scheduling_delay,
        }
        for reason, is_asked in refused.items():
            if is_asked:
                raise InputError(f"a scheduler of PyBatsim {reason}")
        return _new_pybatsim(scheduler)
    policy = given.policy or SCHEDULERS.create(scheduler.name, scheduler.options)
    users: UsersOf | tuple[()] = ()
    if actors.users is not None:
        behaviour = given.behaviour or USERS.create(actors.users.name, actors.users.options)
        if _has_cancelled(workloads):
            around = Cancelling()
            around.inner = behaviour  # type: ignore[misc]
            behaviour = around
        users = UsersOf(behaviour, workloads)
    return observed(
        actors,
        given,
        policy,
        users,
        actors.scheduling_delay,
        rule,
        outlook_of(actors.outside),
        remembers_ends=not workloads or given != NOTHING_GIVEN or _have_dependencies(workloads),
    )


def observed(actors: Actors, given: Given, *arguments: Any, **options: Any) -> DecisionProcess:
    """A decision process, with the monitors and the additional data if there are any."""
    if not (actors.monitors or actors.outside.data or given.monitors or given.data):
        return DecisionProcess(*arguments, **options)
    monitors = [*(observers.MONITORS.create(name, {}) for name in actors.monitors), *given.monitors]
    data = [*(observers.DATA.create(name, {}) for name in actors.outside.data), *given.data]
    return observers.ObservedProcess(*arguments, monitors=monitors, data=data, **options)


def _requeues(scheduler: Choice, given: Given) -> bool:
    """Whether a policy puts jobs back into the queue."""
    if given.policy is None and scheduler.name.startswith(PYBATSIM):
        return False
    return (given.policy or SCHEDULERS.create(scheduler.name, scheduler.options)).requeues


def _have_dependencies(workloads: Sequence[Workload]) -> bool:
    return any(have_dependencies(workload.jobs) for workload in workloads)


def _has_cancelled(workloads: Sequence[Workload]) -> bool:
    """Whether users have to withdraw jobs that were cancelled while they waited."""
    return any(workload.has_cancelled for workload in workloads)


def check_withdrawals(workloads: Sequence[Workload]) -> None:
    """Refuse workloads with jobs that are to be withdrawn, for a simulator that submits them itself."""
    if _has_cancelled(workloads):
        raise InputError("--cancelled withdraw needs users who withdraw jobs; `batsched-py run` has them")


def _new_pybatsim(scheduler: Choice) -> PyBatsimProcess:
    """A scheduler of the PyBatsim that is installed: version 4 is a package called ``pybatsim``."""
    from batsched_py.decision import pybatsim

    is_new = find_spec("pybatsim") is not None
    kind = pybatsim.PyBatsim4Process if is_new else pybatsim.PyBatsim3Process
    return kind(scheduler.name, scheduler.options)


def new_setup(
    scenario: Scenario,
    platform: Platform,
    workloads: Sequence[Workload],
    for_batsim5: bool = False,
    failing_for: Sequence[Workload] | None = None,
) -> Setup:
    """What is simulated: the machine, the jobs of the workloads, and what is allowed.

    With ``for_batsim5``, files of external events are those of Batsim 5, and storages are found by name as it
    does. Failures last as long as the submissions of ``failing_for``, where those are not the workloads.
    """
    settings = scenario.settings
    sends = platform.network is not None and not scenario.ignore_communication
    if scenario.links and not (sends or settings.compute_sharing):
        raise InputError(
            "--links records what jobs share, and here they share nothing; give the machine a network with "
            "--bandwidth or a platform file, or leave out --links"
        )
    if settings.profile_reuse and not settings.dynamic_jobs:
        raise InputError("--enable-profile-reuse makes sense with --enable-dynamic-jobs only")
    events = _read_events(scenario, for_batsim5)
    failures = partial(
        _failures, scenario.failing, platform, workloads if failing_for is None else failing_for
    )
    return Setup(
        platform,
        workloads,
        settings,
        ignore_communication=scenario.ignore_communication,
        energy=scenario.energy,
        events=events,
        failures=failures if any(True for _ in failures()) else None,
        launch_time=scenario.launch_time,
        cleaning_time=scenario.cleaning_time,
        storages_by_name=for_batsim5,
        late_jobs_stay=scenario.workloads.walltime == "estimate",
    )


def _failures(failing: Failures, platform: Platform, workloads: Sequence[Workload]) -> Iterator[Event]:
    """The events of failures, made as they are asked for."""
    if not (outages := failures_of(failing, platform, workloads)):
        return iter(())
    from batsched_py.outside.failures import as_events

    return as_events(outages)


def _read_events(scenario: Scenario, generic: bool) -> list[list[Event]]:
    if not scenario.events:
        return []
    from batsched_py.simulator.agenda import read_events, read_generic_events

    if generic:
        return [read_generic_events(file, f"ee{number}") for number, file in enumerate(scenario.events)]
    return [read_events(file, scenario.settings.forward_unknown_events) for file in scenario.events]


def new_batsim(
    scenario: Scenario,
    platform: Platform,
    workloads: Sequence[Workload],
    prefix: str | None,
    outputs: Callable[..., Outputs] = Outputs,
    for_batsim5: bool = False,
) -> Batsim:
    """The built-in Batsim for a decision process elsewhere; without a prefix it writes no files."""
    from batsched_py.engines.python import Batsim

    check_withdrawals(workloads)
    setup = new_setup(scenario, platform, workloads, for_batsim5)
    trace = bool(scenario.schedule_trace)
    return Batsim(
        setup, outputs(prefix, scenario.traces_machine_states, links=scenario.links, schedule_trace=trace)
    )


def read_workloads(
    workloads: Workloads, logs: Mapping[int, SwfLog] | None = None, words: NodeWords | None = None
) -> list[Workload]:
    """The workloads in the files, named ``w0``, ``w1``, ... as Batsim does.

    ``logs`` that are already in memory are not read again; each has the place of its file as its key. With
    the ``words`` of a machine of nodes, jobs of logs ask for what the log says.
    """
    if workloads.walltime != "max" and workloads.walltime_factor != Workloads().walltime_factor:
        raise InputError("--walltime-factor is for --walltime max; give both, or none of them")
    rule = workloads.walltime_factor, workloads.walltime, workloads.cancelled
    sizes = workloads.processors
    options = pairs_in(workloads.input_options, "-i")
    further = words, workloads.preceding, workloads.attributes
    read = []
    for number, file in enumerate(workloads.files):
        if logs and number in logs:
            from batsched_py.workload.swf.workload import swf_to_workload

            read.append(swf_to_workload(logs[number], f"w{number}", *rule, *further, sizes))
        else:
            kind = workloads.log_kind
            read.append(read_workload(file, f"w{number}", *rule, options, *further, kind, sizes))
    if workloads.ties == "numbers":
        for workload in read:
            workload.jobs = jobs = as_jobs(workload.jobs)
            jobs.tie = number_of
    return read


def read_inputs(scenario: Scenario) -> tuple[list[Workload], Platform]:
    """The workloads of a scenario and the machine on which they are to run."""
    workloads = read_workloads(scenario.workloads, words=words_of(scenario.machine))
    return workloads, read_machine(scenario.machine, workloads)


def read_machine(machine: Machine, workloads: Sequence[Workload]) -> Platform:
    """The machine on which the workloads are to run."""
    if machine.file is not None and machine.hosts is not None:
        raise InputError("both --hosts and -p say what the machine is; give one of them")
    if machine.speed is not None and machine.hosts is None:
        raise InputError("--speed is for the hosts of --hosts; those of a platform file have their own")
    if machine.file is not None and _simple_network(machine) is not None:
        raise InputError("--bandwidth is for the hosts of --hosts; a platform file has its own network")
    roles = parse_roles(machine.roles)
    limit = _limit(machine.mmax, workloads if machine.mmax_workload else ())
    if machine.file is not None:
        from batsched_py.simulator.machine_files import reader_of

        reader = reader_of(machine.file)
        if reader is not None:
            if roles or limit:
                raise InputError(f"{machine.file}: roles and --mmax are for platforms of SimGrid only")
            return reader(machine.file)
        return read_platform(machine.file, machine.master_host, roles, limit)
    hosts = machine.hosts
    if hosts is None:
        sizes = [workload.nb_hosts for workload in workloads if workload.nb_hosts is not None]
        if not sizes:
            raise InputError("no workload says how large its machine was; give --hosts N or -p PLATFORM.xml")
        hosts = max(sizes)
    speed = 1.0 if machine.speed is None else machine.speed
    return Platform.homogeneous(min(hosts, limit or hosts), speed, _simple_network(machine))


def words_of(machine: Machine) -> NodeWords | None:
    """What logs may ask of a machine of nodes; nothing of other machines."""
    if machine.file is None:
        return None
    from batsched_py.simulator.machine_files import may_have_nodes

    if not may_have_nodes(machine.file):
        return None
    platform = read_machine(replace(machine, mmax_workload=False), ())
    if not platform.has_nodes:
        return None
    from batsched_py.ledger.nodes import NodeMachine
    from batsched_py.workload.requests import NodeWords

    nodes = NodeMachine.of(platform.as_protocol()[0]).nodes
    return NodeWords(
        frozenset(name for node in nodes for name in node.resources),
        frozenset(name for node in nodes for name in node.partitions),
        frozenset(name for node in nodes for name in node.features),
        as_accasim=machine.file.endswith((".config", ".json")),
    )


def _simple_network(machine: Machine) -> SimpleNetwork | None:
    more = {"--latency": machine.latency, "--backbone": machine.backbone, "--fat-tree": machine.fat_tree}
    if machine.bandwidth is None:
        for option, value in more.items():
            if value is not None:
                raise InputError(f"{option} is for the network that --bandwidth makes; give that too")
        return None
    from batsched_py.simulator.network.routing import SimpleNetwork

    return SimpleNetwork(machine.bandwidth, machine.latency or "0", machine.backbone, machine.fat_tree)


def check_sizes(workloads: Sequence[Workload], platform: Platform, reject_larger: bool) -> None:
    """Refuse workloads of which many jobs can never run, as when processors are taken for hosts; warn of few.

    ``reject_larger`` says that they are to be rejected, and that everybody knows.
    """
    nb_hosts = len(platform.hosts)
    nb_jobs = sum(len(workload.jobs) for workload in workloads)
    larger = sum(as_jobs(workload.jobs).nb_larger_than(nb_hosts) for workload in workloads)
    if not larger:
        return
    has = f"{nb_hosts:,} hosts of the machine"
    advice = "Are sizes in cores, and hosts whole nodes? Give a machine that is large enough (--hosts N)"
    if platform.has_nodes:
        nb_nodes = len({host.properties.get("node", host.name) for host in platform.hosts})
        has = f"{nb_hosts:,} cores of the {nb_nodes:,} nodes of the machine"
        advice = "Give a machine with more nodes (-p FILE)"
    share = f"{larger:,} of {nb_jobs:,} jobs ({larger / nb_jobs:.1%})"
    what = f"{share} ask for more than the {has} and can never run"
    if larger > max(FEW_LARGER, MOST_LARGER * nb_jobs) and not reject_larger:
        raise InputError(f"{what}. {advice}, or --reject-larger to have them rejected")
    logging.getLogger(__name__).warning("%s; they are rejected", what)


def _limit(mmax: int, workloads: Sequence[Workload]) -> int:
    """How many hosts to keep at most; 0 keeps all."""
    sizes = [workload.nb_hosts for workload in workloads]
    if None in sizes:
        raise InputError("--mmax-workload: a workload does not say how large its machine was; use --mmax N")
    return min(filter(None, (mmax, max(filter(None, sizes), default=0))), default=0)
