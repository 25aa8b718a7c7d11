// The plan of a backfill cycle (specification: batsched_py/schedulers/slurm/plan.py).
#pragma once
#include <functional>

#include "slurm_future.hpp"

namespace batsched::slurm {

// What reservations leave to a job from a time on: nodes, the begin, and when to try again, or 0.
struct Allowed {
    NodeSet nodes;
    int64_t begin, end_of_reservation;
};

// Says what reservations leave to a job from a time on, if anything.
using Reservations = std::function<std::optional<Allowed>(int64_t)>;

// When a job could start, what it would get if that is within the window, and how many processors that is. There is no
// time if it cannot start; then the number of processors is what was found on the way, or 0.
struct Found {
    std::optional<int64_t> start;
    SharePointer share;
    int64_t cpus;
};

// A look at the machine for one job.
struct Look {
    int64_t now;
    int64_t length;             // how long the job may run
    bool only_now;              // whether a later start is of no use
    const NodeSet& completing;  // nodes on which nobody starts now
};

// Spans of time from now to the end of the window, each with the nodes that are not kept for a job.
class Plan {
public:
    Plan(int64_t now, int64_t window, int64_t resolution, const NodeSet& nodes, int64_t most_spans)
        : resolution_(resolution), window_(window), words_(nodes.size()), most_spans_(most_spans), begins_{rounded(now)},
          ends_{rounded(now + window)}, free_(nodes.data(), nodes.data() + nodes.size()) {}

    size_t words() const { return words_; }
    const std::vector<int64_t>& begins() const { return begins_; }

    bool is_full() const { return nb_spans_ >= most_spans_; }

    // Keep the nodes of a share from one time to another, both on the grid; at least for one step of it.
    void keep(const Share& share, int64_t start, int64_t end) {
        start = std::max(rounded(start), begins_[0]);
        end = std::max(rounded(end), start + resolution_);
        if (ends_.back() < start) return;
        size_t place = 0;
        while (ends_[place] < start) ++place;
        if (ends_[place] > start) cut(place, start);
        size_t first = ++place;
        for (; place < ends_.size(); ++place) {
            if (end < ends_[place]) cut(place, end);
            for (size_t word = 0; word < words_; ++word) free(place)[word] &= ~share.nodes.data()[word];
            if (ends_[place] >= end) break;
        }
        join(first - 1, place + 1);
    }

    // When and where a job could start beside those that nodes are kept for.
    Found find_start(Future& future, const Asked& asked, const Look& look, const Reservations& reservations) {
        int64_t later = look.now;
        int64_t cpus = 0;
        while (true) {
            int64_t begin = later, end_of_reservation = 0;
            left_ = asked.nodes;
            if (reservations) {
                std::optional<Allowed> allowed = reservations(later);
                if (!allowed) return {std::nullopt, nullptr, cpus};
                left_ &= allowed->nodes;
                begin = allowed->begin;
                end_of_reservation = allowed->end_of_reservation;
            }
            later = leave(begin, std::max(begin, look.now) + look.length);
            if (end_of_reservation && end_of_reservation < ends_.back() && (!later || end_of_reservation < later)) {
                later = end_of_reservation;
            }
            auto [time, share] = future.earliest(asked, left_, look.now, look.only_now);
            if (!share) {
                if (later && !look.only_now) continue;
                return {std::nullopt, nullptr, cpus};
            }
            int64_t start = std::max(time, begin);
            cpus = share->cpus;
            if (start <= look.now) {
                if (!share->nodes.meets(look.completing)) return {start, share, cpus};
                start = look.now + 1;
                later = 0;
            }
            if (look.only_now) return {std::nullopt, nullptr, cpus};
            if (later && start > later) continue;
            if (start > look.now + window_) return {start, nullptr, cpus};
            if (!is_kept(share->nodes, rounded(start), rounded(start + look.length))) return {start, share, cpus};
            later = start;
        }
    }

private:
    int64_t resolution_;
    int64_t window_;  // how far it reaches
    size_t words_;
    int64_t nb_spans_ = 1;  // how many were ever made: there is room for so many only
    int64_t most_spans_;
    std::vector<int64_t> begins_, ends_;
    std::vector<uint64_t> free_;  // the nodes of each span in turn
    NodeSet nodes_, left_;        // what a search began with, and what is left of it

    int64_t rounded(int64_t time) const { return time - time % resolution_; }

    uint64_t* free(size_t place) { return free_.data() + place * words_; }
    const uint64_t* free(size_t place) const { return free_.data() + place * words_; }

    // The first span that ends after a time.
    size_t first_after(int64_t time) const {
        return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), time) - ends_.begin());
    }

    // Begin another span where one goes on.
    void cut(size_t place, int64_t time) {
        auto at = [place](auto& column) { return column.begin() + static_cast<ptrdiff_t>(place); };
        begins_.insert(at(begins_) + 1, time);
        ends_.insert(at(ends_), time);
        std::vector<uint64_t> same(free(place), free(place) + words_);
        free_.insert(free_.begin() + static_cast<ptrdiff_t>(place * words_), same.begin(), same.end());
        ++nb_spans_;
    }

    // Make one of spans with the same nodes, and of those that have no time.
    void join(size_t first, size_t last) {
        for (size_t place = std::min(last, ends_.size() - 1); place > first; --place) {
            if (!std::equal(free(place), free(place) + words_, free(place - 1))) continue;
            auto at = static_cast<ptrdiff_t>(place);
            begins_.erase(begins_.begin() + at);
            ends_.erase(ends_.begin() + at - 1);
            auto words = static_cast<ptrdiff_t>(words_);
            free_.erase(free_.begin() + at * words, free_.begin() + (at + 1) * words);
        }
    }

    // Whether some of these nodes are kept at some time of a span.
    bool is_kept(const NodeSet& nodes, int64_t start, int64_t end) const {
        for (size_t place = first_after(start); place < begins_.size() && begins_[place] < end; ++place) {
            for (size_t word = 0; word < words_; ++word) {
                if (nodes.data()[word] & ~free(place)[word]) return true;
            }
        }
        return false;
    }

    // Leave of the nodes of a search those that are kept for nobody in a span; when to try again if they are too few.
    int64_t leave(int64_t start, int64_t end) {
        nodes_ = left_;
        int64_t later = 0;
        for (size_t place = first_after(start); place < ends_.size(); ++place) {
            if (!later && place + 1 < ends_.size() && come_back(place)) later = ends_[place];
            if (begins_[place] > end) break;
            for (size_t word = 0; word < words_; ++word) left_.data()[word] &= free(place)[word];
        }
        return later;
    }

    // Whether after a span there are nodes again that a search has not left.
    bool come_back(size_t place) const {
        for (size_t word = 0; word < words_; ++word) {
            uint64_t left = left_.data()[word] & free(place)[word];
            if (nodes_.data()[word] & free(place + 1)[word] & ~left) return true;
        }
        return false;
    }
};

}  // namespace batsched::slurm
