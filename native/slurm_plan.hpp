// The plan of a backfill cycle (specification: batsched_py/slurm/policy/plan.py).
#pragma once
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_set>

#include "slurm_future.hpp"
#include "steps.hpp"

namespace batsched::slurm {

// What reservations leave to a job from a time on: nodes, the begin, and when to try again, or 0.
struct Allowed {
    NodeSet nodes;
    int64_t begin, end_of_reservation;
};

// Says what reservations leave to a job from a time on, if anything.
using Reservations = std::function<std::optional<Allowed>(int64_t)>;

// A look at the machine for one job.
struct Look {
    int64_t now;
    int64_t length;             // how long the job may run
    bool only_now;              // whether a later start is of no use
    const NodeSet& completing;  // nodes on which nobody starts now
};

// Spans of time from now to the end of the window, each with the nodes that are not kept for a job. A plan remembers the
// jobs that it has looked at, so that it can go back to any of them.
class Plan {
public:
    Plan(int64_t now, int64_t window, int64_t resolution, const NodeSet& nodes, int64_t most_jobs, int64_t origin)
        : now_(now), window_(window), resolution_(resolution), origin_(origin), all_(nodes), words_(nodes.size()),
          most_jobs_(most_jobs), spans_(beginning()), end_(rounded(now + window)) {}

    size_t words() const { return words_; }
    const std::vector<int64_t>& begins() const { return spans_.times(); }

    bool is_full() const { return nb_spans_ >= most_jobs_; }
    bool has_tried_enough() const { return nb_tried_ >= most_jobs_; }
    bool puts_off() const { return puts_off_; }

    // Make the plan again that so many jobs have led to.
    void go_back(size_t nb_jobs) {
        tried_.resize(std::min(nb_jobs, tried_.size()));
        nb_tried_ = std::count(tried_.begin(), tried_.end(), true);
        std::erase_if(kept_, [&](const Kept& step) { return step.nb_jobs > nb_jobs; });
        spans_ = beginning();
        nb_spans_ = 1;
        for (const Kept& step : kept_) change(*step.share, step.start, step.end);
    }

    // When the jobs that it has looked at may be planned in another way, if nothing else changes.
    double next_change(int64_t now) const {
        double next = too_late_;
        for (const Kept& step : kept_) {
            if (rounded(step.end) < end_) continue;
            next = std::min(next, static_cast<double>(rounded(step.end) + resolution_ - window_));
        }
        auto look = [&](int64_t length) {
            size_t place = first_begin_after(now + length);
            if (place < spans_.size()) next = std::min(next, static_cast<double>(spans_.time(place) - length));
        };
        look(0);
        std::for_each(lengths_.begin(), lengths_.end(), look);
        return next;
    }

    // Keep the nodes of a share from one time to another, both on the grid; at least for one step of it.
    void keep(const SharePointer& share, int64_t start, int64_t end) {
        kept_.push_back({tried_.size(), share, start, end});
        change(*share, start, end);
    }

    // When and where a job could start; this is remembered.
    Found find_start(Future& future, Future* without, const Asked& asked, const Look& look,
                     const Reservations& reservations) {
        Found found = search(future, without, asked, look, reservations);
        note(found, look.length);
        return found;
    }

    // Let the future remember what is kept until now.
    void remind(Future& future) const {
        future.memory.begin(all_);
        for (const Kept& step : kept_) future.memory.keep(step_of(step));
    }

    // The same as find_start without anything special about the job, and with what the future remembers. What is found
    // stays where it is until the next look.
    const Found& remembered_start(Future& future, const Asked& asked, const Look& look) {
        Memory::Known* known = future.memory.find(asked.number, look.length);
        bool holds = known && known->since <= look.now && look.now < known->until && look.now < future.first_end() &&
                     future.outlives(known->nodes, known->nb_outlived);
        if (holds) {
            note(known->found, look.length);
            return known->found;
        }
        const Found& found = found_ = find_start(future, nullptr, asked, look, nullptr);
        bool is_now = found.start && *found.start <= look.now;
        bool is_last = found.start && found.share && *found.start >= end_;
        if (!is_now && !is_last && !waits_for_cleaning_ && look.now < future.first_end()) {
            future.memory.remember(asked.number, look.length,
                                   {found, seen_, look.now, holds_until(found, look), future.nb_changes()});
        }
        return found;
    }

    // Keep nodes for a job that starts later, and remember that.
    void keep(Future& future, const SharePointer& share, int64_t start, int64_t end) {
        keep(share, start, end);
        future.memory.keep(step_of(kept_.back()));
    }

private:
    // What is kept, and after how many jobs that was decided.
    struct Kept {
        size_t nb_jobs;
        SharePointer share;
        int64_t start, end;
    };

