// What will be free on a machine of nodes, and when (specification: batsched_py/ledger/node_profile.py).
#pragma once
#include <bit>
#include <limits>
#include <numeric>

#include "nodes.hpp"
#include "profile.hpp"

namespace batsched {

// For how long there will be how many free cores without a break: on each node, or wherever something was given back. It
// tells at once which nodes a job need not look at: when most are reserved for others, those are nearly all.
class Stretches {
public:
    Stretches(const Nodes& nodes, size_t count)
        : by_level_(static_cast<size_t>(std::bit_width(nodes.has.by_cores.size() - 1)), std::vector<Longest>(count)) {}

    // Those of a timeline that have some time between two others.
    void note(size_t row, const Timeline& timeline, double since = -INFINITY, double until = INFINITY) {
        for (auto& longest : by_level_) longest[row] = {};
        size_t nb_begun = 0;  // there are stretches with the numbers of cores up to this one
        size_t step = 0, count = timeline.size();
        for (; step < count && (nb_begun || timeline.time(step) < until); ++step) {
            auto cores = static_cast<uint64_t>(std::max<int64_t>(timeline.free(step)[kCores], 0));
            size_t nb_levels = std::min<size_t>(static_cast<size_t>(std::bit_width(cores)), by_level_.size());
            if (!(timeline.time(step) < until)) nb_levels = std::min(nb_levels, nb_begun);
            while (nb_begun < nb_levels) by_level_[nb_begun++][row].last = timeline.time(step);
            while (nb_begun > nb_levels) {
                Longest& longest = by_level_[--nb_begun][row];
                double begin = std::exchange(longest.last, INFINITY), end = timeline.time(step);
                if (!(end > since)) continue;
                end *= 1 + std::numeric_limits<double>::epsilon();  // sums of times are rounded
                longest.seconds = std::max(longest.seconds, end - begin);
                longest.first = std::min(longest.first, begin);
            }
        }
    }

    void note_next(const Timeline& timeline, double since, double until) {
        for (auto& longest : by_level_) longest.emplace_back();
        note(by_level_[0].size() - 1, timeline, since, until);
    }

    void forget(size_t count) {
        for (auto& longest : by_level_) longest.erase(longest.begin(), longest.begin() + static_cast<ptrdiff_t>(count));
    }

    // The longest ones with some number of cores.
    struct Longest {
        double seconds = 0;       // of the stretches that end
        double first = INFINITY;  // when the first of these begins
        double last = INFINITY;   // since when there is one that does not end

        // Whether there may be one of such a length, from some time before another.
        bool may_last(double duration, double before) const {
            return (seconds >= duration && first < before) || last < before;
        }
    };

    // Of each, with no more cores than a task of a job takes.
    const std::vector<Longest>& of(const Demand& demand) const {
        auto level = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(demand.cores))) - 1;
        return by_level_[std::min(level, by_level_.size() - 1)];
    }

private:
    std::vector<std::vector<Longest>> by_level_;  // for 1, 2, 4 ... cores
};

// From a start of a job on, there is room for so many of its tasks more on a node, or fewer.
struct RoomChange {
    double since;
    size_t node;
    int64_t more;

    bool operator<(const RoomChange& other) const { return since < other.since; }
};

// How many tasks of a job nodes could take for so long, depending on when it starts.
class Starts {
public:
    std::vector<RoomChange> changes;

    Starts(const Demand& demand, double duration, double from, double before)
        : demand_(demand), duration_(duration), from_(from), before_(before) {}

    // Adds a node, or the licences, with what each step of its timeline has room for; returns the most for any start.
    template <class Room>
    int64_t add(size_t node, const Timeline& timeline, Room room) {
        int64_t tasks = 0, most = 0;
        auto note = [&](double since, int64_t now) {
            if (now != tasks) changes.push_back({since, node, now - tasks});
            most = std::max(most, tasks = now);
        };
        const size_t begin = timeline.at(from_), count = timeline.size();
        rooms_.clear();
        auto room_at = [&](size_t step) {
            while (rooms_.size() <= step - begin) rooms_.push_back(room(timeline.free(begin + rooms_.size())));
            return rooms_[step - begin];
        };
        for (size_t first = begin; first < count; ++first) {
            double since = std::max(timeline.time(first), from_);
            double until = first + 1 < count ? timeline.time(first + 1) : INFINITY;
            if (!(since < before_)) break;
            int64_t least = room_at(first);
            size_t next = first + 1;
            for (; least && next < count && timeline.time(next) < since + duration_; ++next) {
                least = std::min(least, room_at(next));
            }
            note(since, least);
            if (!least) first = next - 1;  // what stops it there stops all starts until then
            for (; least && next < count; ++next) {
                double reached = first_reaching(timeline.time(next));
                if (!(reached < std::min(until, before_))) break;
                least = std::min(least, room_at(next));
                note(reached, least);
            }
        }
        return most;
    }

