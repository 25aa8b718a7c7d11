// Hosts that fall asleep and wake up (specification: batsched_py/simulator/energy.py, batsched_py/ledger/states.py).
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "energy.hpp"

namespace batsched {

// In which power states a host sleeps and computes, and through which it passes in between.
struct SleepKind {
    struct Way {
        int64_t pstate;
        double seconds;
        Power power;
    };

    int64_t pstate_asleep, pstate_awake;
    Power asleep, awake;
    Way to_sleep, back;
    double load;  // on the way: one core is busy

    const Way& way(bool to_sleep) const { return to_sleep ? this->to_sleep : back; }
};

// A request to let hosts fall asleep or wake up, of which some are not there yet.
struct Switch {
    Runs hosts;
    bool to_sleep;
    int64_t pstate, nb_left;
};

// Hosts that reach their power state together.
struct Arrival {
    std::shared_ptr<Switch> request;
    Runs hosts;
};

// The numbers of some hosts.
inline std::vector<int64_t> each_host(const Runs& hosts) {
    std::vector<int64_t> numbers;
    for (const Run& run : hosts) {
        for (int64_t host = run.first; host <= run.last; ++host) numbers.push_back(host);
    }
    return numbers;
}

// Adds a host to others that come before it.
inline void append_host(Runs& hosts, int64_t host) {
    if (hosts.empty() || hosts.back().last != host - 1) hosts.push_back({host, host});
    hosts.back().last = host;
}

class PowerStates {
public:
    Lines lines;  // in pstate_changes.csv
    HostPool asleep{0}, switching{0};
    std::unordered_map<int64_t, Arrival> on_their_way;  // by the numbers of their arrivals in the agenda

    // The kinds of hosts, and the number of that of each host; negative for one that never sleeps.
    PowerStates(std::vector<SleepKind> kinds, std::vector<int32_t> kind_of) : kinds_(std::move(kinds)), kind_of_(std::move(kind_of)) {
        for (size_t host = 0; host < kind_of_.size(); ++host) {
            auto number = static_cast<int64_t>(host);
            if (kind_of_[host] >= 0) can_sleep_.give({{number, number}});
        }
    }

    const HostPool& can_sleep() const { return can_sleep_; }
    const SleepKind& kind_of(int64_t host) const { return kinds_[static_cast<size_t>(kind_of_[static_cast<size_t>(host)])]; }

    // The hosts by the number of the power state that they are to reach.
    std::vector<Switch> requests(const Runs& hosts, bool to_sleep) const {
        std::map<int64_t, Runs> groups;
        for (int64_t host : each_host(hosts)) {
            append_host(groups[to_sleep ? kind_of(host).pstate_asleep : kind_of(host).pstate_awake], host);
        }
        std::vector<Switch> requests;
        for (auto& [pstate, group] : groups) requests.push_back({group, to_sleep, pstate, count_hosts(group)});
        return requests;
    }

    // Hosts that follow each other and take the same way, and how long they are on it.
    std::vector<std::pair<double, Runs>> by_way(const Switch& request) const {
        std::vector<std::pair<double, Runs>> groups;
        const SleepKind::Way* last = nullptr;
        for (int64_t host : each_host(request.hosts)) {
            const SleepKind::Way& way = kind_of(host).way(request.to_sleep);
            if (!last || last->pstate != way.pstate || last->seconds != way.seconds) groups.push_back({way.seconds, {}});
            append_host(groups.back().second, host);
            last = &way;
        }
        return groups;
    }

    // It was decided that hosts leave their power states; this will be carried out in turn.
    void leave(Switch request) {
        if (!request.to_sleep) asleep.take(request.hosts);
        switching.give(request.hosts);
        decided_.push_back(std::make_shared<Switch>(std::move(request)));
    }

    std::shared_ptr<Switch> next_request() {
        std::shared_ptr<Switch> request = std::move(decided_.front());
        decided_.pop_front();
        return request;
    }

    Arrival take_arrival(int64_t number) { return std::move(on_their_way.extract(number).mapped()); }

    // All hosts of a request are there.
    void reach(const Switch& request) {
        switching.take(request.hosts);
        if (request.to_sleep) asleep.give(request.hosts);
    }

    // Hosts are in a power state now; -1 and -2 are on the way to a computing or sleeping one.
    void add_row(double now, const Runs& hosts, int64_t pstate) {
        if (!lines.write) return;
        std::string text = general(now) + ",";
        append_hosts(text, hosts);
        lines.make_room(text.size());
        lines.add(text);
        lines.add(",");
        lines.add_integer(pstate);
        lines.end_line();
    }

private:
    std::vector<SleepKind> kinds_;
    std::vector<int32_t> kind_of_;
    HostPool can_sleep_{0};
    std::deque<std::shared_ptr<Switch>> decided_;
};

}  // namespace batsched
