// By when a job will start at the latest, if the running ones end as expected (specification: batsched_py/ledger/profile.py).
#pragma once
#include "nodes.hpp"
#include "running.hpp"

namespace batsched {

// The hosts of one pool that will be free.
struct HostsAhead {
    Request free;

    void take(const Job& job) { free = free - Request{job.nb_given_back}; }
    void give(const Job& job) { free = free + Request{job.nb_given_back}; }
    bool suffices(Request request) const { return request.fits(free); }
    Request extra(Request request) const { return free - request; }
};

// What will be free on nodes; several see it until one of them changes it for itself.
struct NodesAhead {
    std::shared_ptr<const Nodes> nodes;
    SharedAmounts free = {};

    void take(const Job& job) { nodes->take(free.own(), *job.given_back, nodes->demand(job.request)); }
    void give(const Job& job) { nodes->give(free.own(), *job.given_back, nodes->demand(job.request)); }
    bool suffices(Request request) const { return nodes->fits(nodes->demand(request), *free); }
    Request extra(Request request) const { return {nodes->nb_cores(*free) - request.hosts}; }
};

// The promise to a job that it starts at the shadow time at the latest, and what it leaves free then.
struct Reservation {
    int64_t arrival = -1;  // of the job it is for; 0 if that does not wait
    double now = 0;        // when it was asked for
    double shadow_time = INFINITY;  // infinite where the job can never start
    Request request = {}, extra = {};
    NodesAhead at_shadow_time = {};  // on a machine of nodes: what will be free then, before the job starts

    // Whether jobs run on after their expected ends, of which more count as time goes by, if all ends do.
    bool is_late() const { return shadow_time <= now; }

    // Whether a job that starts now and runs for so long would still run at the shadow time.
    bool ends_after(double estimate) const { return !(now + estimate <= shadow_time); }

    // Whether such a job would not delay it.
    bool allows(Request request, double estimate) const { return !ends_after(estimate) || request.fits(extra); }

    // A job was started beside it.
    void admit(const Job& job) {
        if (!(job.expected_end > shadow_time)) return;
        extra = extra - Request{job.nb_hosts};
        if (at_shadow_time.nodes && at_shadow_time.nodes->has_placed(job)) at_shadow_time.take(job);
    }

    void keep(const HostsAhead&) {}
    void keep(const NodesAhead& ahead) { at_shadow_time = ahead; }
};

// What will be free when so many of the running jobs have ended that a job can start. It is kept from one reservation to
// the next, and so is the last reservation until a job starts or ends.
template <class Ahead>
class Shadow {
public:
    explicit Shadow(Ahead now) : ahead_(std::move(now)) {}

    // A job takes its place now, or leaves it: this makes a difference if it is not among those that will have ended.
    void started(const Job& job) {
        made_ = {};
        if (is_beyond(job)) ahead_.take(job);
    }
    void ended(const Job& job) {
        made_ = {};
        if (is_beyond(job)) ahead_.give(job);
    }

    // A running job is expected to end at another time; this is free now.
    void begin_again(Ahead now) { *this = Shadow(std::move(now)); }

    // Of a job that could be granted what it asks for. With `all_ends`, all jobs will have ended that end by then.
    Reservation reservation(Request request, int64_t arrival, double now, const Running& running, bool all_ends) {
        bool is_late = all_ends && now > made_.shadow_time;
        if (!arrival || made_.arrival != arrival || is_late) make(request, arrival, now, running.by_end(), all_ends);
        Reservation made = made_;
        made.now = now;
        made.shadow_time = std::max(made.shadow_time, now);
        return made;
    }

private:
    static inline const Running::Place kNobody{-INFINITY, -1, nullptr};

    Running::Place last_ = kNobody;  // of the jobs that will have ended
    Ahead ahead_;
    Reservation made_;

    bool is_beyond(const Job& job) const { return last_ < Running::Place{job.expected_end, job.number, nullptr}; }

    // The more jobs have ended, the more fits. So the number of jobs after whose ends the job fits is looked for around
    // that of the reservation before, in growing steps and then by halves.
    void make(Request request, int64_t arrival, double now, const std::vector<Running::Place>& by_end, bool all_ends) {
        made_ = {};
        size_t most = by_end.size();
        size_t ended = static_cast<size_t>(std::upper_bound(by_end.begin(), by_end.end(), last_) - by_end.begin());
        auto suffices_after = [&](size_t count) {
            for (; ended < count; ++ended) ahead_.give(*by_end[ended].job);
            for (; ended > count; --ended) ahead_.take(*by_end[ended - 1].job);
            return ahead_.suffices(request);
        };
        size_t low = 0, high = most + 1;  // not after fewer than `low`; after `high`, unless that is more than all
        for (size_t count = ended, step = 1; low < high; step *= 2) {
            if (suffices_after(count)) {
                high = count;
            } else {
                low = count + 1;
            }
            if (low && high <= most) {
                count = low + (high - low) / 2;
            } else {
                count = low ? std::min(low + step - 1, most) : high - std::min(step, high);
            }
        }
        bool never = low > most;
        double shadow_time = never ? INFINITY : low ? by_end[low - 1].expected_end : -INFINITY;
        while (all_ends && low < most && by_end[low].expected_end <= std::max(shadow_time, now)) ++low;
        suffices_after(never ? most : low);
        last_ = ended ? Running::Place{by_end[ended - 1].expected_end, by_end[ended - 1].number, nullptr} : kNobody;
        made_ = {arrival, 0, shadow_time, request, never ? Request() : ahead_.extra(request)};
        made_.keep(ahead_);
    }
};

}  // namespace batsched