    // The earliest start for which there is room; infinite if there is none.
    double earliest(size_t nb_nodes) {
        std::sort(changes.begin(), changes.end());
        Amounts rooms(nb_nodes + 1, 0);
        int64_t tasks = 0, used = 0;
        for (size_t next = 0; next < changes.size();) {
            double start = changes[next].since;
            for (; next < changes.size() && changes[next].since == start; ++next) {
                const RoomChange& change = changes[next];
                int64_t before = std::exchange(rooms[change.node], rooms[change.node] + change.more);
                if (change.node == nb_nodes) continue;
                tasks += change.more;
                used += (rooms[change.node] > 0) - (before > 0);
            }
            if (tasks >= demand_.tasks && suffices(rooms, used)) return start;
        }
        return INFINITY;
    }

private:
    const Demand& demand_;
    double duration_, from_, before_;
    Amounts rooms_;  // of the steps that were looked at last

    // Whether so much room on so many nodes is enough, if it is for all tasks together.
    bool suffices(const Amounts& rooms, int64_t used) const {
        if (used < demand_.least_nodes || (!demand_.licences.empty() && !rooms.back())) return false;
        if (used <= demand_.most_nodes) return true;
        Amounts ordered(rooms.begin(), rooms.end() - 1);
        return Nodes::largest(ordered.begin(), ordered.end(), demand_.most_nodes) >= demand_.tasks;
    }

    // The first start from which the job would still run at a time. Near 0 there are too many numbers to try each.
    double first_reaching(double time) const {
        double ulp = std::nextafter(std::abs(time), INFINITY) - std::abs(time);
        double early = time - duration_ - 2 * ulp, start = time - duration_ + 2 * ulp;
        while (early + duration_ > time) early -= ulp;
        while (!(start + duration_ > time)) start += ulp;
        for (double middle = std::midpoint(early, start); early < middle && middle < start;
             middle = std::midpoint(early, start))
            (middle + duration_ > time ? start : early) = middle;
        return start;
    }
};

// A timeline for each node, one of the licences behind them, and one of the sums of all nodes.
class NodeProfile {
public:
    struct Place {
        const Demand* demand = nullptr;
        std::shared_ptr<const Placement> placement = nullptr;
        size_t nb_seen = 0;  // of what was given back, as far as it is looked at below
        std::vector<RoomChange> rooms = {};  // at most, if the job starts earlier and has nothing reserved
        bool has_rooms = false;              // whether that is known
        double may_start = INFINITY;         // no earlier than this
    };
    using Held = std::optional<std::pair<double, Place>>;

    NodeProfile(const Nodes& nodes, const FreeAmounts& free, const Running& running, double now)
        : nodes_(nodes), now_(now), sums_(now, Amounts(nodes.columns(), 0)), given_back_(sums_),
          stretches_(nodes, nodes.count()), freed_stretches_(nodes, 0), owned_at_(nodes.count(), 0),
          seen_at_(nodes.count(), 0) {
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
        bool is_same = job.placement == one.place.placement;
        if (is_same && job.start == std::max(one.start, now_) && job.expected_end == one.end()) return hold_taken(job);
        change(one.start, one.end(), one.place, 1);
        bool is_in_time = job.start <= std::max(one.start, now_) && job.expected_end >= one.end();
        if (!is_in_time || !is_same) note_freed(one.start, one.end(), one.place);
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
            double start = earliest(demand, job.told_walltime, from, before, {});
            if (start < INFINITY) return start;
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
        Place& place = one.place;
        bool may_stay = place.placement && demand.licences.empty();
        if (may_stay && !(look_for_room(place, own, duration) < before)) return std::nullopt;
        place.may_start = earliest(demand, duration, now_, one.start, own);
        place.has_rooms = place.may_start < INFINITY;
        return place.may_start < before ? std::optional(place.may_start) : std::nullopt;
    }

