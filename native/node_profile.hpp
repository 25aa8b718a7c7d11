// What will be free on a machine of nodes, and when (specification: batsched_py/ledger/node_profile.py).
#pragma once
#include <map>

#include "nodes.hpp"
#include "profile.hpp"

namespace batsched {

// How many tasks of a job each of some nodes could take all the time in a window that moves on. What it could take of the
// least that is free is the least that it could take: only nodes that change have to be looked at.
class Window {
public:
    using Timelines = std::vector<Timeline<>>;

    Window(const Nodes& nodes, const Timelines& timelines, const Demand& demand, const std::vector<size_t>& members,
           double start)
        : nodes_(nodes), timelines_(timelines), demand_(demand), members_(members), views_(timelines.size()) {
        for (size_t node : members) begin(node, start);
        if (!demand.licences.empty()) begin(nodes.count(), start);
    }

    bool fits() const {
        if (tasks_ < demand_.tasks || used_ < demand_.least_nodes) return false;
        if (!demand_.licences.empty() && !views_.back().room) return false;
        if (demand_.most_nodes >= static_cast<int64_t>(members_.size())) return true;
        Amounts rooms;
        for (size_t node : members_) rooms.push_back(views_[node].room);
        return Nodes::largest(rooms.begin(), rooms.end(), demand_.most_nodes) >= demand_.tasks;
    }

    // The window begins to include a change of these.
    void enter(const std::vector<size_t>& changed) {
        for (size_t place : changed) {
            View& view = views_[place];
            if (!view.is_seen) continue;
            ++view.last;
            if (view.room) set(place, std::min(view.room, room(place, view.last)));
        }
    }

    // The window no longer includes what was before a change of these.
    void leave(const std::vector<size_t>& changed) {
        for (size_t place : changed) {
            View& view = views_[place];
            if (!view.is_seen) continue;
            ++view.first;
            if (room(place, view.first - 1) > view.room) continue;
            int64_t least = room(place, view.first);
            for (size_t step = view.first + 1; least && step <= view.last; ++step) least = std::min(least, room(place, step));
            set(place, least);
        }
    }

private:
    struct View {
        bool is_seen = false;          // whether the job may use it
        uint32_t first = 0, last = 0;  // of the steps in the window
        int64_t room = 0;              // for tasks on a node; whether there are licences
    };

    const Nodes& nodes_;
    const Timelines& timelines_;
    const Demand& demand_;
    const std::vector<size_t>& members_;
    std::vector<View> views_;
    int64_t tasks_ = 0, used_ = 0;  // how many tasks there is room for, and on how many nodes

    int64_t room(size_t place, size_t step) const {
        const int64_t* free = timelines_[place].free(step);
        return place < nodes_.count() ? nodes_.capacity(demand_, free, 1) : Nodes::has_licences(demand_, free);
    }

    void begin(size_t place, double start) {
        View& view = views_[place];
        view.is_seen = true;
        view.first = view.last = static_cast<uint32_t>(timelines_[place].at(start));
        set(place, room(place, view.first));
    }

    void set(size_t place, int64_t room) {
        if (place < nodes_.count()) {
            tasks_ += room - views_[place].room;
            used_ += (room > 0) - (views_[place].room > 0);
        }
        views_[place].room = room;
    }
};

// A timeline for each node, one of the licences behind them, one of the sums of all nodes, and which nodes change when.
class NodeProfile {
public:
    struct Place {
        const Demand* demand = nullptr;
        std::shared_ptr<const Placement> placement = nullptr;
    };
    using Found = std::optional<std::pair<double, Place>>;

    NodeProfile(const Nodes& nodes, const Running& running, double now, double tick)
        : nodes_(nodes), now_(now), sums_(now, Amounts(nodes.columns(), 0)), freed_at_(nodes.count()) {
        Amounts row(nodes.columns());
        for (size_t node = 0; node < nodes.count(); ++node) {
            for (size_t column = 0; column < row.size(); ++column) row[column] = nodes.free.nodes[column * nodes.count() + node];
            timelines_.emplace_back(now, row);
            sums_.change(now, INFINITY, row.data(), 1);
        }
        timelines_.emplace_back(now, nodes.free.licences);
        for (const Running::Place& place : running.by_end()) {
            double end = std::max(place.expected_end, now + tick);
            Place held{&nodes.demand(place.job->request), place.job->placement};
            change(end, INFINITY, held, 1);
            held_.emplace(place.job.get(), std::pair(end, std::move(held)));
        }
    }

