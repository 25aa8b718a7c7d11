// What will be free on a machine of nodes, and when (specification: batsched_py/ledger/node_profile.py).
#pragma once
#include <bit>

#include "nodes.hpp"
#include "profile.hpp"

namespace batsched {

// For how long each node will have how many free cores without a break. It tells at once which nodes a job need not look
// at: when most are reserved for others, those are nearly all.
class Stretches {
public:
    explicit Stretches(const Nodes& nodes)
        : by_level_(static_cast<size_t>(std::bit_width(nodes.has.by_cores.size() - 1)), std::vector<Longest>(nodes.count())) {}

    void note(size_t node, const Timeline& timeline) {
        for (auto& longest : by_level_) longest[node] = {};
        size_t nb_begun = 0;  // there are stretches with the numbers of cores up to this one
        for (size_t step = 0; step < timeline.size(); ++step) {
            auto cores = static_cast<uint64_t>(std::max<int64_t>(timeline.free(step)[kCores], 0));
            size_t nb_levels = std::min<size_t>(static_cast<size_t>(std::bit_width(cores)), by_level_.size());
            while (nb_begun < nb_levels) by_level_[nb_begun++][node].last = timeline.time(step);
            while (nb_begun > nb_levels) {
                Longest& longest = by_level_[--nb_begun][node];
                double end = std::nextafter(timeline.time(step), INFINITY);  // sums of times are rounded
                longest.seconds = std::max(longest.seconds, end - std::exchange(longest.last, INFINITY));
            }
        }
    }

    // The longest ones of a node with some number of cores.
    struct Longest {
        double seconds = 0;      // of the stretches that end
        double last = INFINITY;  // since when there is one that does not end

        // Whether there may be one of such a length, from some time before another.
        bool may_last(double duration, double before) const { return seconds >= duration || last < before; }
    };

    // Of each node, with no more cores than a task of a job takes.
    const std::vector<Longest>& of(const Demand& demand) const {
        auto level = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(demand.cores))) - 1;
        return by_level_[std::min(level, by_level_.size() - 1)];
    }

private:
    std::vector<std::vector<Longest>> by_level_;  // for 1, 2, 4 ... cores
};

// How many tasks of a job nodes could take for so long, depending on when it starts.
class Starts {
public:
    // For how many tasks there is room at most if a job starts at a time, or later but before the next one.
    struct Limit {
        double since;
        int64_t tasks;
    };

    struct Found {
        double start = INFINITY;
        std::vector<Limit> limits = {};  // if there is no start
    };

    Starts(const Demand& demand, double duration, double from, double before)
        : demand_(demand), duration_(duration), from_(from), before_(before) {}

    // Adds a node, or the licences, with what each step of its timeline has room for; returns the most for any start.
    template <class Room>
    int64_t add(size_t place, const Timeline& timeline, Room room) {
        int64_t tasks = 0, most = 0;
        auto note = [&](double since, int64_t now) {
            if (now != tasks) changes_.push_back({since, place, now - tasks});
            most = std::max(most, tasks = now);
        };
        for (size_t first = timeline.at(from_), count = timeline.size(); first < count; ++first) {
            double since = std::max(timeline.time(first), from_);
            double until = first + 1 < count ? timeline.time(first + 1) : INFINITY;
            if (!(since < before_)) break;
            int64_t least = room(timeline.free(first));
            size_t next = first + 1;
            for (; least && next < count && timeline.time(next) < since + duration_; ++next) {
                least = std::min(least, room(timeline.free(next)));
            }
            note(since, least);
            if (!least) first = next - 1;  // what stops it there stops all starts until then
            for (; least && next < count; ++next) {
                double reached = first_reaching(timeline.time(next));
                if (!(reached < std::min(until, before_))) break;
                least = std::min(least, room(timeline.free(next)));
                note(reached, least);
            }
        }
        return most;
    }

