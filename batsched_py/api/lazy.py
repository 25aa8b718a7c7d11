"""The modules behind commands and results, each loaded when something of it is first used.

``lazy.sources.read_log`` is ``batsched_py.workload.sources.read_log``. So whoever asks for the help of a
command waits for nothing that simulates, draws or computes.
"""

# mypy: implicit-reexport
# ruff: noqa: F401, I001

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from batsched_py import schedulers, users
    from batsched_py.analysis import calibration, conditions, executions, likeness_page, log_page, metrics
    from batsched_py.analysis import outcome, own_metrics, saturation, schedule, schedule_log, steadiness
    from batsched_py.analysis import job_rows, small_runs, user_metrics, validator
    from batsched_py.analysis.plots import figures as plot_figures, runs as plot_runs, style as plot_style
    from batsched_py.analysis.runs import aggregate, comparisons, pivot, tables
    from batsched_py.analysis.validator import rules as validator_rules
    from batsched_py.api import console, control, explained, figures, log, rankings, result, simulating
    from batsched_py.api import validating
    from batsched_py.campaign import archive, estimate, executors, html_report, plan_file, prepare, store
    from batsched_py.campaign import files as campaign_files, review, run as campaign_run
    from batsched_py.campaign.review import facts as review_facts, thorough as review_thorough
    from batsched_py.decision import server
    from batsched_py.engines import python as python_engine
    from batsched_py.experiment import build, run as experiment_run
    from batsched_py.ledger import nodes
    from batsched_py.outside import closures, curve
    from batsched_py.protocol import dialect, dialects, sizes
    from batsched_py.simulator import decision_side, outputs, platform, simgrid_xml
    from batsched_py.testing import programs
    from batsched_py.users import resample
    from batsched_py.wire import conversation, sockets
    from batsched_py.workload import batsim_json, changes, description, lines, model, models, recipe
    from batsched_py.workload import session_files, session_graph, sessions, sources
    from batsched_py.workload.changes import altering, selecting
    from batsched_py.workload.description import jobs as description_jobs, over_time
    from batsched_py.workload.sources import batsim as sources_batsim, table as sources_table
    from batsched_py.workload.swf import conventions, log as swf_log, reader as swf_reader
    from batsched_py.workload.swf import workload as swf_workload
else:
    #: The modules of each package; ``NAME=MODULE`` where two modules are called the same.
    _MODULES = {
        "analysis": "calibration conditions executions likeness_page log_page metrics outcome own_metrics "
        "job_rows saturation schedule schedule_log small_runs steadiness user_metrics validator",
        "analysis.plots": "plot_figures=figures plot_runs=runs plot_style=style",
        "analysis.runs": "aggregate comparisons pivot tables",
        "analysis.validator": "validator_rules=rules",
        "api": "console control explained figures log rankings result simulating validating",
        "campaign": "archive estimate executors html_report plan_file prepare review store "
        "campaign_files=files campaign_run=run",
        "campaign.review": "review_facts=facts review_thorough=thorough",
        "decision": "server",
        "engines": "python_engine=python",
        "experiment": "build experiment_run=run",
        "ledger": "nodes",
        "outside": "closures curve",
        "protocol": "dialect dialects sizes",
        "simulator": "decision_side outputs platform simgrid_xml",
        "testing": "programs",
        "users": "resample",
        "wire": "conversation sockets",
        "workload": "batsim_json changes description lines model models recipe "
        "session_files session_graph sessions sources",
        "workload.changes": "altering selecting",
        "workload.description": "description_jobs=jobs over_time",
        "workload.sources": "sources_batsim=batsim sources_table=table",
        "workload.swf": "conventions swf_log=log swf_reader=reader swf_workload=workload",
    }
    _HOMES = {"schedulers": "schedulers", "users": "users"} | {
        word.partition("=")[0]: f"{package}.{word.rpartition('=')[2]}"
        for package, words in _MODULES.items()
        for word in words.split()
    }

    def __getattr__(name: str) -> ModuleType:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"batsched_py.{_HOMES[name]}")
