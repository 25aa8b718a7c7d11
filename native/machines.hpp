// For how long the hosts computed and were idle (specification: batsched_py/simulator/machines.py).
#pragma once
#include <utility>
#include <vector>

#include "hosts.hpp"

namespace batsched {

class Machines {
public:
    const int64_t count;
    int64_t computing = 0;

    explicit Machines(int64_t hosts) : count(hosts) {}

    void occupy(int64_t hosts, double now) {
        pass(now);
        computing += hosts;
    }

    void vacate(const Runs& hosts, int64_t number, double now) {
        pass(now);
        computing -= number;
        size_t begin = hosts_.size();
        hosts_.insert(hosts_.end(), hosts.begin(), hosts.end());
        changes_.push_back({now, begin, hosts_.size()});
        if (changes_.size() > many_) forget();
    }

    // The host-seconds of computing and of being idle, up to each host's last change; no job may be running.
    std::pair<double, double> seconds() {
        forget();
        double last_changes = 0;
        for (const Change& change : changes_) {
            last_changes += static_cast<double>(count_hosts(hosts_of(change))) * change.time;
        }
        return {computing_seconds_, last_changes - computing_seconds_};
    }

private:
    struct Change {
        double time;
        size_t begin, end;  // of its hosts among all
    };

    static constexpr size_t kMany = 4096;  // changes are remembered before those that no longer matter are forgotten
    double since_ = 0, computing_seconds_ = 0;
    std::vector<Change> changes_;
    Runs hosts_;
    size_t many_ = kMany;

    Runs hosts_of(const Change& change) const { return {hosts_.data() + change.begin, hosts_.data() + change.end}; }

    void pass(double now) {
        computing_seconds_ += static_cast<double>(computing) * (now - since_);
        since_ = now;
    }

    // Keeps of each host the last change only.
    void forget() {
        HostPool unseen(count);
        std::vector<std::pair<double, Runs>> kept;
        for (auto change = changes_.rbegin(); change != changes_.rend() && unseen.available().hosts; ++change) {
            Runs fresh = unseen.overlap(hosts_of(*change));
            if (fresh.empty()) continue;
            unseen.take(fresh);
            kept.push_back({change->time, std::move(fresh)});
        }
        changes_.clear();
        hosts_.clear();
        for (auto change = kept.rbegin(); change != kept.rend(); ++change) {
            size_t begin = hosts_.size();
            hosts_.insert(hosts_.end(), change->second.begin(), change->second.end());
            changes_.push_back({change->first, begin, hosts_.size()});
        }
        many_ = 2 * changes_.size() + kMany;
    }
};

}  // namespace batsched
