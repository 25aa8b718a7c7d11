// What is free as a step function of time (specification: batsched_py/ledger/profile.py).
#pragma once
#include <algorithm>
#include <optional>

#include "amounts.hpp"
#include "running.hpp"

namespace batsched {

// Free amounts from now on: of one node, of all licences, or of a whole machine. How many kinds of amounts there are is
// known beforehand, or else told by the first of them.
template <size_t kKinds = 0>
class Timeline {
public:
    Timeline(double now, Amounts free) : width_(free.size()), times_{now}, free_(std::move(free)) {}

    size_t size() const { return times_.size(); }
    double time(size_t step) const { return times_[step]; }
    const int64_t* free(size_t step) const { return free_.data() + step * width(); }

    // The step that some time belongs to.
    size_t at(double time) const {
        if (size() == 1 || time < times_[1]) return 0;
        return static_cast<size_t>(std::upper_bound(times_.begin() + 1, times_.end(), time) - times_.begin()) - 1;
    }

    // The earliest time from which there is enough for so long, if there is one before some time; else `reserved`. From
    // then on there is enough, because that much is reserved already.
    template <class IsEnough>
    double earlier(double duration, double reserved, double before, IsEnough is_enough) const {
        double start = times_[0];
        for (size_t step = 0, count = size(); step < count; ++step) {
            double end = step + 1 < count ? times_[step + 1] : INFINITY;
            if (!is_enough(free(step))) {
                start = end;
                if (start >= before || start >= reserved) break;
            } else if (end >= start + duration || end >= reserved) {
                return start;
            }
        }
        return reserved;
    }

    // How many steps more there are at two times.
    struct Changed {
        int at_start = 0, at_end = 0;
    };

    // Adds so many times these amounts between two times.
    Changed change(double start, double end, const int64_t* more, int64_t factor) {
        Changed changed;
        start = std::max(start, times_[0]);
        if (!(start < end)) return changed;
        size_t first = split(start, changed.at_start), last = end < INFINITY ? split(end, changed.at_end) : size();
        for (size_t step = first; step < last; ++step) {
            for (size_t kind = 0; kind < width(); ++kind) free_[step * width() + kind] += factor * more[kind];
        }
        join(last, changed.at_end);
        join(first, changed.at_start);
        return changed;
    }

    // Forgets what was before now.
    void advance(double now) {
        auto past = static_cast<ptrdiff_t>(at(now));
        if (past) {
            times_.erase(times_.begin(), times_.begin() + past);
            free_.erase(free_.begin(), free_.begin() + past * static_cast<ptrdiff_t>(width()));
        }
        times_[0] = now;
    }

    // The least of each amount between two times.
    void least(double start, double end, int64_t* least, size_t distance) const {
        size_t step = at(start);
        for (size_t kind = 0; kind < width(); ++kind) least[kind * distance] = free(step)[kind];
        for (++step; step < size() && times_[step] < end; ++step) {
            for (size_t kind = 0; kind < width(); ++kind) {
                least[kind * distance] = std::min(least[kind * distance], free(step)[kind]);
            }
        }
    }

private:
    size_t width_;
    std::vector<double> times_;
    Amounts free_;  // of each step in turn

    size_t width() const { return kKinds ? kKinds : width_; }
    auto row(size_t step) { return free_.begin() + static_cast<ptrdiff_t>(step * width()); }

    // The step that begins at a time, made if there is none.
    size_t split(double time, int& nb_more) {
        auto place = std::lower_bound(times_.begin(), times_.end(), time);
        auto step = static_cast<size_t>(place - times_.begin());
        if (place != times_.end() && *place == time) return step;
        times_.insert(place, time);
        free_.insert(row(step), width(), 0);
        std::copy_n(row(step - 1), width(), row(step));
        ++nb_more;
        return step;
    }

    // Removes a step if nothing changes when it begins.
    void join(size_t step, int& nb_more) {
        if (!step || step >= size() || !std::equal(row(step), row(step + 1), row(step - 1))) return;
        times_.erase(times_.begin() + static_cast<ptrdiff_t>(step));
        free_.erase(row(step), row(step + 1));
        --nb_more;
    }
};

// How many hosts will be free, and when.
class AvailabilityProfile : public Timeline<1> {
public:
    using Place = Request;  // any hosts will do

    AvailabilityProfile(double now, Request free) : Timeline(now, {free.hosts}) {}

    AvailabilityProfile(double now, Request free, const Running& running, double tick) : AvailabilityProfile(now, free) {
        for (const Running::Place& place : running.by_end()) {
            give(std::max(place.expected_end, now + tick), INFINITY, {place.job->nb_hosts});
        }
    }

    int64_t free_at(double time) const { return *free(at(time)); }

    // The earliest time from which a request fits for so long; infinite if there is none.
    double earliest(Request request, double duration) const { return earlier(request, duration, INFINITY, INFINITY); }

    // The earliest time to which a reservation can move, if there is one before some time; else where it is.
    double earlier(Request request, double duration, double reserved, double before) const {
        return Timeline::earlier(duration, reserved, before,
                                 [request](const int64_t* free) { return request.hosts <= *free; });
    }

    void take(double start, double end, Request request) { change(start, end, request, -1); }
    void give(double start, double end, Request request) { change(start, end, request, 1); }

    // --- for a plan ------------------------------------------------------------------------------------------

    std::optional<std::pair<double, Place>> earliest(const Job& job) const {
        return std::pair(earliest(job.request, job.told_walltime), job.request);
    }

    // A larger job than all hosts that are free before some time cannot move.
    template <class Reservation>
    std::optional<std::pair<double, Place>> earlier(const Reservation& one, double before) {
        if (before != most_before_) {
            most_before_ = before;
            most_ = *free(0);
            for (size_t step = 1; step < size() && time(step) < before; ++step) most_ = std::max(most_, *free(step));
        }
        if (one.place.hosts > most_) return std::nullopt;
        double start = earlier(one.place, one.job->told_walltime, one.start, before);
        if (!(start < one.start)) return std::nullopt;
        return std::pair(start, one.place);
    }

    void begin_moves(double) {}

    // Until when a job that was started has which place; it gives it up.
    static std::optional<std::pair<double, Place>> held_by(const Job& job) {
        return std::pair(job.expected_end, Place{job.nb_hosts});
    }
    void hold(const Job& job) { take(job.start, job.expected_end, {job.nb_hosts}); }

    static void choose(Job&, const Place&) {}

private:
    int64_t most_ = 0;            // the most that is free
    double most_before_ = NAN;    // before this time, if it is known

    void change(double start, double end, Request request, int64_t factor) {
        Timeline::change(start, end, &request.hosts, factor);
        most_before_ = NAN;
    }
};

}  // namespace batsched
