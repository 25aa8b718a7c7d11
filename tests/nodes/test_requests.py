"""What jobs ask of nodes, as it is written."""

from __future__ import annotations

from typing import Any

import pytest

from batsched_py.protocol.requests import Request, parse_features, read_request


def test_that_a_job_without_a_request_asks_for_single_cores() -> None:
    assert read_request(8, None) == Request(8)


def test_that_amounts_by_core_task_and_job_are_amounts_by_task() -> None:
    request = read_request(
        8, {"cores": 2, "per_core": {"memory": "1 GB"}, "per_task": {"memory": 512}, "per_job": {"gpu": 8}}
    )
    assert request == Request(4, 2, (("gpu", 2), ("memory", 2 * 1024**2 + 512 * 1024)))


@pytest.mark.parametrize(("tasks", "gpus", "made"), [(8, 4, (4, 2, 1)), (6, 4, (2, 3, 2)), (3, 3, (3, 1, 1))])
def test_that_the_gpus_of_a_job_are_shared_out_exactly(tasks: int, gpus: int, made: tuple[int, ...]) -> None:
    """Where there are more tasks than GPUs, several tasks go together."""
    request = read_request(tasks, {"per_job": {"gpu": gpus}})
    assert (request.tasks, request.cores, dict(request.per_task)["gpu"]) == made
    assert request.tasks * dict(request.per_task)["gpu"] == gpus
    assert request.hosts == tasks


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"tasks": 3}, "3 tasks of 1 cores do not make the 8 hosts"),
        ({"cores": 3}, "2 tasks of 3 cores do not make the 8 hosts"),
        ({"cores": 0}, ">= 1"),
        ({"cpus": 3}, "unknown field `cpus`"),
        ({"nodes": 0}, "nodes 0 is not a number of nodes"),
        ({"nodes": [4, 2]}, "is not a number of nodes or a range"),
        ({"nodes": 9}, "at least 9 nodes cannot be had by 8 tasks"),
        ({"per_task": {"memory": "lots"}}, "'lots' is not a size of memory"),
        ({"per_task": {"gpu": -1}}, "gpu: -1 is not a whole number"),
        ({"per_task": {"gpu": "one"}}, "gpu: 'one' is not a whole number"),
        ({"per_job": {"gpu": 1}, "nodes": 2}, "cannot be shared out"),
        ({"cores": 8, "per_core": {"gpu": 1 << 48}}, "a task asks for more than 281474976710656"),
        ([1], "Expected `object`"),
        ("all", "Expected `object`"),
    ],
)
def test_that_bad_requests_are_refused(fields: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        read_request(8, fields)


@pytest.mark.parametrize(
    ("text", "features", "meant"),
    [
        ("a", {"a"}, True),
        ("a & b", {"a"}, False),
        ("a,b", {"a", "b"}, True),
        ("a | b", {"b"}, True),
        ("!a", {"b"}, True),
        ("a & !(b | c)", {"a", "c"}, False),
        ("a | b & c", {"a"}, True),
        ("(a | b) & c", {"a"}, False),
    ],
)
def test_that_features_are_joined_by_and_or_and_not(text: str, features: set[str], meant: bool) -> None:
    assert parse_features(text)(features) is meant


@pytest.mark.parametrize("text", ["", "a &", "& a", "(a", "a)", "a b", "a $", "!"])
def test_that_bad_expressions_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="features"):
        parse_features(text)