    void take(double start, double end, const Place& place) { change(start, end, place, -1); }

    void give(double start, double end, const Place& place) {
        change(start, end, place, 1);
        if (!place.placement) return;
        for (size_t node : place.placement->nodes) note_freed(node, std::max(start, now_), end);
    }

    // Forgets what was before now.
    void advance(double now) {
        now_ = now;
        sums_.advance(now);
        while (!changes_.empty() && changes_.begin()->first <= now) {
            for (size_t place : changes_.begin()->second) timelines_[place].advance(now);
            changes_.erase(changes_.begin());
        }
    }

    // The earliest time from which there is a place for a job, and that place.
    Found earliest(const Job& job) const {
        const Demand& demand = nodes_.demand(job.request);
        return earliest(demand, job.told_walltime, could_start(demand, job.told_walltime, INFINITY, INFINITY), INFINITY);
    }

    // An earlier time to which a reservation can move, before some time, and where it then goes.
    template <class Reservation>
    Found earlier(const Reservation& one, double before) {
        before = std::min(before, one.start);
        if (before <= now_) return std::nullopt;
        double duration = one.job->told_walltime;
        const Demand& demand = nodes_.demand(one.job->request);
        auto [first, last] = freed_starts(one, demand, before);
        if (!(first <= last)) return std::nullopt;
        double start = std::max(could_start(demand, duration, one.start, before), change_at(first));
        if (!(start < before) || start > last) return std::nullopt;
        before = std::min(before, std::nextafter(last, INFINITY));
        change(one.start, one.end(), one.place, 1);
        Found found = earliest(demand, duration, start, before);
        change(one.start, one.end(), one.place, -1);
        return found;
    }

    // All jobs are about to be moved to times before another one. What was free when that last happened, none of them
    // could use, as far as they have looked.
    void begin_moves(double until) {
        std::erase_if(freed_, [this](const Freed& one) { return one.turn < turn_ && one.until <= looked_until_; });
        looked_until_ = until;
        ++turn_;
    }

    // Until when a job that was started has which place; it gives it up.
    Found held_by(const Job& job) {
        auto held = held_.extract(&job);
        return held ? Found(std::move(held.mapped())) : std::nullopt;
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
        int64_t turn;
    };

    const Nodes& nodes_;
    double now_;
    std::vector<Timeline<>> timelines_;
    Timeline<> sums_;
    std::map<double, std::vector<size_t>> changes_;
    std::unordered_map<const Job*, std::pair<double, Place>> held_;  // by running jobs, and until when
    std::vector<Freed> freed_;                                       // since jobs were last moved, at most one a node
    std::vector<std::pair<int64_t, size_t>> freed_at_;               // when a node last was, and its place there
    int64_t turn_ = 1;                                               // how often jobs were moved
    double looked_until_ = 0;
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

    // The first time from one on at which something changes, or now.
    double change_at(double time) const {
        if (time <= now_) return now_;
        auto change = changes_.lower_bound(time);
        return change == changes_.end() ? INFINITY : change->first;
    }

    // From when on all nodes together have enough for a job; on fewer it cannot start earlier.
    double could_start(const Demand& demand, double duration, double reserved, double before) const {
        if (overbooked_until_ > now_) return now_;
        return sums_.earlier(duration, reserved, before, [&](const int64_t* free) {
            for (size_t column = 0; column < demand.least.size(); ++column) {
                if (free[column] < demand.least[column]) return false;
            }
            return true;
        });
    }