    // The earliest start for which there is room; there may be room for more tasks on nodes that were not added.
    Found earliest(size_t nb_nodes, int64_t tasks) {
        std::sort(changes_.begin(), changes_.end(),
                  [](const Change& one, const Change& other) { return one.since < other.since; });
        Found found{INFINITY, {{-INFINITY, std::min(tasks, demand_.tasks - 1)}}};
        Amounts rooms(nb_nodes + 1, 0);
        int64_t used = 0;
        for (size_t next = 0; next < changes_.size();) {
            double start = changes_[next].since;
            for (; next < changes_.size() && changes_[next].since == start; ++next) {
                const Change& change = changes_[next];
                int64_t before = std::exchange(rooms[change.place], rooms[change.place] + change.more);
                if (change.place == nb_nodes) continue;
                tasks += change.more;
                used += (rooms[change.place] > 0) - (before > 0);
            }
            if (tasks >= demand_.tasks && suffices(rooms, used)) return {start};
            found.limits.push_back({start, std::min(tasks, demand_.tasks - 1)});
        }
        return found;
    }

private:
    // From a start on, there is room for so many tasks more, or fewer.
    struct Change {
        double since;
        size_t place;
        int64_t more;
    };

    const Demand& demand_;
    double duration_, from_, before_;
    std::vector<Change> changes_;

    // Whether so much room on so many nodes is enough, if it is for all tasks together.
    bool suffices(const Amounts& rooms, int64_t used) const {
        if (used < demand_.least_nodes || (!demand_.licences.empty() && !rooms.back())) return false;
        if (used <= demand_.most_nodes) return true;
        Amounts ordered(rooms.begin(), rooms.end() - 1);
        return Nodes::largest(ordered.begin(), ordered.end(), demand_.most_nodes) >= demand_.tasks;
    }

    // The first start from which the job would still run at a time.
    double first_reaching(double time) const {
        double start = time - duration_;
        while (start + duration_ > time) start = std::nextafter(start, -INFINITY);
        while (!(start + duration_ > time)) start = std::nextafter(start, INFINITY);
        return start;
    }
};

// A timeline for each node, one of the licences behind them, and one of the sums of all nodes.
class NodeProfile {
public:
    struct Place {
        const Demand* demand = nullptr;
        std::shared_ptr<const Placement> placement = nullptr;
        size_t nb_seen = 0;  // of what was given back: where it could have moved for that, it has
        std::vector<Starts::Limit> limits = {};  // for which it could not start earlier
    };
    using Held = std::optional<std::pair<double, Place>>;

    NodeProfile(const Nodes& nodes, const FreeAmounts& free, const Running& running, double now)
        : nodes_(nodes), now_(now), sums_(now, Amounts(nodes.columns(), 0)), stretches_(nodes), owned_at_(nodes.count(), 0) {
        Amounts row(nodes.columns());
        for (size_t node = 0; node < nodes.count(); ++node) {
            for (size_t column = 0; column < row.size(); ++column) row[column] = free.nodes[column * nodes.count() + node];
            timelines_.emplace_back(now, row);
            sums_.change(now, INFINITY, row.data(), 1);
            stretches_.note(node, timelines_.back());
        }
        timelines_.emplace_back(now, free.licences);
        for (const Running::Place& place : running.by_end()) {
            double end = std::max(place.expected_end, now + kTick);
            Place held{&nodes.demand(place.job->request), place.job->given_back};
            change(end, INFINITY, held, 1);
            held_.emplace(place.job.get(), std::pair(end, std::move(held)));
        }
    }

    void take(double start, double end, const Place& place) { change(start, end, place, -1); }

    void give(double start, double end, const Place& place) {
        change(start, end, place, 1);
        note_freed(start, end, place);
    }

    // A job has started that had a reservation.
    template <class Reservation>
    void start(const Job& job, const Reservation& one) {
        change(one.start, one.end(), one.place, 1);
        bool is_in_time = job.start <= std::max(one.start, now_) && job.expected_end >= one.end();
        if (!is_in_time || job.placement != one.place.placement) note_freed(one.start, one.end(), one.place);
        hold(job);
    }

    // Forgets what was before now; a node does when it next changes.
    void advance(double now) {
        now_ = now;
        sums_.advance(now);
    }

