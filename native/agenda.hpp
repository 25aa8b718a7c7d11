// What time it is, and what is going to happen (specification: batsched_py/simulator/agenda.py).
#pragma once
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "job.hpp"

namespace batsched {

enum class Action : uint8_t { kSubmit, kBegin, kEnd, kLeave, kAcknowledge, kCall, kCarryOut, kOutside, kArrive, kCountOff, kNoMoreJobs, kNoMoreOutside };

class Agenda {
public:
    double clock = 0;
    double now = 0;  // the clock as it is told

    struct Entry {
        double time;
        int64_t number;
        Job* job;  // that begins, ends or leaves
        Action action;

        // A notice waits until everything else of its instant has happened and has been told.
        bool is_notice() const { return action >= Action::kNoMoreJobs; }

        // Whether it comes after the other one.
        bool operator<(const Entry& other) const {
            if (time != other.time) return time > other.time;
            if (is_notice() != other.is_notice()) return is_notice();
            return number > other.number;
        }
    };

    bool empty() const { return heap_.empty(); }
    bool instant_is_over() const { return empty() || heap_[0].time > clock || heap_[0].is_notice(); }
    bool notice_is_due() const { return !empty() && heap_[0].time <= clock && heap_[0].is_notice(); }

    int64_t put(double time, Action action, Job* job = nullptr) {
        heap_.push_back({time, ++count_, job, action});
        std::push_heap(heap_.begin(), heap_.end());
        return count_;
    }

    // A number for actions of which one at a time is put down, as if that had been done when it was reserved.
    int64_t reserve() { return ++count_; }
    void put_in_turn(int64_t number, double time, Action action) {
        heap_.push_back({time, number, nullptr, action});
        std::push_heap(heap_.begin(), heap_.end());
    }

    void cancel(int64_t number) {
        cancelled_.insert(number);
        drop_cancelled();
    }

    // Goes to the time of the next action, which is to happen now.
    Entry next() {
        Entry entry = pop();
        if (!cancelled_.empty()) drop_cancelled();
        if (entry.time != clock) {
            clock = entry.time;
            now = to_tick(clock);
        }
        return entry;
    }

private:
    std::vector<Entry> heap_;
    std::unordered_set<int64_t> cancelled_;
    int64_t count_ = 0;

    Entry pop() {
        std::pop_heap(heap_.begin(), heap_.end());
        Entry entry = heap_.back();
        heap_.pop_back();
        return entry;
    }

    void drop_cancelled() {
        while (!heap_.empty() && cancelled_.erase(heap_[0].number)) pop();
    }
};

}  // namespace batsched
