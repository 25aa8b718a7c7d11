"""Whether conclusions survive: the runs of a campaign again, with logs, loads and users a little different.

Each variation is a campaign of its own below the folder ``thorough`` of the campaign, so what is done once is
not done again, and its tables can be looked at.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from batsched_py.analysis.runs.comparisons import Comparison, compare
from batsched_py.campaign.plan import PLAN_FILE, PlanText, to_toml
from batsched_py.campaign.plan_file import plan_of
from batsched_py.campaign.prepare import prepared
from batsched_py.campaign.review import Check, Verdict
from batsched_py.campaign.run import RunResult
from batsched_py.campaign.store import Campaign, Executor, conduct, planned_campaign, runs_to_do
from batsched_py.errors import InputError, RunsFailed
from batsched_py.trust import code_named_in
from batsched_py.users import USERS

#: Where a campaign keeps its variations.
THOROUGH: Final = "thorough"

#: How often each log is shaken.
SHAKES: Final = 10

#: Ways to make a load; a plan's own is not tried again.
WAYS: Final = ("arrivals", "run-times", "sizes")

#: Rules for sessions.
SESSION_RULES: Final = ("arrival:20", "arrival:60", "arrival:360", "last:20", "max:20")

#: A conclusion may turn round in this share of the variations of one kind, by accident.
FEW: Final = 0.1

#: Passes on what is done of so many runs, and shows how far that is.
Shown = Callable[[Iterable[RunResult], int], Iterable[RunResult]]


class Variation(Struct, frozen=True):
    """A plan that differs from another one in what should not matter."""

    kind: str
    name: str
    """Of the folder."""
    content: dict[str, Any]
    load: str = ""
    """The load that all its logs have, where the plan has several."""


def thorough(
    campaign: Campaign,
    executor: Executor,
    log_folders: Sequence[Path] = (),
    trust: bool = False,
    shown: Shown = lambda results, total: results,
) -> list[Check]:
    """What becomes of the differences that are shown, a check for each kind of variation.

    Logs are looked for in ``log_folders`` and where they were when the campaign ran.
    """
    text = PlanText.read(campaign.folder / PLAN_FILE)
    concluded = _compared(campaign)
    if not concluded:
        return [Check("robustness", "ok", "0 differences could be tested, so none can turn round")]
    folders = list(dict.fromkeys([*log_folders, *folders_of_logs(campaign)]))
    found: dict[str, list[tuple[str, list[Comparison]]]] = {}
    with code_named_in(text.file, trust):
        wanted = list(variations(text.content, campaign.located))
    for each in wanted:
        content = {**each.content, "name": campaign.wanted.name}
        varied = PlanText(text.file, to_toml(content), content)
        folder = campaign.folder / THOROUGH / each.name
        done = conducted(varied, folder, folders, trust, executor, shown)
        found.setdefault(each.kind, []).append((each.load, _compared(done)))
    return [_survival(kind, concluded, seen) for kind, seen in found.items()]


def _compared(campaign: Campaign) -> list[Comparison]:
    wanted = campaign.wanted
    return compare(campaign.measured(), wanted.metrics, wanted.baseline, wanted.own, wanted.units)


def folders_of_logs(campaign: Campaign) -> Iterator[Path]:
    """Where the logs of a campaign were when it ran."""
    if not campaign.is_distrusted:
        for run in campaign.finished():
            yield from (Path(file).parent for file in run.manifest.experiment.scenario.workloads.files)


def conducted(
    text: PlanText,
    folder: Path,
    log_folders: Sequence[Path],
    trust: bool,
    executor: Executor,
    shown: Shown,
) -> Campaign:
    """The campaign of a plan in a folder, after the runs that were not done before; all must succeed."""
    plan = prepared(
        lambda: plan_of(text, log_folders, trust, folder),
        lambda log: False,
        lambda: nullcontext(lambda done, total: None),
    )
    campaign = planned_campaign(plan, folder)
    runs = runs_to_do(plan, campaign)
    for result in shown(conduct(campaign, runs, executor), len(runs)) if runs else ():
        if result.error is not None:
            raise RunsFailed(f"{folder.name}: {result.name} failed: {result.error}")
    return campaign


def variations(content: Mapping[str, Any], located: Callable[[str], str]) -> Iterator[Variation]:
    """All that a plan asks for: shaken logs; loads by other methods and rules for sessions, if it has such.

    Code that the plan names is where ``located`` says.
    """
    users = content.get("users", {})
    behaviours = {name: located(str(entry.get("name", name))) for name, entry in users.items()}
    cutting = {
        name
        for name, behaviour in behaviours.items()
        if "sessions" in USERS.options(behaviour) and "sessions" not in users[name]
    }
    for seed in range(1, SHAKES + 1):
        logs = _changed(content["logs"], f"shake seed={seed}")
        yield Variation("shaken logs", f"shaken-{seed}", {**content, "logs": logs})
    reacting = set(behaviours.values()) - {"rigid"}
    for load in content.get("loads", []) if not reacting else ():
        for by in WAYS if load != 1 else ():
            if by == content.get("load_by", "arrivals"):
                continue
            varied = _without_loads(content, load)
            varied["logs"] = _changed(content["logs"], f"load factor={load!r} by={by}")
            yield Variation("ways to make a load", f"load{load:g}-{by}", varied, f"{load:g}")
    for rule in SESSION_RULES if cutting else ():
        cut = {name: _with_sessions(users[name], rule) if name in cutting else users[name] for name in users}
        name = f"sessions-{rule.replace(':', '')}"
        yield Variation("rules for sessions", name, {**content, "users": cut})


def _changed(logs: Mapping[str, Any], change: str) -> dict[str, Any]:
    """Logs with one more change."""
    changed = {}
    for name, entry in logs.items():
        file = entry.get("file", "")
        if not isinstance(file, str):
            raise InputError(f"logs.{name}: files that are played together cannot be changed, so not shaken")
        recipe = {key: value for key, value in entry.items() if key not in ("url", "sha256")}
        changed[name] = {**recipe, "changes": [*recipe.get("changes", []), change]}
    return changed


def _without_loads(content: Mapping[str, Any], load: float) -> dict[str, Any]:
    """A plan with the recorded load only, and what it excludes of this load."""
    varied = deepcopy({key: value for key, value in content.items() if key not in ("loads", "load_by")})
    kept = []
    for rule in varied.get("exclude", []):
        wanted = rule.pop("load", load)
        if load in (wanted if isinstance(wanted, list) else [wanted]):
            kept.append(rule)
    return varied | {"exclude": kept}


def _with_sessions(entry: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """Users whose sessions are cut by a rule."""
    return {**entry, "options": {**entry.get("options", {}), "sessions": rule}}


def _survival(
    kind: str, concluded: Sequence[Comparison], found: Sequence[tuple[str, Sequence[Comparison]]]
) -> Check:
    """What becomes of comparisons in the variations of one kind."""
    verdicts: list[Verdict] = ["ok"]
    fallen, nb_shown = [], 0
    for each in concluded:
        place = each.where.get("load")
        seen = [_partner(each, load, others) for load, others in found if load in ("", place)]
        turned = sum(other is not None and other.better != each.better for other in seen)
        held = sum(other is not None and other.better == each.better and other.is_shown for other in seen)
        names = f"{each.better} better than {each.worse} in {each.metric} ({', '.join(each.where.values())})"
        if not seen:
            continue
        if each.is_shown:
            nb_shown += 1
            if turned or 2 * held < len(seen):
                verdicts.append("fail" if turned > FEW * len(seen) else "warn")
                missed = len(seen) - turned - held
                fallen.append(f"{names}: turned round in {turned}, not shown in {missed} of {len(seen)}")
        elif both := _both_ways(seen):
            verdicts.append("fail")
            fallen.append(f"{names}: shown in {both[0]}, and the other way round in {both[1]} of {len(seen)}")
    verdict: Verdict = next(worst for worst in ("fail", "warn", "ok") if worst in verdicts)
    survive = nb_shown - sum("not shown in" in text for text in fallen)
    text = f"{survive} of {nb_shown} differences that are shown survive {len(found)} {kind}"
    remedy = "say for which it holds; a conclusion that depends on a rule of the study is none"
    return Check("robustness", verdict, "; ".join([text, *fallen]), remedy)


def _both_ways(seen: Sequence[Comparison | None]) -> tuple[int, int] | None:
    """How often each of two is shown to be the better one, if both are."""
    better = Counter(each.better for each in seen if each is not None and each.is_shown)
    return (better.most_common()[0][1], better.most_common()[1][1]) if len(better) == 2 else None


def _partner(conclusion: Comparison, load: str, others: Sequence[Comparison]) -> Comparison | None:
    """The same comparison in a variation, if both could be compared there."""
    where = {axis: name for axis, name in conclusion.where.items() if not (load and axis == "load")}
    both = {conclusion.better, conclusion.worse}
    return next(
        (
            each
            for each in others
            if each.metric == conclusion.metric and {each.better, each.worse} == both and each.where == where
        ),
        None,
    )
