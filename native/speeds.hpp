// How fast hosts are, and how long jobs take on them (specification: batsched_py/simulator/execution.py).
#pragma once
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "job.hpp"

namespace batsched {

class Speeds {
public:
    explicit Speeds(double even) : even_(even) {}

    // Not all hosts are the same: flop/s of one core of each host, and of all its cores.
    void set(std::vector<double> speeds, std::vector<double> capacities) {
        bool are_even = std::all_of(speeds.begin(), speeds.end(), [&](double speed) { return speed == speeds[0]; });
        even_ = are_even ? speeds[0] : 0;
        speeds_ = std::move(speeds);
        capacities_ = std::move(capacities);
    }

    // How long a job takes on its hosts, if nothing ends it before.
    double seconds(const Job& job) const {
        const Profile& profile = job.profile;
        if (profile.kind == Profile::Kind::kDelay) return profile.amount;
        if (job.executors.empty()) return profile.amount / (even_ ? even_ : slowest(job.hosts));
        double slowest = INFINITY, longest = 0;
        for (int64_t host : job.executors) slowest = std::min(slowest, speeds_.empty() ? even_ : speeds_[host]);
        for (auto [host, flops] : work(job)) longest = std::max(longest, flops / capacity(host));
        return std::max(profile.amount / slowest, longest);
    }

    // Which part of each of its hosts' cores a job uses, whose seconds are known.
    std::vector<std::pair<int64_t, double>> loads(const Job& job) const {
        if (job.profile.kind == Profile::Kind::kDelay || !(job.seconds > 0)) return {};
        auto loads = work(job);
        for (auto& [host, part] : loads) part = part / job.seconds / capacity(host);
        return loads;
    }

private:
    double even_;  // the speed of all hosts; 0 if they differ
    std::vector<double> speeds_, capacities_;  // nothing if each host is one core of that speed

    double capacity(int64_t host) const { return capacities_.empty() ? even_ : capacities_[static_cast<size_t>(host)]; }

    double slowest(const Runs& hosts) const {
        double slowest = INFINITY;
        for (const Run& run : hosts) {
            slowest = std::min(slowest, *std::min_element(speeds_.begin() + run.first, speeds_.begin() + run.last + 1));
        }
        return slowest;
    }

    // The flops that a computation has to do on each host.
    static std::vector<std::pair<int64_t, double>> work(const Job& job) {
        std::vector<std::pair<int64_t, double>> work;
        for (const Run& run : job.executors.empty() ? job.hosts : Runs()) {
            for (int64_t host = run.first; host <= run.last; ++host) work.push_back({host, job.profile.amount});
        }
        std::unordered_map<int64_t, size_t> places;
        for (int64_t host : job.executors) {
            auto [place, is_new] = places.try_emplace(host, work.size());
            if (is_new) work.push_back({host, 0.0});
            work[place->second].second += job.profile.amount;
        }
        return work;
    }
};

}  // namespace batsched
