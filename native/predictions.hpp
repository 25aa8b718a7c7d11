// Run times as users' earlier jobs predict them (specification: batsched_py/schedulers/predictions.py).
#pragma once
#include "simulation.hpp"

namespace batsched {

class Predictions {
public:
    // The least that is predicted, and by how much a prediction is prolonged that expires for the first time, the second ...
    Predictions(Simulation& simulation, double shortest, std::vector<double> corrections)
        : simulation_(simulation), shortest_(shortest), more_(std::move(corrections)) {}

    double estimate(Job& job) { return estimate(recent_of(simulation_.user_numbers.of(job)), job.told_walltime); }
    double estimate(const std::optional<std::string>& user, double walltime) {
        return estimate(recent_of(simulation_.user_numbers.of(user)), walltime);
    }

    void learn(Job& ended) {
        Recent& recent = recent_of(simulation_.user_numbers.of(ended));
        recent.before = std::exchange(recent.last, simulation_.now() - ended.start);
        ++recent.count;
        nb_corrections_.erase(&ended);
    }

    // Prolongs the predictions that have expired.
    void correct() {
        double now = simulation_.now();
        std::vector<JobPtr> expired;
        for (const Running::Place& place : simulation_.running.by_end()) {
            if (place.expected_end > now) break;
            expired.push_back(place.job);
        }
        for (const JobPtr& job : expired) {
            double ran = now - job->start;
            if (!(ran < job->told_walltime)) continue;
            size_t count = nb_corrections_[job.get()]++;
            simulation_.expect(*job, std::min(ran + more_[std::min(count, more_.size() - 1)], job->told_walltime));
        }
    }

    // The expiry of a prediction is nobody else's event, and it can let a job start that waits.
    void call_at_next_expiry() {
        if (simulation_.queue.empty()) return;
        double now = simulation_.now(), expiry = simulation_.running.next_end_after(now);
        if (next_call_ > now && !(expiry < next_call_)) return;
        next_call_ = expiry;
        if (expiry == INFINITY) return;
        simulation_.call_at(first_tick_from(expiry));
    }

private:
    // The run times of a user's last two jobs.
    struct Recent {
        double before = 0, last = 0;
        int64_t count = 0;
    };

    Simulation& simulation_;
    double shortest_;
    std::vector<double> more_;
    std::vector<Recent> recent_;  // by the numbers of users
    std::unordered_map<const Job*, size_t> nb_corrections_;
    double next_call_ = INFINITY;

    // The average of the run times, but at most a walltime.
    double estimate(const Recent& recent, double walltime) const {
        if (!recent.count) return walltime;
        double average = recent.count == 1 ? recent.last : (recent.before + recent.last) / 2;
        return std::min(std::max(average, shortest_), walltime);
    }

    Recent& recent_of(size_t user) {
        if (user >= recent_.size()) recent_.resize(user + 1);
        return recent_[user];
    }
};

}  // namespace batsched
