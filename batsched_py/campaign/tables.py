"""The results of a campaign as tables, as its plan wants them unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from batsched_py.analysis.runs.aggregate import Aggregate, Baseline, aggregate
from batsched_py.analysis.runs.tables import ResultTable, tables_of
from batsched_py.campaign.store import Campaign


def aggregate_campaign(
    campaign: Campaign,
    by: Sequence[str] = (),
    baseline: Baseline | None = None,
    metrics: Sequence[str] = (),
) -> Aggregate:
    """The results of a campaign over its repetitions."""
    runs, wanted = campaign.finished(), campaign.wanted
    planned = Baseline.parse(wanted.baseline)
    if baseline is None and planned is not None and any(planned.is_of(run) for run in runs):
        baseline = planned if not by or planned.axis in by else None
    return aggregate(runs, metrics or wanted.metrics, by, baseline)


def result_tables(campaign: Campaign) -> list[ResultTable]:
    """A table for each log, in the order of the plan; a column has one unit in all of them."""
    return tables_of(aggregate_campaign(campaign))
