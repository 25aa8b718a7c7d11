// How much of a machine of nodes is free for a job all the time in a window of time.
#pragma once
#include "nodes.hpp"
#include "timeline.hpp"

namespace batsched {

// How many tasks of a job each of some nodes could take all the time in a window that begins now and moves on. What it
// could take of the least that is free is the least that it could take: only nodes that change have to be looked at.
class Window {
public:
    Window(const Nodes& nodes, const std::vector<Timeline>& timelines, const Demand& demand, const std::vector<size_t>& members)
        : nodes_(nodes), timelines_(timelines), demand_(demand), members_(members), views_(timelines.size()) {
        for (size_t node : members) begin(node);
        if (!demand.licences.empty()) begin(nodes.count());
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
        bool is_seen = false;  // whether the job may use it
        size_t first = 0, last = 0;  // of the steps in the window
        int64_t room = 0;            // for tasks on a node; whether there are licences
    };

    const Nodes& nodes_;
    const std::vector<Timeline>& timelines_;
    const Demand& demand_;
    const std::vector<size_t>& members_;
    std::vector<View> views_;
    int64_t tasks_ = 0, used_ = 0;  // how many tasks there is room for, and on how many nodes

    int64_t room(size_t place, size_t step) const {
        const int64_t* amounts = timelines_[place].amounts(step);
        return place < nodes_.count() ? nodes_.capacity(demand_, amounts, 1) : Nodes::has_licences(demand_, amounts);
    }

    void begin(size_t place) {
        views_[place].is_seen = true;
        set(place, room(place, 0));
    }

    void set(size_t place, int64_t room) {
        if (place < nodes_.count()) {
            tasks_ += room - views_[place].room;
            used_ += (room > 0) - (views_[place].room > 0);
        }
        views_[place].room = room;
    }
};

}  // namespace batsched
