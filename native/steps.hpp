// Step functions of time (specification: Steps in batsched_py/ledger/profile.py).
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace batsched {

// A row of values from each time on, until the next one. How many values there are is known beforehand, or else told by
// the first row.
template <class Time, class Value, size_t kWidth = 0>
class Steps {
public:
    Steps(Time first, std::vector<Value> row) : width_(row.size()), times_{first}, rows_(std::move(row)) {}

    size_t size() const { return times_.size(); }
    Time time(size_t step) const { return times_[step]; }
    const std::vector<Time>& times() const { return times_; }
    const Value* row(size_t step) const { return rows_.data() + step * width(); }
    Value* row(size_t step) { return rows_.data() + step * width(); }
    size_t width() const { return kWidth ? kWidth : width_; }

    // The step that some time belongs to.
    size_t at(Time time) const {
        if (size() == 1 || time < times_[1]) return 0;
        return static_cast<size_t>(std::upper_bound(times_.begin() + 1, times_.end(), time) - times_.begin()) - 1;
    }

    // Begins another step at a time, with what was there before.
    void insert(size_t step, Time time) {
        times_.insert(times_.begin() + static_cast<ptrdiff_t>(step), time);
        rows_.insert(place(step), width(), Value());
        std::copy_n(row(step - 1), width(), row(step));
    }

    // Whether nothing changes when a step begins.
    bool is_none(size_t step) const { return std::equal(row(step), row(step) + width(), row(step - 1)); }

    void remove(size_t first, size_t count = 1) {
        auto begin = times_.begin() + static_cast<ptrdiff_t>(first);
        times_.erase(begin, begin + static_cast<ptrdiff_t>(count));
        rows_.erase(place(first), place(first + count));
    }

    // Forgets what was before a time.
    void advance(Time now) {
        if (size_t past = at(now)) remove(0, past);
        times_[0] = now;
    }

private:
    size_t width_;
    std::vector<Time> times_;
    std::vector<Value> rows_;  // of each step in turn

    auto place(size_t step) { return rows_.begin() + static_cast<ptrdiff_t>(step * width()); }
};

}  // namespace batsched
