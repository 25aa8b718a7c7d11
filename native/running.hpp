// The running jobs in the order of their expected ends (specification: batsched_py/ledger/running.py).
#pragma once
#include <algorithm>
#include <vector>

#include "job.hpp"

namespace batsched {

class Running {
public:
    struct Place {
        double expected_end;
        int64_t number;
        JobPtr job;

        bool operator<(const Place& other) const {
            return expected_end != other.expected_end ? expected_end < other.expected_end : number < other.number;
        }
    };

    const std::vector<Place>& by_end() const { return by_end_; }
    int64_t nb_started() const { return count_; }

    // When the first job is expected to end after a time; infinite if none is.
    double next_end_after(double time) const {
        auto behind = std::upper_bound(by_end_.begin(), by_end_.end(), Place{time, INT64_MAX, nullptr});
        return behind == by_end_.end() ? INFINITY : behind->expected_end;
    }

    void add(JobPtr job, double now) {
        job->start = now;
        job->expected_end = now + job->estimate;
        job->number = ++count_;
        job->state = State::kRunning;
        insert(std::move(job));
    }

    JobPtr remove(const Job& job) {
        auto place = find(job);
        JobPtr removed = std::move(place->job);
        by_end_.erase(place);
        return removed;
    }

    void expect(Job& job, double run_time) {
        JobPtr same = remove(job);
        job.expected_end = job.start + run_time;
        insert(std::move(same));
    }

private:
    std::vector<Place> by_end_;
    int64_t count_ = 0;

    std::vector<Place>::iterator find(const Job& job) {
        return std::lower_bound(by_end_.begin(), by_end_.end(), Place{job.expected_end, job.number, nullptr});
    }

    void insert(JobPtr job) {
        Place place{job->expected_end, job->number, std::move(job)};
        by_end_.insert(std::upper_bound(by_end_.begin(), by_end_.end(), place), std::move(place));
    }
};

}  // namespace batsched
