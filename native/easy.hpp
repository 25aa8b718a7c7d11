// EASY backfilling in submission order (specification: batsched_py/schedulers/easy.py).
#pragma once
#include "simulation.hpp"

namespace batsched {

// A turn of the policy: start from the head while it fits, reserve for the head, then backfill.
inline void take_turn_of_easy(Simulation& simulation) {
    const Queue& queue = simulation.queue;
    while (!queue.empty() && simulation.fits(*queue.head())) simulation.start(JobPtr(queue.head()));
    if (queue.size() < 2) return;
    const Job& head = *queue.head();
    Reservation beside = simulation.reservation(head.request, head.arrival);
    int64_t behind = simulation.tried(beside), last = queue.nb_arrived(), nb_changes = simulation.nb_changes();
    while (JobPtr job = simulation.free->find(queue, behind, last, &beside)) {
        behind = job->arrival;
        simulation.start(job);
        beside.admit(*job);
    }
    simulation.note_tried(beside, nb_changes, last);
}

}  // namespace batsched
