// What will be free of one thing, and when (specification: batsched_py/ledger/free_nodes.py).
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "amounts.hpp"

namespace batsched {

// The free amounts of one node, or those of all licences, as a step function of time from now on.
class Timeline {
public:
    explicit Timeline(Amounts now) : width_(now.size()), times_{-INFINITY}, amounts_(std::move(now)) {}

    size_t size() const { return times_.size(); }
    double time(size_t step) const { return times_[step]; }
    const int64_t* amounts(size_t step) const { return amounts_.data() + step * width_; }

    // The step that some time belongs to.
    size_t at(double time) const {
        return static_cast<size_t>(std::upper_bound(times_.begin() + 1, times_.end(), time) - times_.begin()) - 1;
    }

    // Forgets the first step.
    void forget() {
        times_.erase(times_.begin());
        amounts_.erase(amounts_.begin(), amounts_.begin() + static_cast<ptrdiff_t>(width_));
        times_[0] = -INFINITY;
    }

    // Makes a step that begins at a time; whether there was none.
    bool split(double time) {
        size_t step = at(time);
        if (times_[step] == time) return false;
        times_.insert(times_.begin() + static_cast<ptrdiff_t>(step) + 1, time);
        Amounts same(amounts(step), amounts(step) + width_);
        amounts_.insert(amounts_.begin() + static_cast<ptrdiff_t>((step + 1) * width_), same.begin(), same.end());
        return true;
    }

    // Removes the step that begins at a time if nothing changes then; whether it did.
    bool join(double time) {
        size_t step = at(time);
        if (!std::equal(amounts(step - 1), amounts(step), amounts(step))) return false;
        times_.erase(times_.begin() + static_cast<ptrdiff_t>(step));
        auto first = amounts_.begin() + static_cast<ptrdiff_t>(step * width_);
        amounts_.erase(first, first + static_cast<ptrdiff_t>(width_));
        return true;
    }

    // Adds so many times these amounts to what is free, between two times at which steps begin.
    void add(double start, double end, const int64_t* more, int64_t factor) {
        for (size_t step = at(start); step < size() && times_[step] < end; ++step) {
            for (size_t column = 0; column < width_; ++column) amounts_[step * width_ + column] += factor * more[column];
        }
    }

    // The least of each amount between two times.
    Amounts least(double start, double end) const {
        size_t step = at(start);
        Amounts least(amounts(step), amounts(step) + width_);
        for (++step; step < size() && times_[step] < end; ++step) {
            for (size_t column = 0; column < width_; ++column) least[column] = std::min(least[column], amounts(step)[column]);
        }
        return least;
    }

private:
    size_t width_;  // how many amounts there are
    std::vector<double> times_;
    Amounts amounts_;  // of each step in turn
};

}  // namespace batsched
