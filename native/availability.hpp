// How much will be free and when, and reservations of waiting jobs in it (specification:
// batsched_py/ledger/profile.py and batsched_py/ledger/profile.py).
#pragma once
#include <algorithm>
#include <vector>

#include "queue.hpp"

namespace batsched {

// What is free as a step function of time, from now on.
class AvailabilityProfile {
public:
    AvailabilityProfile(double now, Request free) : times_{now}, free_{free} {}

    size_t nb_steps() const { return times_.size(); }
    double time(size_t step) const { return times_[step]; }
    Request free(size_t step) const { return free_[step]; }

    Request free_at(double time) const {
        auto after = std::upper_bound(times_.begin(), times_.end(), time) - times_.begin();
        return free_[static_cast<size_t>(std::max<ptrdiff_t>(after, 1) - 1)];
    }

    // The earliest time from which a request fits for so long; infinite if there is none.
    double earliest(Request request, double duration) const { return earlier(request, duration, INFINITY, INFINITY); }

    // The earliest time to which a reservation can move, if there is one before some time; else where it is.
    double earlier(Request request, double duration, double reserved, double before) const {
        double start = times_[0];
        size_t count = times_.size();
        for (size_t step = 0; step < count; ++step) {
            double end = step + 1 < count ? times_[step + 1] : INFINITY;
            if (!request.fits(free_[step])) {
                start = end;
                if (start >= before || start >= reserved) break;
            } else if (end >= start + duration || end >= reserved) {
                return start;
            }
        }
        return reserved;
    }

    void take(double start, double end, Request request) { change(start, end, Request{} - request); }
    void give(double start, double end, Request request) { change(start, end, request); }

    // Forgets what was before now.
    void advance(double now) {
        auto past = std::max<ptrdiff_t>(std::upper_bound(times_.begin(), times_.end(), now) - times_.begin() - 1, 0);
        times_.erase(times_.begin(), times_.begin() + past);
        free_.erase(free_.begin(), free_.begin() + past);
        times_[0] = now;
    }

    // The most that is free at any time before another.
    Request most_before(double time) const {
        Request most = free_[0];
        for (size_t step = 1; step < times_.size() && times_[step] < time; ++step) {
            if (most.fits(free_[step])) most = free_[step];
        }
        return most;
    }

private:
    std::vector<double> times_;
    std::vector<Request> free_;

    void change(double start, double end, Request more) {
        start = std::max(start, times_[0]);
        if (!(start < end)) return;
        size_t first = step_at(start), last = end < INFINITY ? step_at(end) : times_.size();
        for (size_t step = first; step < last; ++step) free_[step] = free_[step] + more;
        for (size_t step : {last, first}) {
            if (step && step < free_.size() && free_[step] == free_[step - 1]) {
                times_.erase(times_.begin() + static_cast<ptrdiff_t>(step));
                free_.erase(free_.begin() + static_cast<ptrdiff_t>(step));
            }
        }
    }

    // The step that begins at a time, made if there is none.
    size_t step_at(double time) {
        auto place = std::lower_bound(times_.begin(), times_.end(), time);
        auto step = place - times_.begin();
        if (place == times_.end() || *place != time) {
            times_.insert(place, time);
            free_.insert(free_.begin() + step, free_[static_cast<size_t>(step - 1)]);
        }
        return static_cast<size_t>(step);
    }
};

// A reservation for each waiting job, in the order of their submission.
class Plan {
public:
    explicit Plan(AvailabilityProfile profile) : profile_(std::move(profile)) {}

    struct Reservation {
        JobPtr job;
        double start;
        double end() const { return start + job->told_walltime; }
    };

    const std::vector<Reservation>& reservations() const { return reserved_; }

    // A job has ended: what it leaves of its time is free.
    void job_ended(const Job& job, double now) {
        profile_.give(now, job.expected_end, {job.nb_hosts});
        freed_until_ = std::max(freed_until_, job.expected_end);
        some_ended_ = true;
    }

    // Time has passed, and jobs may have left the queue.
    void advance(double now, const Queue& queue) {
        profile_.advance(now);
        if (nb_waiting_before(queue) == reserved_.size()) return;
        std::erase_if(reserved_, [this](const Reservation& one) {
            if (one.job->state == State::kWaiting) return false;
            profile_.give(one.start, one.end(), one.job->request);
            return true;
        });
    }

    // Lets each job in turn have the earliest reservation that all others leave, if jobs have ended.
    void move_forward() {
        if (!some_ended_) return;
        double freed_until = std::exchange(freed_until_, 0.0);
        some_ended_ = false;
        Request most = profile_.most_before(freed_until);
        for (Reservation& one : reserved_) {
            if (!one.job->request.fits(most)) continue;
            double earlier = profile_.earlier(one.job->request, one.job->told_walltime, one.start, freed_until);
            if (!(earlier < one.start)) continue;
            double before = one.start;
            profile_.give(one.start, one.end(), one.job->request);
            one.start = earlier;
            profile_.take(one.start, one.end(), one.job->request);
            next_start_ = std::min(next_start_, earlier);
            freed_until_ = std::max(freed_until_, before + one.job->told_walltime);
            freed_until = std::max(freed_until, freed_until_);
            most = profile_.most_before(freed_until);
        }
    }

    // Gives the jobs that have none a reservation.
    void reserve_new(const Queue& queue) {
        while (JobPtr job = queue.find(last_, INT64_MAX, [](Request, double) { return true; })) {
            double start = profile_.earliest(job->request, job->told_walltime);
            last_ = job->arrival;
            profile_.take(start, start + job->told_walltime, job->request);
            next_start_ = std::min(next_start_, start);
            reserved_.push_back({std::move(job), start});
        }
    }

    // The jobs whose time has come.
    std::vector<JobPtr> due(double now) {
        std::vector<JobPtr> jobs;
        if (next_start_ > now) return jobs;
        next_start_ = INFINITY;
        for (const Reservation& one : reserved_) {
            if (one.start <= now) jobs.push_back(one.job);
            next_start_ = std::min(next_start_, one.start);
        }
        return jobs;
    }

    // A job was started: it has its hosts in place of a reservation.
    void job_started(const Job& job) {
        auto place = std::find_if(reserved_.begin(), reserved_.end(),
                                  [&](const Reservation& one) { return one.job.get() == &job; });
        if (place != reserved_.end()) {
            profile_.give(place->start, place->end(), job.request);
            reserved_.erase(place);
        }
        profile_.take(job.start, job.expected_end, {job.nb_hosts});
    }

private:
    AvailabilityProfile profile_;
    std::vector<Reservation> reserved_;
    double freed_until_ = 0;
    double next_start_ = INFINITY;  // no reservation begins before
    bool some_ended_ = false;
    int64_t last_ = 0;  // the arrival of the last job with a reservation

    // How many jobs wait that had a reservation.
    size_t nb_waiting_before(const Queue& queue) const {
        size_t count = queue.size();
        int64_t behind = last_;
        while (JobPtr job = queue.find(behind, INT64_MAX, [](Request, double) { return true; })) {
            behind = job->arrival;
            --count;
        }
        return count;
    }
};

}  // namespace batsched