    // Gives a reservation another time, and a place that it has then.
    template <class Reservation>
    void move(Reservation& one, double start) {
        give(one.start, one.end(), one.place);
        one.start = start;
        Place moved = place(*one.job, start);
        moved.rooms = std::move(one.place.rooms);
        moved.has_rooms = one.place.has_rooms && one.place.placement;
        one.place = std::move(moved);
        take(start, one.end(), one.place);
    }

    // The place that a job gets if it starts at a time when there is one.
    Place place(const Job& job, double start) const {
        if (start == INFINITY) return {nullptr, nullptr, nb_freed()};
        const Demand& demand = nodes_.demand(job.request);
        auto placement = nodes_.made(*nodes_.place(demand, least(demand, start, job.told_walltime)));
        return {&demand, std::move(placement), nb_freed()};
    }

    // All reservations are about to be moved: what each of them has seen given back is forgotten.
    template <class Reservations>
    void begin_moves(const Reservations& reserved) {
        size_t nb_seen = nb_freed();
        for (const auto& one : reserved) nb_seen = std::min(nb_seen, one.place.nb_seen);
        freed_.erase(freed_.begin(), freed_.begin() + static_cast<ptrdiff_t>(nb_seen - nb_forgotten_));
        freed_stretches_.forget(nb_seen - nb_forgotten_);
        nb_forgotten_ = nb_seen;
    }

    // Until when a job that was started has which place; it gives it up.
    Held held_by(const Job& job) {
        auto held = held_.extract(&job);
        return held ? Held(std::move(held.mapped())) : std::nullopt;
    }

    void hold(const Job& job) {
        if (!nodes_.has_placed(job)) return;
        take(job.start, job.expected_end, {&nodes_.demand(job.request), job.placement});
        hold_taken(job);
    }

    static void choose(Job& job, const Place& place) { job.placement = place.placement; }

private:
    // A node of which something was given back, and since when.
    struct Freed {
        size_t node;
        double since;
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
    mutable Timeline given_back_;  // what is looked at last
    Stretches stretches_;
    std::unordered_map<const Job*, std::pair<double, Place>> held_;  // by running jobs, and until when
    std::vector<Freed> freed_;                                       // in the order in which it was given back
    Stretches freed_stretches_;                                      // of which each of these has some time
    size_t nb_forgotten_ = 0;                                        // of these, at the front
    std::vector<int64_t> owned_at_;  // for each node: the visit to a reservation that has something of it
    std::vector<int64_t> seen_at_;   // and the visit at which room was looked for on it
    int64_t nb_visits_ = 0;
    double overbooked_until_ = 0;  // until then, running jobs may have more of a node than it has: sums are too low

    // What a job has that has just started was taken.
    void hold_taken(const Job& job) {
        if (is_overbooked(job)) overbooked_until_ = std::max(overbooked_until_, job.expected_end);
        held_.emplace(&job, std::pair(job.expected_end, Place{&nodes_.demand(job.request), job.placement}));
    }

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

