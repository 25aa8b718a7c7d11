// A plan on a machine of nodes: for each waiting job a reservation, with its place (specification:
// batsched_py/ledger/free_nodes.py).
#pragma once
#include "node_profile.hpp"
#include "queue.hpp"
#include "running.hpp"

namespace batsched {

class NodePlan {
public:
    struct Reservation {
        JobPtr job;
        double start;
        Placement placement;
        double end() const { return start + job->told_walltime; }
    };

    NodePlan(Nodes& nodes, const Running& running, double now, double tick) : nodes_(nodes), profile_(nodes, now) {
        for (const Running::Place& place : running.by_end()) {
            double end = std::max(place.expected_end, now + tick);
            profile_.give(end, INFINITY, *place.job->placement, demand(*place.job));
            held_.emplace(place.job.get(), Held{end, place.job->placement});
        }
    }

    const std::vector<Reservation>& reservations() const { return reserved_; }

    // A job has ended: what it leaves of its time is free.
    void job_ended(const Job& job, double now) {
        auto held = held_.extract(&job);
        if (!held) return;
        profile_.give(now, held.mapped().end, *held.mapped().placement, demand(job));
        freed_until_ = std::max(freed_until_, held.mapped().end);
        some_ended_ = true;
    }

    // Time has passed, and jobs may have left the queue.
    void advance(double now, const Queue&) {
        profile_.advance(now);
        std::erase_if(reserved_, [this](const Reservation& one) {
            if (one.job->state == State::kWaiting) return false;
            give_up(one);
            return true;
        });
    }

    // Lets each job in turn have the earliest reservation that all others leave, if jobs have ended.
    void move_forward() {
        if (!std::exchange(some_ended_, false)) return;
        double freed_until = std::exchange(freed_until_, 0.0);
        for (Reservation& one : reserved_) {
            double latest = std::min(freed_until, one.start), end = one.end();
            give_up(one);
            auto found = profile_.earliest(demand(*one.job), one.job->told_walltime, latest);
            if (found) {
                one.start = found->first;
                one.placement = std::move(found->second);
                freed_until_ = std::max(freed_until_, end);
                freed_until = std::max(freed_until, freed_until_);
            }
            take(one);
        }
    }

    // Gives the jobs that have none a reservation.
    void reserve_new(const Queue& queue) {
        while (JobPtr job = queue.find(last_, INT64_MAX, [](Request, double) { return true; })) {
            last_ = job->arrival;
            auto found = profile_.earliest(demand(*job), job->told_walltime);
            reserved_.push_back({job, found ? found->first : INFINITY, found ? std::move(found->second) : Placement()});
            take(reserved_.back());
        }
    }

    // The jobs whose time has come; each goes to the place that is reserved for it.
    std::vector<JobPtr> due(double now) {
        std::vector<JobPtr> jobs;
        for (const Reservation& one : reserved_) {
            if (one.start > now) continue;
            nodes_.choose(*one.job, one.placement);
            jobs.push_back(one.job);
        }
        return jobs;
    }

    // A job was started: it has its nodes in place of a reservation.
    void job_started(const Job& job) {
        auto place = std::find_if(reserved_.begin(), reserved_.end(),
                                  [&](const Reservation& one) { return one.job.get() == &job; });
        if (place != reserved_.end()) {
            give_up(*place);
            reserved_.erase(place);
        }
        if (!nodes_.has_placed(job)) return;
        profile_.take(job.start, job.expected_end, *job.placement, demand(job));
        held_.emplace(&job, Held{job.expected_end, job.placement});
    }

private:
    struct Held {
        double end;
        std::shared_ptr<const Placement> placement;
    };

    Nodes& nodes_;
    NodeProfile profile_;
    std::vector<Reservation> reserved_;
    std::unordered_map<const Job*, Held> held_;
    double freed_until_ = 0;
    bool some_ended_ = false;
    int64_t last_ = 0;  // the arrival of the last job with a reservation

    const Demand& demand(const Job& job) const { return nodes_.demand(job.request); }

    void take(const Reservation& one) {
        if (one.start < INFINITY) profile_.take(one.start, one.end(), one.placement, demand(*one.job));
    }

    void give_up(const Reservation& one) {
        nodes_.forget(*one.job);
        if (one.start < INFINITY) profile_.give(one.start, one.end(), one.placement, demand(*one.job));
    }
};

}  // namespace batsched
