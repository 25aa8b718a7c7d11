// Idle hosts that sleep until a waiting job needs them (specification: batsched_py/schedulers/sleeping.py).
#pragma once
#include <set>

#include "simulation.hpp"

namespace batsched {

class Sleeping {
public:
    // After so many idle seconds a host is put to sleep.
    Sleeping(Simulation& simulation, double after) : simulation_(simulation), states_(*simulation.power_states), after_(after) {}

    // The policy inside has decided: wakes hosts for waiting jobs, or lets idle ones sleep.
    void take_turn() {
        note_idle(states_.can_sleep().overlap(simulation_.free->runs()));
        waking_ = HostPool(states_.switching.overlap(waking_.runs()));
        if (!simulation_.queue.empty()) wake_up();
        if (!waking_.available().hosts) put_to_sleep();
    }

private:
    struct Idle {
        double since;
        Runs hosts;
    };

    // The hosts that are awake, or are to be woken, shared out among waiting jobs.
    struct Room {
        int64_t nb_awake;
        HostPool asleep, woken{0};

        bool nothing_sleeps() const { return !asleep.available().hosts; }

        bool take(int64_t size) {
            if (size > nb_awake + asleep.available().hosts) return false;
            nb_awake -= size;
            if (nb_awake < 0) woken.give(asleep.take_lowest({-nb_awake}));
            nb_awake = std::max<int64_t>(nb_awake, 0);
            return true;
        }
    };

    Simulation& simulation_;
    PowerStates& states_;
    const double after_;
    std::vector<Idle> idle_;  // since when hosts are
    HostPool waking_{0};
    std::set<int64_t> woken_for_;  // the arrivals of jobs behind the first that has to wait; some still wait
    double call_ = 0;

    // These hosts are idle now; those of them that were before have been ever since.
    void note_idle(Runs idle) {
        HostPool left(std::move(idle));
        std::vector<Idle> noted;
        for (const Idle& before : idle_) {
            Runs still = left.overlap(before.hosts);
            if (still.empty()) continue;
            left.take(still);
            noted.push_back({before.since, std::move(still)});
        }
        if (left.available().hosts) noted.push_back({simulation_.now(), left.runs()});
        idle_ = std::move(noted);
    }

    // For jobs at the front of the queue, and once for each other one that would not delay the first that has to wait.
    void wake_up() {
        const Queue& queue = simulation_.queue;
        Room room{simulation_.free->available().hosts + waking_.available().hosts, states_.asleep};
        if (room.nothing_sleeps()) return;
        std::optional<Reservation> reservation;
        auto any = [](Request, double) { return true; };
        for (JobPtr job = queue.find(0, INT64_MAX, any); job; job = queue.find(job->arrival, INT64_MAX, any)) {
            int64_t size = job->request.hosts;
            if (!reservation) {
                if (!room.take(size)) reservation = simulation_.reservation(job->request, job->arrival);
            } else if (!woken_for_.contains(job->arrival) && reservation->allows(job->request, job->estimate)) {
                if (room.take(size)) woken_for_.insert(job->arrival);
            }
            if (room.nothing_sleeps()) break;
        }
        std::erase_if(woken_for_, [&](int64_t arrival) { return !queue.at(arrival); });
        Runs woken = room.woken.runs();
        simulation_.switch_hosts(woken, false);
        waking_.give(woken);
    }

    void put_to_sleep() {
        double soon = simulation_.now() + kTick;
        for (const Idle& idle : idle_) {
            double time = idle.since + after_;
            if (time <= soon) {
                simulation_.switch_hosts(idle.hosts, true);
            } else if (call_ <= soon) {
                call_ = time;
                simulation_.call_at(first_tick_from(time));
            }
        }
    }
};

}  // namespace batsched
