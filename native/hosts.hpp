// Sets of hosts as intervals, and what jobs ask for.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "text.hpp"

namespace batsched {

// The first and the last host of an interval.
struct Run {
    int64_t first, last;
    bool operator==(const Run&) const = default;
};

// Intervals in order that do not touch.
using Runs = std::vector<Run>;

inline int64_t count_hosts(const Runs& runs) {
    int64_t count = 0;
    for (const Run& run : runs) count += run.last + 1 - run.first;
    return count;
}

// As Batsim writes them: "0-3 7".
inline void append_hosts(std::string& text, const Runs& hosts) {
    for (size_t place = 0; place < hosts.size(); ++place) {
        if (place) text += ' ';
        append_integer(text, hosts[place].first);
        if (hosts[place].last == hosts[place].first) continue;
        text += '-';
        append_integer(text, hosts[place].last);
    }
}

// What a job asks for, or what there is of it: so many hosts. What it asks of nodes is a demand, known by its number.
struct Request {
    int64_t hosts = 0;
    int32_t demand = -1;

    bool fits(Request free) const { return hosts <= free.hosts; }
    Request operator+(Request other) const { return {hosts + other.hosts}; }
    Request operator-(Request other) const { return {hosts - other.hosts}; }
    bool operator==(const Request&) const = default;
};

// The free hosts of a machine. What taking and giving costs depends on the number of intervals, not of hosts.
class HostPool {
public:
    explicit HostPool(int64_t hosts) : count_{hosts} {
        if (hosts) runs_.push_back({0, hosts - 1});
    }
    explicit HostPool(Runs hosts) : count_{count_hosts(hosts)}, runs_(std::move(hosts)) {}

    Request available() const { return count_; }
    const Runs& runs() const { return runs_; }

    bool contains(const Runs& hosts) const {
        return std::all_of(hosts.begin(), hosts.end(), [this](const Run& run) {
            auto next = after(run.first);
            return next != runs_.begin() && std::prev(next)->last >= run.last;
        });
    }

    Runs overlap(const Runs& hosts) const {
        Runs found;
        for (const Run& run : hosts) {
            auto place = after(run.first);
            if (place != runs_.begin()) --place;
            for (; place != runs_.end() && place->first <= run.last; ++place) {
                if (place->last >= run.first) {
                    found.push_back({std::max(run.first, place->first), std::min(run.last, place->last)});
                }
            }
        }
        return found;
    }

    // Adds free hosts of an interval to others that come before it: so many, those with the lowest numbers.
    void append_lowest(Runs& hosts, Run within, int64_t wanted) const {
        auto place = after(within.first);
        if (place != runs_.begin()) --place;
        for (; wanted && place != runs_.end() && place->first <= within.last; ++place) {
            int64_t first = std::max(within.first, place->first);
            int64_t last = std::min({within.last, place->last, first + wanted - 1});
            if (last < first) continue;
            if (!hosts.empty() && hosts.back().last == first - 1) {
                hosts.back().last = last;
            } else {
                hosts.push_back({first, last});
            }
            wanted -= last + 1 - first;
        }
    }

    // Takes the hosts with the lowest numbers; there must be enough.
    Runs take_lowest(Request request) {
        int64_t wanted = request.hosts;
        Runs taken;
        count_ = count_ - request;
        auto place = runs_.begin();
        for (; wanted; ++place) {
            int64_t end = place->first + wanted;
            if (end <= place->last) {
                taken.push_back({place->first, end - 1});
                place->first = end;
                break;
            }
            taken.push_back(*place);
            wanted = end - place->last - 1;
        }
        runs_.erase(runs_.begin(), place);
        return taken;
    }

    // Takes these, all of which must be free.
    void take(const Runs& hosts) {
        count_ = count_ - Request{count_hosts(hosts)};
        for (const Run& run : hosts) {
            auto place = std::prev(after(run.first));
            int64_t high = place->last;
            if (place->first == run.first) {
                if (high == run.last) {
                    runs_.erase(place);
                } else {
                    place->first = run.last + 1;
                }
            } else {
                place->last = run.first - 1;
                if (high != run.last) runs_.insert(place + 1, {run.last + 1, high});
            }
        }
    }

    // Gives these back, none of which is free.
    void give(const Runs& hosts) {
        count_ = count_ + Request{count_hosts(hosts)};
        for (const Run& run : hosts) {
            auto next = after(run.first);
            bool joins_next = next != runs_.end() && next->first == run.last + 1;
            if (next != runs_.begin() && std::prev(next)->last == run.first - 1) {
                std::prev(next)->last = joins_next ? next->last : run.last;
                if (joins_next) runs_.erase(next);
            } else if (joins_next) {
                next->first = run.first;
            } else {
                runs_.insert(next, run);
            }
        }
    }

private:
    Request count_;
    Runs runs_;

    // The first interval that begins after a host.
    Runs::const_iterator after(int64_t host) const {
        return std::upper_bound(runs_.begin(), runs_.end(), host,
                                [](int64_t one, const Run& run) { return one < run.first; });
    }
    Runs::iterator after(int64_t host) { return runs_.begin() + (std::as_const(*this).after(host) - runs_.cbegin()); }
};

// The hosts that are not among others.
inline Runs without(const Runs& hosts, const Runs& others) {
    HostPool left(hosts);
    left.take(left.overlap(others));
    return left.runs();
}

}  // namespace batsched
