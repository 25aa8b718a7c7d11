// What is free as a step function of time (specification: batsched_py/ledger/profile.py).
#pragma once
#include <array>
#include <bit>
#include <optional>

#include "amounts.hpp"
#include "running.hpp"
#include "steps.hpp"

namespace batsched {

// Free amounts from now on: of one node, of all licences, or of all nodes together.
class Timeline : public Steps<double, int64_t> {
public:
    using Steps::Steps;

    const int64_t* free(size_t step) const { return this->row(step); }

    // The earliest time from which there is enough for so long, if there is one before some time; else `reserved`. From
    // then on there is enough, because that much is reserved already.
    template <class IsEnough>
    double earlier(double duration, double reserved, double before, IsEnough is_enough) const {
        double start = time(0);
        for (size_t step = 0, count = size(); step < count; ++step) {
            double end = step + 1 < count ? time(step + 1) : INFINITY;
            if (!is_enough(free(step))) {
                start = end;
                if (start >= before || start >= reserved) break;
            } else if (end >= start + duration || end >= reserved) {
                return start;
            }
        }
        return reserved;
    }

    // Adds so many times these amounts between two times.
    void change(double start, double end, const int64_t* more, int64_t factor) {
        start = std::max(start, time(0));
        if (!(start < end)) return;
        size_t first = split(start), last = end < INFINITY ? split(end) : size();
        for (size_t step = first; step < last; ++step) {
            for (size_t kind = 0; kind < width(); ++kind) this->row(step)[kind] += factor * more[kind];
        }
        join(last);
        join(first);
    }

    // The least of each amount between two times.
    void least(double start, double end, int64_t* least, size_t distance) const {
        size_t step = at(start);
        for (size_t kind = 0; kind < width(); ++kind) least[kind * distance] = free(step)[kind];
        for (++step; step < size() && time(step) < end; ++step) {
            for (size_t kind = 0; kind < width(); ++kind) {
                least[kind * distance] = std::min(least[kind * distance], free(step)[kind]);
            }
        }
    }

private:
    // The step that begins at a time, made if there is none.
    size_t split(double time) {
        auto place = std::lower_bound(this->times().begin(), this->times().end(), time);
        auto step = static_cast<size_t>(place - this->times().begin());
        if (place != this->times().end() && *place == time) return step;
        this->insert(step, time);
        return step;
    }

    // Removes a step if nothing changes when it begins.
    void join(size_t step) {
        if (!step || step >= size() || !this->is_none(step)) return;
        this->remove(step);
    }
};

// How many hosts will be free, and when. Steps are kept in blocks of a few, each with the least and the most that is free in
// it: blocks in which there is too little, or enough all the time, are passed over in a search, and a block that is
// given or taken from as a whole only notes it.
class AvailabilityProfile {
public:
    using Place = Request;  // any hosts will do

    AvailabilityProfile(double now, Request free) : blocks_(1), heads_(1) { insert({0, 0}, now, free.hosts); }

    // Jobs give back what is there of their hosts; all are, if nothing is said.
    AvailabilityProfile(double now, Request free, const Running& running, std::optional<HostPool> there)
        : AvailabilityProfile(now, free) {
        there_ = std::move(there);
        for (const Running::Place& place : running.by_end()) {
            give(std::max(place.expected_end, now + kTick), INFINITY, {place.job->nb_given_back});
        }
    }

    // Each time at which a step begins, and how many hosts are free from then on.
    std::vector<std::pair<double, int64_t>> steps() const {
        std::vector<std::pair<double, int64_t>> steps;
        for (size_t block = 0; block < blocks_.size(); ++block) {
            for (size_t place = 0; place < heads_[block].size; ++place) {
                steps.emplace_back(blocks_[block].times[place], free({block, place}));
            }
        }
        return steps;
    }

    int64_t free_at(double time) const { return free(at(time)); }

    // Forgets what was before a time.
    void advance(double now) {
        Step step = at(now);
        blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<ptrdiff_t>(step.block));
        heads_.erase(heads_.begin(), heads_.begin() + static_cast<ptrdiff_t>(step.block));
        if (step.place) remove({0, 0}, step.place);
        blocks_[0].times[0] = heads_[0].time = now;
    }

    // The earliest time from which a request fits for so long; infinite if there is none.
    double earliest(Request request, double duration) const { return earlier(request, duration, INFINITY, INFINITY); }