    int64_t now_;
    int64_t window_;  // how far it reaches
    int64_t resolution_;
    int64_t origin_;  // how far time 0 is from the beginning of a step of the grid
    NodeSet all_;     // the nodes of which none is kept at first
    size_t words_;
    int64_t most_jobs_;        // so many are tried at most, and there is room for so many spans
    std::vector<bool> tried_;  // which of the jobs were tried: for any other, too few nodes were left
    int64_t nb_tried_ = 0;
    std::vector<Kept> kept_;
    std::unordered_set<int64_t> lengths_;  // how long the jobs may run
    double too_late_ = HUGE_VAL;  // when a start will be within the window that is not yet
    bool puts_off_ = false;       // whether a job was tried later than it could start if nobody else waited
    int64_t nb_spans_ = 1;        // how many were ever made: there is room for so many only
    Steps<int64_t, uint64_t> spans_;  // the nodes that are free in each
    int64_t end_;                     // of the last one
    NodeSet nodes_, left_;        // what a search began with, and what is left of it
    NodeSet seen_;                // all nodes that a search has asked for
    Found found_;                 // what the last one has found
    bool waits_for_cleaning_ = false;  // whether a search has found a start now on nodes that are not clean

    void note(const Found& found, int64_t length) {
        lengths_.insert(length);
        tried_.push_back(found.was_tried);
        nb_tried_ += found.was_tried;
        puts_off_ = puts_off_ || found.is_put_off;
        if (found.start && !found.share) too_late_ = std::min(too_late_, static_cast<double>(*found.start - window_));
    }

    // Until when a look finds the same: until a span begins or ends for it, or its start comes within the window.
    int64_t holds_until(const Found& found, const Look& look) const {
        int64_t until = end_;
        size_t place = first_after(look.now), begin = first_begin_after(look.now + look.length);
        if (place < spans_.size()) until = end_of(place);
        if (begin < spans_.size()) until = std::min(until, spans_.time(begin) - look.length);
        if (found.start && !found.share) until = std::min(until, *found.start - window_);
        return until;
    }

    // What a step makes of a plan, whenever the plan begins and ends.
    Memory::Step step_of(const Kept& kept) const {
        constexpr int64_t most = std::numeric_limits<int64_t>::max();
        int64_t first = spans_.time(0), start = std::max(rounded(kept.start), first);
        int64_t end = std::max(rounded(kept.end), start + resolution_);
        if (start >= end_) return {NodeSet(words_), 0, 0};
        return {kept.share->nodes, start == first ? -most : start, end >= end_ ? most : end};
    }

    // One span, in which nothing is kept.
    Steps<int64_t, uint64_t> beginning() const { return {rounded(now_), {all_.data(), all_.data() + words_}}; }

    void change(const Share& share, int64_t start, int64_t end) {
        start = std::max(rounded(start), spans_.time(0));
        end = std::max(rounded(end), start + resolution_);
        if (end_ < start) return;
        size_t place = 0;
        while (end_of(place) < start) ++place;
        if (end_of(place) > start) cut(place, start);
        size_t first = ++place;
        for (; place < spans_.size(); ++place) {
            if (end < end_of(place)) cut(place, end);
            for (size_t word = 0; word < words_; ++word) spans_.row(place)[word] &= ~share.nodes.data()[word];
            if (end_of(place) >= end) break;
        }
        join(first - 1, place + 1);
    }

