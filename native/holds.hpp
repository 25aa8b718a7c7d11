// Jobs that wait for others (specification: batsched_py/ledger/holds.py and batsched_py/decision/held_jobs.py).
#pragma once
#include "job.hpp"

namespace batsched {

// Somebody who holds jobs apart from the queue until those that they wait for have started or are over, and hears of it.
class Holds {
public:
    bool hears_of_all = false;    // else of jobs that wait for others, and of those that others may wait for
    bool hold_any = false;        // whether any job is held
    bool are_unsettled = false;   // whether something has happened that may let jobs go
    double next_time = INFINITY;  // when enough time will have passed for the next job that waits for that

    virtual ~Holds() = default;
    virtual bool submitted(Job& job, bool could_be_granted) = 0;  // whether it is held
    virtual void started(Job& job) = 0;
    virtual void over(Job& job, bool success) = 0;  // it has ended, or was rejected
    virtual void comes_back(Job& ended) = 0;        // it is over only when the next execution is
    virtual void wake() = 0;                        // this time has come
    virtual bool settle() = 0;  // rejects jobs that can never start, and lets others join the queue: whether any has
    virtual void look_after(bool more_may_come) = 0;  // something must be to come that lets held jobs go

    bool hear_of(const Job& job) const { return hears_of_all || job.waits || job.is_awaited; }
};

}  // namespace batsched