    // From when on a job may find room for all its tasks if it gives up what it has, now that something was given back of
    // nodes since it was last looked at; only there can a reservation move that could not before.
    double look_for_room(Place& place, const Own& own, double duration) {
        const Demand& demand = *place.demand;
        size_t nb_seen = std::exchange(place.nb_seen, nb_freed());
        const auto &stretches = stretches_.of(demand), &freed_stretches = freed_stretches_.of(demand);
        auto room = [&](const int64_t* free) { return nodes_.capacity(demand, free, 1); };
        Starts starts(demand, duration, now_, own.start);
        ++nb_visits_;
        for (size_t node : place.placement->nodes) owned_at_[node] = nb_visits_;
        auto look_at = [&](size_t node) {
            seen_at_[node] = nb_visits_;
            if (owned_at_[node] == nb_visits_) {
                starts.add(node, given_back(node, own), room);
            } else {
                starts.add(node, timelines_[node], room);
            }
        };
        bool some_seen = false;
        for (size_t number = nb_seen - nb_forgotten_; number < freed_.size(); ++number) {
            auto [node, since] = freed_[number];
            bool is_own = owned_at_[node] == nb_visits_;
            if (is_own ? !(since < own.end) : !freed_stretches[number].may_last(duration, own.start)) continue;
            if (seen_at_[node] == nb_visits_ || !demand.may_use[node]) continue;
            if (!is_own && !stretches[node].may_last(duration, own.start)) continue;
            some_seen = true;
            if (!place.has_rooms) break;
            look_at(node);
        }
        if (!some_seen) return place.may_start;
        if (!place.has_rooms) {
            place.has_rooms = true;
            place.rooms.clear();
            for (size_t node = 0; node < nodes_.count(); ++node) {
                bool is_own = owned_at_[node] == nb_visits_;
                if (demand.may_use[node] && (is_own || stretches[node].may_last(duration, own.start))) look_at(node);
            }
        }
        std::sort(starts.changes.begin(), starts.changes.end());
        std::erase_if(place.rooms, [this](const RoomChange& change) { return seen_at_[change.node] == nb_visits_; });
        auto middle = static_cast<ptrdiff_t>(place.rooms.size());
        place.rooms.insert(place.rooms.end(), starts.changes.begin(), starts.changes.end());
        std::inplace_merge(place.rooms.begin(), place.rooms.begin() + middle, place.rooms.end());
        int64_t tasks = 0;
        for (size_t next = 0; next < place.rooms.size(); ++next) {
            tasks += place.rooms[next].more;
            double until = next + 1 < place.rooms.size() ? place.rooms[next + 1].since : INFINITY;
            if (tasks >= demand.tasks && until > now_ && until > place.rooms[next].since) {
                return place.may_start = place.rooms[next].since;
            }
        }
        return place.may_start = INFINITY;
    }

    void note_freed(double start, double end, const Place& place) {
        start = std::max(start, now_);
        if (!place.placement || !(start < end)) return;
        for (size_t node : place.placement->nodes) {
            freed_.push_back({node, start});
            freed_stretches_.note_next(timelines_[node], start, end);
        }
    }

    // What is free of a node if a job gives up what it has.
    const Timeline& given_back(size_t node, const Own& own) const {
        const auto& nodes = own.placement->nodes;
        auto row = static_cast<size_t>(std::lower_bound(nodes.begin(), nodes.end(), node) - nodes.begin());
        given_back_ = timelines_[node];
        given_back_.change(own.start, own.end, &own.placement->taken[row * nodes_.columns()], 1);
        return given_back_;
    }

    // The earliest time between two others from which there is a place for so long. What is its own is free for a job.
    double earliest(const Demand& demand, double duration, double from, double before, const Own& own) const {
        double start = INFINITY;
        for (const auto& nodes : demand.alternatives) {
            start = std::min(start, earliest(demand, nodes, duration, from, std::min(before, start), own));
        }
        return start;
    }

    // The earliest time from which some nodes have a place for so long.
    double earliest(const Demand& demand, const std::vector<size_t>& nodes, double duration, double from, double before,
                    const Own& own) const {
        Starts starts(demand, duration, from, before);
        const auto& stretches = stretches_.of(demand);
        auto room = [&](const int64_t* free) { return nodes_.capacity(demand, free, 1); };
        int64_t most = 0;
        for (size_t node : nodes) {
            if (own.placement && std::binary_search(own.placement->nodes.begin(), own.placement->nodes.end(), node)) {
                most += starts.add(node, given_back(node, own), room);
            } else if (stretches[node].may_last(duration, before)) {
                most += starts.add(node, timelines_[node], room);
            }
        }
        if (most < demand.tasks) return INFINITY;
        if (!demand.licences.empty()) {
            Timeline given_back = timelines_.back();
            if (own.placement) given_back.change(own.start, own.end, licences_of(demand).data(), 1);
            starts.add(nodes_.count(), given_back,
                       [&](const int64_t* free) { return int64_t{Nodes::has_licences(demand, free)}; });
        }
        return starts.earliest(nodes_.count());
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