    // When and where a job could start beside those that nodes are kept for. There may be another future, in which the
    // jobs are gone that may have to make way for it.
    Found search(Future& future, Future* without, const Asked& asked, const Look& look,
                 const Reservations& reservations) {
        int64_t later = look.now;
        seen_ = NodeSet(words_);
        waits_for_cleaning_ = false;
        NodeSet tried_nodes;  // those of the last try: what was found on them holds for the next one, too
        Start earliest;
        bool makes_way = false;
        Found found;
        auto found_at = [&found](int64_t start, const SharePointer& share) {
            found.start = start;
            found.share = share;
            return found;
        };
        while (true) {
            int64_t begin = later, end_of_reservation = 0;
            left_ = asked.partition;
            if (reservations) {
                std::optional<Allowed> allowed = reservations(later);
                if (!allowed) return found;
                left_ &= allowed->nodes;
                begin = allowed->begin;
                end_of_reservation = allowed->end_of_reservation;
            }
            later = leave(begin, std::max(begin, look.now) + look.length, asked.least_nodes);
            left_ &= asked.nodes;
            if (end_of_reservation && end_of_reservation < end_ && (!later || end_of_reservation < later)) {
                later = end_of_reservation;
            }
            if (left_.has_at_least(asked.least_nodes) && left_.has_all(asked.required)) found.was_tried = true;
            if (!(left_ == tried_nodes)) {
                tried_nodes = left_;
                seen_ |= left_;
                earliest = future.earliest(asked, left_, look.now, look.only_now || without);
                makes_way = !earliest.share && without;
                if (makes_way) earliest = without->earliest(asked, left_, look.now, look.only_now);
            }
            if (!earliest.share) {
                if (later && !look.only_now) continue;
                return found;
            }
            int64_t start = std::max(earliest.time, begin);
            const Share& share = **earliest.share;
            found.cpus = share.cpus;
            found.is_put_off = found.is_put_off || begin > earliest.time;
            if (start <= look.now) {
                if (share.nodes.meets(look.completing)) {
                    waits_for_cleaning_ = true;
                    start = look.now + 1;
                    later = 0;
                } else {
                    if (makes_way) found.make_way_on = left_;
                    return makes_way && look.only_now ? found : found_at(start, *earliest.share);
                }
            }
            if (look.only_now) return found;
            if (later && start > later) continue;
            if (start > look.now + window_) return found_at(start, nullptr);
            if (!is_kept(share.nodes, rounded(start), rounded(start + look.length))) return found_at(start, *earliest.share);
            later = start;
        }
    }

    int64_t rounded(int64_t time) const { return time - (time + origin_) % resolution_; }

    int64_t end_of(size_t place) const { return place + 1 < spans_.size() ? spans_.time(place + 1) : end_; }

    // The first span that ends after a time.
    size_t first_after(int64_t time) const { return time < end_ ? spans_.at(time) : spans_.size(); }

    // The first span that begins after a time.
    size_t first_begin_after(int64_t time) const {
        const std::vector<int64_t>& begins = spans_.times();
        return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), time) - begins.begin());
    }

    // Begin another span where one goes on.
    void cut(size_t place, int64_t time) {
        spans_.insert(place + 1, time);
        ++nb_spans_;
    }

    // Make one of spans with the same nodes, and of those that have no time.
    void join(size_t first, size_t last) {
        for (size_t place = std::min(last, spans_.size() - 1); place > first; --place) {
            if (spans_.is_none(place)) spans_.remove(place);
        }
    }

    // Whether some of these nodes are kept at some time of a span.
    bool is_kept(const NodeSet& nodes, int64_t start, int64_t end) const {
        for (size_t place = first_after(start); place < spans_.size() && spans_.time(place) < end; ++place) {
            for (size_t word = 0; word < words_; ++word) {
                if (nodes.data()[word] & ~spans_.row(place)[word]) return true;
            }
        }
        return false;
    }

    // Leave of the nodes of a search those that are kept for nobody in a span; when to try again if they are too few. When
    // there are fewer than the least number of nodes, and that time is known, it does not matter how many fewer.
    int64_t leave(int64_t start, int64_t end, int64_t least) {
        return words_ == NodeSet::kFew ? leave<NodeSet::kFew>(start, end, least) : leave<0>(start, end, least);
    }

    // The same for sets of so many words, or any number of them if that is 0.
    template <size_t kWords>
    int64_t leave(int64_t start, int64_t end, int64_t least) {
        size_t words = kWords ? kWords : words_;
        nodes_ = left_;
        const uint64_t* nodes = nodes_.data();
        uint64_t* left = left_.data();
        int64_t later = 0;
        size_t place = first_after(start), beyond = first_begin_after(end);
        for (size_t last = std::min(beyond, spans_.size() - 1); !later && place <= last; ++place) {
            const uint64_t* free = spans_.row(place);
            if (place + 1 < spans_.size()) {
                const uint64_t* next = spans_.row(place + 1);
                uint64_t back = 0;
                for (size_t word = 0; word < words; ++word) back |= nodes[word] & next[word] & ~(left[word] & free[word]);
                if (back) later = end_of(place);
            }
            if (place < beyond) {
                for (size_t word = 0; word < words; ++word) left[word] &= free[word];
            }
        }
        if (later && !left_.has_at_least(least)) return later;
        for (; place < beyond; ++place) {
            const uint64_t* free = spans_.row(place);
            for (size_t word = 0; word < words; ++word) left[word] &= free[word];
        }
        return later;
    }
};

}  // namespace batsched::slurm
