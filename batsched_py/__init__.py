"""A workbench for research on HPC job scheduling, compatible with Batsim.

``import batsched_py as bp`` has the names below, in the words of the command line::

    log = bp.read_log("workloads/sample.swf")
    result = bp.simulate(log, "easy", hosts=64)
    result.metrics["mean_waiting_time"]

Both sides of the conversation are plain objects: a simulator says what happened, a decision process
answers what to do. The rooms of the package are ``protocol``, ``decision``, ``schedulers``, ``users``,
``simulator``, ``workload``, ``experiment``, ``analysis``, ``campaign``, ``api`` and ``cli``; dependencies
between them point one way.
"""

TYPE_CHECKING = False  # as in ``typing``, which takes long to load: Ctrl-C is not heard yet

if TYPE_CHECKING:
    from batsched_py.api.log import Log, calibrate, generate, read_log, saturation
    from batsched_py.api.many import simulate_many
    from batsched_py.api.plan import Campaign, Plan
    from batsched_py.api.result import Result
    from batsched_py.api.simulate import simulate
    from batsched_py.errors import BatschedError
    from batsched_py.schedulers import Cluster, Scheduler
    from batsched_py.tuning.tune import tune
    from batsched_py.users import Behaviour, User

__version__ = "0.2.0"

__all__ = [
    "BatschedError",
    "Behaviour",
    "Campaign",
    "Cluster",
    "Log",
    "Plan",
    "Result",
    "Scheduler",
    "User",
    "__version__",
    "calibrate",
    "generate",
    "read_log",
    "saturation",
    "simulate",
    "simulate_many",
    "tune",
]

#: Where each public name comes from; it is imported when it is asked for, so that commands start quickly.
_HOMES = {
    "BatschedError": "errors",
    "Behaviour": "users",
    "Campaign": "api.plan",
    "Cluster": "schedulers",
    "Log": "api.log",
    "Plan": "api.plan",
    "Result": "api.result",
    "Scheduler": "schedulers",
    "User": "users",
    "calibrate": "api.log",
    "generate": "api.log",
    "read_log": "api.log",
    "saturation": "api.log",
    "simulate": "api.simulate",
    "simulate_many": "api.many",
    "tune": "tuning.tune",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