    // The earliest time from which there is a place for a job; infinite if there is none.
    double earliest(const Job& job) const {
        const Demand& demand = nodes_.demand(job.request);
        double from = could_start(demand, job.told_walltime);
        size_t step = sums_.at(from);
        for (size_t nb_steps = 1; from < INFINITY; nb_steps *= 8) {  // most find a place soon
            step += nb_steps;
            double before = step < sums_.size() ? sums_.time(step) : INFINITY;
            Starts::Found found = earliest(demand, job.told_walltime, from, before, {});
            if (found.start < INFINITY) return found.start;
            from = before;
        }
        return INFINITY;
    }

    // An earlier time to which a reservation can move, before some time.
    template <class Reservation>
    std::optional<double> earlier(Reservation& one, double before) {
        before = std::min(before, one.start);
        if (before <= now_) return std::nullopt;
        double duration = one.job->told_walltime;
        const Demand& demand = nodes_.demand(one.job->request);
        Own own{one.place.placement.get(), one.start, one.end()};
        if (!has_gained(one.place, own, duration, before)) return std::nullopt;
        auto [start, limits] = earliest(demand, duration, now_, before, own);
        if (start < INFINITY) return start;
        if (before < one.start) limits.push_back({before, demand.tasks - 1});
        one.place.limits = std::move(limits);
        return std::nullopt;
    }

    // Gives a reservation another time, and a place that it has then.
    template <class Reservation>
    void move(Reservation& one, double start) {
        give(one.start, one.end(), one.place);
        one.start = start;
        one.place = place(*one.job, start);
        take(start, one.end(), one.place);
    }

    // The place that a job gets if it starts at a time when there is one.
    Place place(const Job& job, double start) const {
        if (start == INFINITY) return {nullptr, nullptr, nb_freed()};
        const Demand& demand = nodes_.demand(job.request);
        auto placement = nodes_.made(*nodes_.place(demand, least(demand, start, job.told_walltime)));
        return {&demand, std::move(placement), nb_freed(), {{-INFINITY, demand.tasks - 1}}};
    }

    // All reservations are about to be moved: what each of them has seen given back is forgotten.
    template <class Reservations>
    void begin_moves(const Reservations& reserved) {
        size_t nb_seen = nb_freed();
        for (const auto& one : reserved) nb_seen = std::min(nb_seen, one.place.nb_seen);
        freed_.erase(freed_.begin(), freed_.begin() + static_cast<ptrdiff_t>(nb_seen - nb_forgotten_));
        nb_forgotten_ = nb_seen;
    }

    // Until when a job that was started has which place; it gives it up.
    Held held_by(const Job& job) {
        auto held = held_.extract(&job);
        return held ? Held(std::move(held.mapped())) : std::nullopt;
    }

    void hold(const Job& job) {
        if (!nodes_.has_placed(job)) return;
        Place held{&nodes_.demand(job.request), job.placement};
        take(job.start, job.expected_end, held);
        if (is_overbooked(job)) overbooked_until_ = std::max(overbooked_until_, job.expected_end);
        held_.emplace(&job, std::pair(job.expected_end, std::move(held)));
    }

    static void choose(Job& job, const Place& place) { job.placement = place.placement; }

private:
    // A node of which something was given back, and from when until when.
    struct Freed {
        size_t node;
        double since, until;
    };

    // What a job has reserved for itself, if it has.
    struct Own {
        const Placement* placement = nullptr;
        double start = 0, end = 0;
    };

    const Nodes& nodes_;
    double now_;
    std::vector<Timeline> timelines_;
    Timeline sums_;
    Stretches stretches_;
    std::unordered_map<const Job*, std::pair<double, Place>> held_;  // by running jobs, and until when
    std::vector<Freed> freed_;                                       // in the order in which it was given back
    size_t nb_forgotten_ = 0;                                        // of these, at the front
    std::vector<int64_t> owned_at_;  // for each node: the visit to a reservation that has something of it
    int64_t nb_visits_ = 0;
    double overbooked_until_ = 0;  // until then, running jobs may have more of a node than it has: sums are too low

    // Whether a job that has just started has, at some time, more of its nodes than the reservations of others leave.
    bool is_overbooked(const Job& job) const {
        Amounts least(nodes_.columns());
        for (size_t node : job.placement->nodes) {
            timelines_[node].least(std::max(job.start, now_), job.expected_end, least.data(), 1);
            if (std::any_of(least.begin(), least.end(), [](int64_t amount) { return amount < 0; })) return true;
        }
        return false;
    }