    // Between which times a job could start on some node of which something was given back; only there can a reservation
    // move that could not before.
    template <class Reservation>
    std::pair<double, double> freed_starts(const Reservation& one, const Demand& demand, double before) const {
        if (!one.place.placement || !demand.licences.empty()) return {now_, before};
        double first = INFINITY, last = -INFINITY, duration = one.job->told_walltime;
        const std::vector<size_t>& own = one.place.placement->nodes;
        for (const Freed& freed : freed_) {
            if (!demand.may_use[freed.node]) continue;
            const Timeline<>& timeline = timelines_[freed.node];
            double reserved = std::binary_search(own.begin(), own.end(), freed.node) ? one.start : INFINITY;
            double latest = std::min(freed.until, before), begin = now_;
            for (size_t step = 0; begin < latest; ++step) {
                double end = step + 1 < timeline.size() ? timeline.time(step + 1) : INFINITY;
                bool has_room = nodes_.capacity(demand, timeline.free(step), 1) > 0;
                if (has_room && end >= reserved) end = INFINITY;
                if (has_room && end < INFINITY) continue;
                double until = has_room ? end : timeline.time(step);  // there is room from the beginning until then
                if (until >= begin + duration) {
                    first = std::min(first, std::max(begin, freed.since - duration));
                    last = std::max(last, until < INFINITY ? std::min(until - duration, latest) : latest);
                }
                begin = end;
            }
        }
        return {first, last};
    }

    void note_freed(size_t node, double since, double until) {
        auto& [turn, place] = freed_at_[node];
        if (turn == turn_) {
            freed_[place].since = std::min(freed_[place].since, since);
            freed_[place].until = std::max(freed_[place].until, until);
        } else {
            freed_at_[node] = {turn_, freed_.size()};
            freed_.push_back({node, since, until, turn_});
        }
    }

    // The earliest time between two others from which there is a place for so long, and that place.
    Found earliest(const Demand& demand, double duration, double from, double before) const {
        std::optional<double> start;
        for (const auto& nodes : demand.alternatives) {
            if (auto found = earliest(demand, nodes, duration, from, start.value_or(before))) start = found;
        }
        if (!start) return std::nullopt;
        return std::pair(*start, Place{&demand, nodes_.made(*nodes_.place(demand, least(*start, *start + duration)))});
    }

    // The earliest time from which some nodes have a place for so long.
    std::optional<double> earliest(const Demand& demand, const std::vector<size_t>& nodes, double duration, double from,
                                   double before) const {
        if (!(from < before)) return std::nullopt;
        Window window(nodes_, timelines_, demand, nodes, from);
        auto first = changes_.upper_bound(from), last = first;  // the changes in the window
        for (double start = from; start < before; start = first++->first) {
            while (window.fits() && last != changes_.end() && last->first < start + duration) window.enter(last++->second);
            if (window.fits()) return start;
            if (first == changes_.end()) break;
            if (first == last) window.enter(last++->second);
            window.leave(first->second);
        }
        return std::nullopt;
    }

    // The least that is free between two times.
    FreeAmounts least(double start, double end) const {
        FreeAmounts free{Amounts(nodes_.count() * nodes_.columns()), Amounts(nodes_.free.licences.size())};
        for (size_t node = 0; node < nodes_.count(); ++node) {
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
            change(start, end, nodes[row], of_node, factor);
        }
        sums_.change(start, end, sum.data(), factor);
        if (place.demand->licences.empty()) return;
        Amounts licences(nodes_.free.licences.size(), 0);
        for (const auto& [licence, count] : place.demand->licences) licences[licence] += count;
        change(start, end, nodes_.count(), licences.data(), factor);
    }

    void change(double start, double end, size_t place, const int64_t* more, int64_t factor) {
        timelines_[place].advance(now_);
        auto [at_start, at_end] = timelines_[place].change(start, end, more, factor);
        note_steps(start, place, at_start);
        note_steps(end, place, at_end);
    }

    // At a time, there is one step more of a timeline, or one fewer.
    void note_steps(double time, size_t place, int nb_more) {
        if (nb_more > 0) changes_[time].push_back(place);
        if (nb_more >= 0) return;
        auto change = changes_.find(time);
        std::erase(change->second, place);
        if (change->second.empty()) changes_.erase(change);
    }
};

}  // namespace batsched
