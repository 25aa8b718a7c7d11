// The waiting jobs (specification: batsched_py/ledger/queue.py).
#pragma once
#include <algorithm>
#include <vector>

#include "job.hpp"

namespace batsched {

// Jobs in the order of their submission. One that leaves in the middle leaves a gap; gaps are closed before they
// are more than the jobs.
class Queue {
public:
    size_t size() const { return size_; }
    bool empty() const { return !size_; }
    const JobPtr& head() const { return jobs_[first_]; }

    void append(JobPtr job, double estimate) {
        job->estimate = estimate;
        job->arrival = ++nb_arrived_;
        job->state = State::kWaiting;
        if (smallest_is_known_) smallest_ = empty() ? job->request : std::min(smallest_, job->request, less);
        requests_.push_back(job->request);
        estimates_.push_back(estimate);
        jobs_.push_back(std::move(job));
        ++size_;
    }

    void remove(const Job& job) {
        size_t place = place_of(job);
        if (!less(smallest_, job.request)) smallest_is_known_ = false;
        jobs_[place].reset();
        requests_[place] = kGap;
        --size_;
        while (first_ < jobs_.size() && !jobs_[first_]) ++first_;
        while (jobs_.size() > first_ && !jobs_.back()) shorten(jobs_.size() - 1);
        if (jobs_.size() - size_ > size_ + 32) close_gaps();
        if (empty()) smallest_is_known_ = true;
    }

    void expect(Job& job, double estimate) { job.estimate = estimates_[place_of(job)] = estimate; }

    // From now on, jobs that are there are no longer new.
    void settle() { newest_settled_ = nb_arrived_; }
    int64_t newest_settled() const { return newest_settled_; }
    int64_t nb_arrived() const { return nb_arrived_; }

    // Whether any waiting job could be given what is free.
    bool some_fit(Request free) {
        if (empty()) return false;
        if (!smallest_is_known_) {
            smallest_ = *std::min_element(requests_.begin() + static_cast<ptrdiff_t>(first_), requests_.end(), less);
            smallest_is_known_ = true;
        }
        return smallest_.fits(free);
    }

    // Calls a function with each job from the head on, until it returns false.
    template <class Function>
    void each(Function function) const {
        for (size_t place = first_; place < jobs_.size(); ++place) {
            if (jobs_[place] && !function(jobs_[place])) return;
        }
    }

    // The first job behind an arrival, none later than another, for which something is true of its request and
    // estimate.
    template <class Condition>
    JobPtr find(int64_t behind, int64_t last, Condition condition) const {
        for (size_t place = first_behind(behind); place < jobs_.size(); ++place) {
            if (!condition(requests_[place], estimates_[place])) continue;
            const JobPtr& job = jobs_[place];
            if (!job) continue;
            return job->arrival <= last ? job : nullptr;
        }
        return nullptr;
    }

private:
    static constexpr Request kGap{INT64_MAX};
    static bool less(const Request& one, const Request& other) { return one.hosts < other.hosts; }

    std::vector<JobPtr> jobs_;
    std::vector<Request> requests_;
    std::vector<double> estimates_;
    size_t first_ = 0, size_ = 0;
    int64_t nb_arrived_ = 0, newest_settled_ = 0;
    Request smallest_;
    bool smallest_is_known_ = true;

    // The first place at or behind which all jobs have arrived later than another.
    size_t first_behind(int64_t arrival) const {
        if (empty() || jobs_[first_]->arrival > arrival) return first_;
        size_t low = first_, high = jobs_.size();
        while (low < high) {
            size_t middle = (low + high) / 2, full = middle;
            while (full < high && !jobs_[full]) ++full;
            if (full == high || jobs_[full]->arrival > arrival) {
                high = middle;
            } else {
                low = full + 1;
            }
        }
        return low;
    }

    size_t place_of(const Job& job) const {
        if (jobs_[first_].get() == &job) return first_;
        size_t place = first_behind(job.arrival - 1);
        while (!jobs_[place]) ++place;
        return place;
    }

    void shorten(size_t size) {
        jobs_.resize(size);
        requests_.resize(size);
        estimates_.resize(size);
        first_ = std::min(first_, size);
    }

    void close_gaps() {
        size_t count = 0;
        for (size_t place = first_; place < jobs_.size(); ++place) {
            if (!jobs_[place]) continue;
            if (place != count) {
                jobs_[count] = std::move(jobs_[place]);
                requests_[count] = requests_[place];
                estimates_[count] = estimates_[place];
            }
            ++count;
        }
        first_ = 0;
        shorten(count);
    }
};

}  // namespace batsched
