// For how long the hosts did what (specification: batsched_py/simulator/machines.py).
#pragma once
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "hosts.hpp"

namespace batsched {

// What hosts do that neither compute nor are idle.
enum class Away : uint8_t { kSleeping, kSwitchingOn, kSwitchingOff, kUnavailable };

class Machines {
public:
    static constexpr size_t kNbAway = 4;  // states in which hosts are away
    const int64_t count;
    int64_t computing = 0;  // how many hosts compute

    explicit Machines(int64_t hosts) : count(hosts) {}

    // How many hosts are away in some state.
    int64_t nb(Away state) const { return count_in(away_[static_cast<size_t>(state)]); }
    int64_t nb_idle() const {
        int64_t idle = count - computing;
        for (const State& state : away_) idle -= count_in(state);
        return idle;
    }

    void occupy(int64_t hosts, double now) {
        pass(now);
        computing += hosts;
    }

    void vacate(const Runs& hosts, int64_t number, double now) {
        pass(now);
        computing -= number;
        note_change(hosts, now);
    }

    // Hosts go over to a state, whatever state each was in; by so much it changes how many compute.
    void turn(const Runs& hosts, std::optional<Away> after, int64_t more_computing, double now) {
        pass(now);
        computing += more_computing;
        for (State& state : away_) {
            if (count_in(state)) {
                state.seconds += static_cast<double>(count_in(state)) * (now - state.since);
                state.hosts.take(state.hosts.overlap(hosts));
            }
            state.since = now;
        }
        if (after) away_[static_cast<size_t>(*after)].hosts.give(hosts);
        note_change(hosts, now);
    }

    struct Seconds {
        double computing;
        std::array<double, kNbAway> away;
        double all;  // with those of being idle
    };

    // The host-seconds up to each host's last change; no job may be running.
    Seconds seconds() {
        forget();
        Seconds seconds{computing_seconds_, {}, 0};
        for (size_t place = 0; place < kNbAway; ++place) {
            const State& state = away_[place];
            seconds.away[place] = state.seconds + static_cast<double>(count_in(state)) * (since_ - state.since);
        }
        for (const Change& change : changes_) {
            Runs hosts = hosts_of(change);
            seconds.all += static_cast<double>(count_hosts(hosts)) * change.time;
            for (size_t place = 0; place < kNbAway; ++place) {
                int64_t number = count_hosts(away_[place].hosts.overlap(hosts));
                seconds.away[place] -= static_cast<double>(number) * (since_ - change.time);
            }
        }
        return seconds;
    }

private:
    struct State {
        HostPool hosts{0};
        double seconds = 0, since = 0;
    };
    struct Change {
        double time;
        size_t begin, end;  // of its hosts among all
    };

    static constexpr size_t kMany = 4096;  // changes are remembered before those that no longer matter are forgotten
    double since_ = 0, computing_seconds_ = 0;
    std::array<State, kNbAway> away_;
    std::vector<Change> changes_;
    Runs hosts_;
    size_t many_ = kMany;

    static int64_t count_in(const State& state) { return state.hosts.available().hosts; }

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
