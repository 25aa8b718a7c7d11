// What will be free on a machine of nodes, and when (specification: batsched_py/ledger/free_nodes.py).
#pragma once
#include <map>

#include "window.hpp"

namespace batsched {

// A timeline for each node, the one of the licences behind them, and which of them change when.
class NodeProfile {
public:
    NodeProfile(const Nodes& nodes, double now) : nodes_(nodes), now_(now) {
        size_t count = nodes.count();
        for (size_t node = 0; node < count; ++node) {
            Amounts row;
            for (size_t column = 0; column < nodes.columns(); ++column) row.push_back(nodes.free.nodes[column * count + node]);
            timelines_.emplace_back(std::move(row));
        }
        timelines_.emplace_back(nodes.free.licences);
    }

    // The earliest time from which there is a place for so long, and that place, if it is before some time.
    std::optional<std::pair<double, Placement>> earliest(const Demand& demand, double duration, double before = INFINITY) const {
        std::optional<double> start;
        for (const auto& nodes : demand.alternatives) {
            if (auto found = earliest(demand, nodes, duration, start.value_or(before))) start = found;
        }
        if (!start) return std::nullopt;
        return std::pair(*start, *nodes_.place(demand, least(*start, *start + duration)));
    }

    void take(double start, double end, const Placement& placement, const Demand& demand) { change(start, end, placement, demand, -1); }
    void give(double start, double end, const Placement& placement, const Demand& demand) { change(start, end, placement, demand, 1); }

    // Forgets what was before now.
    void advance(double now) {
        now_ = now;
        while (!changes_.empty() && changes_.begin()->first <= now) {
            for (size_t place : changes_.begin()->second) timelines_[place].forget();
            changes_.erase(changes_.begin());
        }
    }

private:
    const Nodes& nodes_;
    double now_;
    std::vector<Timeline> timelines_;
    std::map<double, std::vector<size_t>> changes_;

    // The earliest time from which some nodes have a place for so long.
    std::optional<double> earliest(const Demand& demand, const std::vector<size_t>& nodes, double duration, double before) const {
        Window window(nodes_, timelines_, demand, nodes);
        auto first = changes_.begin(), last = first;  // the changes in the window
        for (double start = now_; start < before; start = first++->first) {
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
        FreeAmounts free{Amounts(nodes_.count() * nodes_.columns()), timelines_.back().least(start, end)};
        for (size_t node = 0; node < nodes_.count(); ++node) {
            Amounts row = timelines_[node].least(start, end);
            for (size_t column = 0; column < row.size(); ++column) free.nodes[column * nodes_.count() + node] = row[column];
        }
        return free;
    }

    void change(double start, double end, const Placement& placement, const Demand& demand, int64_t factor) {
        start = std::max(start, now_);
        if (!(start < end)) return;
        for (size_t row = 0; row < placement.nodes.size(); ++row) {
            change(start, end, placement.nodes[row], &placement.taken[row * nodes_.columns()], factor);
        }
        if (demand.licences.empty()) return;
        Amounts licences(nodes_.free.licences.size(), 0);
        for (const auto& [licence, count] : demand.licences) licences[licence] += count;
        change(start, end, nodes_.count(), licences.data(), factor);
    }

    void change(double start, double end, size_t place, const int64_t* more, int64_t factor) {
        Timeline& timeline = timelines_[place];
        for (double time : {start, end}) {
            if (now_ < time && time < INFINITY && timeline.split(time)) changes_[time].push_back(place);
        }
        timeline.add(start, end, more, factor);
        for (double time : {start, end}) {
            if (now_ < time && time < INFINITY && timeline.join(time)) forget(time, place);
        }
    }

    // Nothing changes at a place at a time any more.
    void forget(double time, size_t place) {
        auto change = changes_.find(time);
        std::erase(change->second, place);
        if (change->second.empty()) changes_.erase(change);
    }
};

}  // namespace batsched