    // The earliest time from which a request fits for so long, if there is one before some time; else `reserved`. From
    // then on it fits, because that much is reserved already.
    double earlier(Request request, double duration, double reserved, double before) const {
        double start = heads_[0].time, target = std::min(start + duration, reserved);
        bool is_enough = request.hosts <= free({0, 0});  // from the start on, so far
        for (size_t block = 0; block < heads_.size(); ++block) {
            const Head& head = heads_[block];
            if (is_enough && target <= head.time) return start;
            if (is_enough ? head.least >= request.hosts : head.most < request.hosts) continue;
            uint32_t changes = blocks_[block].changes(request.hosts - head.more, head.size, is_enough);
            for (; changes; changes &= changes - 1) {
                double time = blocks_[block].times[static_cast<size_t>(std::countr_zero(changes))];
                if (is_enough) {
                    if (target <= time) return start;
                } else {
                    start = time;
                    if (start >= before || start >= reserved) return reserved;
                    target = std::min(start + duration, reserved);
                }
                is_enough = !is_enough;
            }
        }
        return is_enough ? start : reserved;
    }

    void take(double start, double end, Request request) { change(start, end, -request.hosts); }
    void give(double start, double end, Request request) { change(start, end, request.hosts); }

    // --- for a plan ------------------------------------------------------------------------------------------

    double earliest(const Job& job) const { return earliest(job.request, job.told_walltime); }

    static Place place(const Job& job, double) { return job.request; }

    template <class Reservation>
    std::optional<double> earlier(const Reservation& one, double before) const {
        double start = earlier(one.place, one.job->told_walltime, one.start, before);
        return start < one.start ? std::optional(start) : std::nullopt;
    }

    // Gives a reservation another time, which is earlier: what it has at both times need not be given back.
    template <class Reservation>
    void move(Reservation& one, double start) {
        double end = start + one.job->told_walltime;
        give(std::max(end, one.start), one.end(), one.place);
        take(start, std::min(end, one.start), one.place);
        one.start = start;
    }

    template <class Reservations>
    static void begin_moves(const Reservations&) {}

    // Until when a job that was started has which place; it gives it up.
    std::optional<std::pair<double, Place>> held_by(const Job& job) const {
        return std::pair(job.expected_end, Place{there_ ? count_hosts(there_->overlap(job.hosts)) : job.nb_hosts});
    }
    template <class Reservation>
    void start(const Job& job, const Reservation& one) {
        give(one.start, one.end(), one.place);
        hold(job);
    }
    void hold(const Job& job) { take(job.start, job.expected_end, {job.nb_hosts}); }

    static void choose(Job&, const Place&) {}

private:
    // Some steps in a row, at least one: when each begins, and what is noted for it.
    struct Block {
        static constexpr size_t kMost = 32;

        std::array<double, kMost> times;
        std::array<int64_t, kMost> noted;

        // The places, as bits, from which on there is enough and was not before, or the other way round.
        uint32_t changes(int64_t asked, size_t size, bool is_enough) const {
            uint32_t enough = [&]<size_t... place>(std::index_sequence<place...>) {
                return ((uint32_t{asked <= noted[place]} << place) | ...);
            }(std::make_index_sequence<kMost>());
            return (enough ^ (enough << 1 | uint32_t{is_enough})) & (UINT32_MAX >> (kMost - size));
        }
    };

    // What is known of a block as a whole.
    struct Head {
        double time = 0;  // when it begins
        int64_t least = 0, most = 0, more = 0;  // the last is free in all of it, beside what is noted
        size_t size = 0;
    };

    // Where a step is.
    struct Step {
        size_t block, place;
    };

    std::optional<HostPool> there_;  // the hosts that had not been taken away, if some had
    std::vector<Block> blocks_;
    std::vector<Head> heads_;

    int64_t free(Step step) const { return blocks_[step.block].noted[step.place] + heads_[step.block].more; }

    // The step that some time belongs to; the first one if it is before all.
    Step at(double time) const {
        auto behind = std::upper_bound(heads_.begin() + 1, heads_.end(), time,
                                       [](double time, const Head& head) { return time < head.time; });
        auto block = static_cast<size_t>(behind - heads_.begin()) - 1;
        const auto& times = blocks_[block].times;
        size_t place = heads_[block].size - 1;
        while (place && times[place] > time) --place;
        return {block, place};
    }