    // From when on all nodes together have enough for a job; on fewer it cannot start earlier.
    double could_start(const Demand& demand, double duration) const {
        if (overbooked_until_ > now_) return now_;
        return sums_.earlier(duration, INFINITY, INFINITY, [&](const int64_t* free) {
            for (size_t column = 0; column < demand.least.size(); ++column) {
                if (free[column] < demand.least[column]) return false;
            }
            return true;
        });
    }

    size_t nb_freed() const { return nb_forgotten_ + freed_.size(); }

    // Whether a job may find room for all its tasks, now that something was given back of nodes since it was last looked at;
    // only there can a reservation move that could not before.
    bool has_gained(Place& place, const Own& own, double duration, double before) {
        size_t nb_seen = std::exchange(place.nb_seen, nb_freed());
        if (!place.placement || !place.demand->licences.empty()) return true;
        const auto& stretches = stretches_.of(*place.demand);
        bool is_enough = false;
        double freed_until = 0;
        ++nb_visits_;
        for (size_t node : place.placement->nodes) owned_at_[node] = nb_visits_;
        for (size_t number = nb_seen - nb_forgotten_; number < freed_.size(); ++number) {
            const Freed& freed = freed_[number];
            freed_until = std::max(freed_until, freed.until);
            bool is_own = owned_at_[freed.node] == nb_visits_;
            if (!is_own && !stretches[freed.node].may_last(duration, before)) continue;
            if (!place.demand->may_use[freed.node]) continue;
            is_enough |= gains(place, freed, duration, before, is_own ? own.start : INFINITY);
        }
        if (freed_until > before && before < own.start) place.nb_seen = nb_seen;
        return is_enough;
    }

    // Raises the limits of a reservation where it may find room on a node of which something was given back; whether there
    // may be enough now.
    bool gains(Place& place, const Freed& freed, double duration, double before, double reserved) const {
        const Timeline& timeline = timelines_[freed.node];
        double latest = std::min(freed.until, before), begin = now_;
        int64_t most = 0;
        bool is_enough = false;
        for (size_t step = timeline.at(now_); begin < latest; ++step) {
            double end = step + 1 < timeline.size() ? timeline.time(step + 1) : INFINITY;
            int64_t room = nodes_.capacity(*place.demand, timeline.free(step), 1);
            most = std::max(most, room);
            if (room && end >= reserved) end = INFINITY;
            if (room && end < INFINITY) continue;
            double until = room ? end : timeline.time(step);  // there is room from the beginning until then
            if (until >= begin + duration && until > freed.since) {
                double last = until < INFINITY ? std::min(std::nextafter(until, INFINITY) - duration, latest) : latest;
                is_enough |= raise(place.limits, begin, last, most) >= place.demand->tasks;
            }
            most = 0;
            begin = end;
        }
        return is_enough;
    }

    // Raises the limits of starts between two times; the highest of them then.
    static int64_t raise(std::vector<Starts::Limit>& limits, double first, double last, int64_t more) {
        auto limit = std::upper_bound(limits.begin(), limits.end(), first,
                                      [](double time, const Starts::Limit& limit) { return time < limit.since; });
        int64_t highest = 0;
        for (--limit; limit != limits.end() && limit->since <= last; ++limit) highest = std::max(highest, limit->tasks += more);
        return highest;
    }

    // For how many tasks a job may find room on a node if it starts before its own reservation there.
    int64_t most_before(const Own& own, const Demand& demand, double duration, size_t node) const {
        const Timeline& timeline = timelines_[node];
        size_t last = timeline.at(std::nextafter(own.start, -INFINITY));
        int64_t most = nodes_.capacity(demand, timeline.free(last), 1);
        if (!stretches_.of(demand)[node].may_last(duration, own.start)) return most;
        for (size_t step = timeline.at(now_); step < last; ++step) {
            most = std::max(most, nodes_.capacity(demand, timeline.free(step), 1));
        }
        return most;
    }

    void note_freed(double start, double end, const Place& place) {
        start = std::max(start, now_);
        if (!place.placement || !(start < end)) return;
        for (size_t node : place.placement->nodes) freed_.push_back({node, start, end});
    }

