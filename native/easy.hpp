// EASY backfilling, in any order that is a formula (specification: batsched_py/schedulers/easy.py).
#pragma once
#include "formula.hpp"

namespace batsched {

// Starts what fits beside the reservation of a job that waits; in submission order, if in no other.
inline void backfill(Simulation& simulation, const Job& head, Formula* order) {
    const Queue& queue = simulation.queue;
    Reservation beside = simulation.reservation(head.request, head.arrival);
    int64_t behind = simulation.tried(beside), last = queue.nb_arrived(), nb_changes = simulation.nb_changes();
    auto start = [&](const JobPtr& job) {
        simulation.start(job);
        beside.admit(*job);
    };
    if (order) {
        Queue::Selected jobs = queue.select(behind, simulation.free->available(), SIZE_MAX);
        for (int64_t arrival : order->sorted(queue, jobs, simulation.now())) {
            JobPtr job = queue.at(arrival);
            if (simulation.free->finds_place(*job, &beside)) start(job);
        }
    } else {
        while (JobPtr job = simulation.free->find(queue, behind, last, &beside)) {
            behind = job->arrival;
            start(job);
        }
    }
    simulation.note_tried(beside, nb_changes, last);
}

}  // namespace batsched
