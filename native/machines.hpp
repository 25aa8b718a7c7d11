// For how long the hosts computed and were idle (specification: batsched_py/simulator/machines.py).
#pragma once
#include <utility>
#include <vector>

#include "hosts.hpp"

namespace batsched {

class Machines {
public:
    const int64_t count;
    int64_t computing = 0, away = 0;  // how many hosts compute or are away

    explicit Machines(int64_t hosts) : count(hosts) {}

    void occupy(int64_t hosts, double now) {
        pass(now);
        computing += hosts;
    }

    void vacate(const Runs& hosts, int64_t number, double now) {
        pass(now);
        computing -= number;
        note_change(hosts, now);
    }

    // Hosts go away or come back: by so much it changes how many compute, and how many are away.
    void turn(const Runs& hosts, int64_t more_computing, int64_t more_away, double now) {
        pass(now);
        computing += more_computing;
        away_seconds_ += static_cast<double>(away) * (now - away_since_);
        away_since_ = now;
        away += more_away;
        note_change(hosts, now);
    }

    struct Seconds {
        double computing, idle, away;
    };

    // The host-seconds up to each host's last change, given which hosts are not away; no job may be running.
    Seconds seconds(const HostPool& there) {
        forget();
        double last_changes = 0, seconds_away = away_seconds_ + static_cast<double>(away) * (since_ - away_since_);
        for (const Change& change : changes_) {
            Runs hosts = hosts_of(change);
            int64_t count = count_hosts(hosts);
            last_changes += static_cast<double>(count) * change.time;
            seconds_away -= static_cast<double>(count - count_hosts(there.overlap(hosts))) * (since_ - change.time);
        }
        return {computing_seconds_, last_changes - (seconds_away + computing_seconds_), seconds_away};
    }

private:
    struct Change {
        double time;
        size_t begin, end;  // of its hosts among all
    };

    static constexpr size_t kMany = 4096;  // changes are remembered before those that no longer matter are forgotten
    double since_ = 0, computing_seconds_ = 0;
    double away_since_ = 0, away_seconds_ = 0;
    std::vector<Change> changes_;
    Runs hosts_;
    size_t many_ = kMany;

    Runs hosts_of(const Change& change) const { return {hosts_.data() + change.begin, hosts_.data() + change.end}; }

    void pass(double now) {
        computing_seconds_ += static_cast<double>(computing) * (now - since_);
        since_ = now;
    }

    void note_change(const Runs& hosts, double now) {
        size_t begin = hosts_.size();
        hosts_.insert(hosts_.end(), hosts.begin(), hosts.end());
        changes_.push_back({now, begin, hosts_.size()});
        if (changes_.size() > many_) forget();
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