    // The earliest time between two others from which there is a place for so long. What is its own is free for a job.
    Starts::Found earliest(const Demand& demand, double duration, double from, double before, const Own& own) const {
        if (demand.alternatives.size() == 1) return earliest(demand, demand.alternatives[0], duration, from, before, own);
        Starts::Found found{INFINITY, {{-INFINITY, demand.tasks - 1}}};
        for (const auto& nodes : demand.alternatives) {
            double start = earliest(demand, nodes, duration, from, std::min(before, found.start), own).start;
            found.start = std::min(found.start, start);
        }
        return found;
    }

    // The earliest time from which some nodes have a place for so long.
    Starts::Found earliest(const Demand& demand, const std::vector<size_t>& nodes, double duration, double from, double before,
                           const Own& own) const {
        Starts starts(demand, duration, from, before);
        const auto& stretches = stretches_.of(demand);
        auto room = [&](const int64_t* free) { return nodes_.capacity(demand, free, 1); };
        std::vector<size_t> own_rows;
        size_t row = 0, nb_own = own.placement ? own.placement->nodes.size() : 0;
        int64_t most_own = 0, most = 0;
        for (size_t node : nodes) {
            while (row < nb_own && own.placement->nodes[row] < node) ++row;
            if (row < nb_own && own.placement->nodes[row] == node) {
                most_own += most_before(own, demand, duration, node);
                own_rows.push_back(row);
            } else if (stretches[node].may_last(duration, before)) {
                most += starts.add(node, timelines_[node], room);
            }
        }
        if (most + most_own < demand.tasks) return starts.earliest(nodes_.count(), most_own);
        Timeline given_back = timelines_.back();
        for (size_t row : own_rows) {
            size_t node = own.placement->nodes[row];
            given_back = timelines_[node];
            given_back.change(own.start, own.end, &own.placement->taken[row * nodes_.columns()], 1);
            starts.add(node, given_back, room);
        }
        if (!demand.licences.empty()) {
            given_back = timelines_.back();
            if (own.placement) given_back.change(own.start, own.end, licences_of(demand).data(), 1);
            starts.add(nodes_.count(), given_back,
                       [&](const int64_t* free) { return int64_t{Nodes::has_licences(demand, free)}; });
        }
        return starts.earliest(nodes_.count(), 0);
    }

    // The least that is free for so long, and nothing of nodes that cannot have room for a job.
    FreeAmounts least(const Demand& demand, double start, double duration) const {
        FreeAmounts free{Amounts(nodes_.count() * nodes_.columns()), Amounts(nodes_.has.licences.size())};
        const auto& stretches = stretches_.of(demand);
        double end = start + duration, before = std::nextafter(start, INFINITY);
        for (size_t node = 0; node < nodes_.count(); ++node) {
            if (!stretches[node].may_last(duration, before)) continue;
            timelines_[node].least(start, end, &free.nodes[node], nodes_.count());
        }
        timelines_.back().least(start, end, free.licences.data(), 1);
        return free;
    }

    void change(double start, double end, const Place& place, int64_t factor) {
        start = std::max(start, now_);
        if (!(start < end)) return;
        const auto& [nodes, tasks, taken, owner] = *place.placement;
        Amounts sum(nodes_.columns(), 0);
        for (size_t row = 0; row < nodes.size(); ++row) {
            const int64_t* of_node = &taken[row * sum.size()];
            for (size_t column = 0; column < sum.size(); ++column) sum[column] += of_node[column];
            Timeline& timeline = timelines_[nodes[row]];
            timeline.advance(now_);
            timeline.change(start, end, of_node, factor);
            stretches_.note(nodes[row], timeline);
        }
        sums_.change(start, end, sum.data(), factor);
        if (place.demand->licences.empty()) return;
        timelines_.back().advance(now_);
        timelines_.back().change(start, end, licences_of(*place.demand).data(), factor);
    }

    Amounts licences_of(const Demand& demand) const {
        Amounts licences(nodes_.has.licences.size(), 0);
        for (const auto& [licence, count] : demand.licences) licences[licence] += count;
        return licences;
    }
};

}  // namespace batsched
