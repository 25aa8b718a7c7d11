"""When the first job was submitted, as rows of jobs.csv tell it."""

from __future__ import annotations

from batsched_py.simulator.outputs import Results


def test_the_first_submission_is_the_earliest_of_all_rows() -> None:
    results = Results()
    results.look_at('1,w0,"a,b",12.5,4,60.0\n2,w0,c,20.0,3,60.0\n')
    assert results.first_submission == 12.5
    results.look_at("3,w0,c,7.25,2,60.0\n4,w0,c,30.0,1,60.0\n")
    assert results.first_submission == 7.25