    // Lets so many hosts more be free between two times.
    void change(double start, double end, int64_t by) {
        start = std::max(start, heads_[0].time);
        if (!(start < end)) return;
        Step last{SIZE_MAX, 0};
        if (end < INFINITY) last = split(end);
        size_t count = blocks_.size();
        Step first = split(start);
        if (end < INFINITY && (first.block == last.block || count < blocks_.size())) last = at(end);
        for (size_t block = first.block; block < blocks_.size() && block <= last.block; ++block) {
            size_t from = block == first.block ? first.place : 0;
            change(block, from, block == last.block ? last.place : heads_[block].size, by);
        }
        if (end < INFINITY) join(last);
        join(first);
    }

    void change(size_t block, size_t first, size_t last, int64_t by) {
        Head& head = heads_[block];
        if (first == 0 && last == head.size) {
            head.more += by, head.least += by, head.most += by;
        } else if (first < last) {
            for (size_t place = first; place < last; ++place) blocks_[block].noted[place] += by;
            look_at(block);
        }
    }

    // The step that begins at a time, made if there is none.
    Step split(double time) {
        Step step = at(time);
        if (blocks_[step.block].times[step.place] == time) return step;
        if (heads_[step.block].size == Block::kMost) {
            halve(step.block);
            step = at(time);
        }
        int64_t before = free(step);
        ++step.place;
        insert(step, time, before);
        return step;
    }

    void halve(size_t block) {
        constexpr size_t kHalf = Block::kMost / 2;
        auto behind = static_cast<ptrdiff_t>(block) + 1;
        blocks_.insert(blocks_.begin() + behind, Block(blocks_[block]));
        heads_.insert(heads_.begin() + behind, Head(heads_[block]));
        remove({block, kHalf}, Block::kMost - kHalf);
        remove({block + 1, 0}, kHalf);
    }

    // Removes a step if nothing changes when it begins. A block of few steps becomes one with the next.
    void join(Step step) {
        if (!step.block && !step.place) return;
        Step before = step.place ? Step{step.block, step.place - 1} : Step{step.block - 1, heads_[step.block - 1].size - 1};
        if (free(step) != free(before)) return;
        remove(step, 1);
        size_t next = step.block + 1, size = heads_[step.block].size;
        if (!size) {
            erase(step.block);
        } else if (next < blocks_.size() && size + heads_[next].size <= Block::kMost / 2) {
            for (size_t place = 0; place < heads_[next].size; ++place) {
                blocks_[step.block].times[size + place] = blocks_[next].times[place];
                blocks_[step.block].noted[size + place] = free({next, place}) - heads_[step.block].more;
            }
            heads_[step.block].size += heads_[next].size;
            look_at(step.block);
            erase(next);
        }
    }

    void insert(Step step, double time, int64_t free) {
        auto& [times, noted] = blocks_[step.block];
        size_t size = heads_[step.block].size++;
        std::copy_backward(times.begin() + step.place, times.begin() + size, times.begin() + size + 1);
        std::copy_backward(noted.begin() + step.place, noted.begin() + size, noted.begin() + size + 1);
        times[step.place] = time;
        noted[step.place] = free - heads_[step.block].more;
        if (!size) look_at(step.block);
    }

    void remove(Step first, size_t count) {
        auto& [times, noted] = blocks_[first.block];
        size_t size = heads_[first.block].size, behind = first.place + count;
        std::copy(times.begin() + behind, times.begin() + size, times.begin() + first.place);
        std::copy(noted.begin() + behind, noted.begin() + size, noted.begin() + first.place);
        heads_[first.block].size -= count;
        look_at(first.block);
    }

    void erase(size_t block) {
        blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(block));
        heads_.erase(heads_.begin() + static_cast<ptrdiff_t>(block));
    }

    // Finds out what there is to know of a block.
    void look_at(size_t block) {
        Head& head = heads_[block];
        if (!head.size) return;
        const auto& [times, noted] = blocks_[block];
        int64_t least = noted[0], most = noted[0];
        for (size_t place = 1; place < head.size; ++place) {
            least = std::min(least, noted[place]);
            most = std::max(most, noted[place]);
        }
        head.time = times[0];
        head.least = least + head.more;
        head.most = most + head.more;
    }
};

}  // namespace batsched
