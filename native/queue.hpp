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
        if (nb_smallest_ || empty()) count_smallest(job->request);
        requests_.push_back(job->request);
        estimates_.push_back(estimate);
        submissions_.push_back(job->told_submission);
        arrivals_.push_back(job->arrival);
        jobs_.push_back(std::move(job));
        ++size_;
    }

    void remove(const Job& job) {
        size_t place = place_of(job);
        if (nb_smallest_ && job.request.hosts == smallest_.hosts) --nb_smallest_;
        jobs_[place].reset();
        requests_[place] = kGap;
        --size_;
        while (first_ < jobs_.size() && !jobs_[first_]) ++first_;
        while (jobs_.size() > first_ && !jobs_.back()) shorten(jobs_.size() - 1);
        if (jobs_.size() - size_ > size_ + 32) close_gaps();
    }

    void expect(Job& job, double estimate) { job.estimate = estimates_[place_of(job)] = estimate; }

    // From now on, jobs that are there are no longer new.
    void settle() { newest_settled_ = nb_arrived_; }
    int64_t newest_settled() const { return newest_settled_; }
    int64_t nb_arrived() const { return nb_arrived_; }

    // Whether any waiting job could be given what is free.
    bool some_fit(Request free) {
        if (empty()) return false;
        if (!nb_smallest_) {
            for (size_t place = first_; place < requests_.size(); ++place) count_smallest(requests_[place]);
        }
        return smallest_.fits(free);
    }

    // The waiting job with this arrival, if there is one.
    JobPtr at(int64_t arrival) const {
        size_t place = first_behind(arrival - 1);
        return place < jobs_.size() && arrivals_[place] == arrival ? jobs_[place] : nullptr;
    }

    // Some waiting jobs in the order of their submission.
    struct Selected {
        std::vector<int64_t> arrivals;
        std::vector<uint32_t> places;  // in the columns, as long as no job joins or leaves
    };

    // Those behind an arrival that fit into something, so many at most.
    Selected select(int64_t behind, Request free, size_t most) const {
        size_t begin = first_behind(behind), end = jobs_.size(), count = 0;
        Request limit = free.fits(kLargest) ? free : kLargest;
        Selected found{std::vector<int64_t>(end - begin), std::vector<uint32_t>(end - begin)};
        for (size_t place = begin; place < end && count < most; ++place) {
            found.arrivals[count] = arrivals_[place];
            found.places[count] = static_cast<uint32_t>(place);
            count += requests_[place].fits(limit);
        }
        found.arrivals.resize(count);
        found.places.resize(count);
        return found;
    }

    // What a column says of these jobs; none may have joined or left since they were selected.
    template <class Number, class Function>
    void gather(const Selected& selected, Number* numbers, Function column) const {
        for (uint32_t place : selected.places) *numbers++ = column(*this, place);
    }

    // What is in a column at a place.
    struct SizeAt {
        int64_t operator()(const Queue& queue, size_t place) const { return queue.requests_[place].hosts; }
    };
    struct EstimateAt {
        double operator()(const Queue& queue, size_t place) const { return queue.estimates_[place]; }
    };
    struct SubmissionAt {
        double operator()(const Queue& queue, size_t place) const { return queue.submissions_[place]; }
    };
    struct JobAt {
        Job* operator()(const Queue& queue, size_t place) const { return queue.jobs_[place].get(); }
    };

    // The first job behind an arrival, none later than another, for which something is true of its request and
    // estimate.
    template <class Condition>
    JobPtr find(int64_t behind, int64_t last, Condition condition) const {
        for (size_t place = first_behind(behind); place < jobs_.size(); ++place) {
            if (!condition(requests_[place], estimates_[place])) continue;
            if (jobs_[place]) return arrivals_[place] <= last ? jobs_[place] : nullptr;
        }
        return nullptr;
    }

private:
    static constexpr Request kGap{INT64_MAX}, kLargest{INT64_MAX - 1};

    std::vector<JobPtr> jobs_;
    std::vector<Request> requests_;
    std::vector<double> estimates_, submissions_;
    std::vector<int64_t> arrivals_;
    size_t first_ = 0, size_ = 0;
    int64_t nb_arrived_ = 0, newest_settled_ = 0;
    Request smallest_;
    size_t nb_smallest_ = 0;  // how many jobs ask for no more than that; 0 if it is not known

    // The first place of a job that has arrived later than another.
    size_t first_behind(int64_t arrival) const {
        if (arrival <= 0 || first_ == arrivals_.size() || arrivals_[first_] > arrival) return first_;
        auto begin = arrivals_.begin() + static_cast<ptrdiff_t>(first_);
        return static_cast<size_t>(std::upper_bound(begin, arrivals_.end(), arrival) - arrivals_.begin());
    }

    void count_smallest(Request request) {
        if (!nb_smallest_ || request.hosts < smallest_.hosts) {
            smallest_ = request;
            nb_smallest_ = 0;
        }
        nb_smallest_ += request.hosts == smallest_.hosts;
    }

    size_t place_of(const Job& job) const { return first_behind(job.arrival - 1); }

    void shorten(size_t size) {
        jobs_.resize(size);
        requests_.resize(size);
        estimates_.resize(size);
        submissions_.resize(size);
        arrivals_.resize(size);
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
                submissions_[count] = submissions_[place];
                arrivals_[count] = arrivals_[place];
            }
            ++count;
        }
        first_ = 0;
        shorten(count);
    }
};

}  // namespace batsched
