// What is free of a machine, and what jobs have of it (specification: batsched_py/ledger/free.py).
//
// A machine consists of pools of interchangeable hosts. On a plain machine there is one, and what is free is a number:
// that is FreeHosts. On a machine of nodes each node is one, with resources beside its cores: that is FreeNodes. Both
// have the same methods. Nobody else knows which kind of machine it is.
#pragma once
#include "plan.hpp"
#include "profile.hpp"
#include "reservation.hpp"

namespace batsched {

// One pool of hosts: a number and intervals.
class FreeHosts : public HostPool {
public:
    bool counts_all_ends = false;  // whether all jobs that end by a shadow time count towards what is extra then

    explicit FreeHosts(int64_t hosts) : HostPool(hosts), all_(available()), there_(hosts), shadow_({all_}) {}
    virtual ~FreeHosts() = default;

    // How much of each resource of nodes is free; nothing on a plain machine.
    virtual const FreeAmounts& amounts() const {
        static const FreeAmounts none;
        return none;
    }

    // --- what jobs ask for -------------------------------------------------------------------------------

    // Whether what a job asks for would be free if nothing ran.
    virtual bool could_grant(Request request) const { return request.hosts > 0 && request.fits(all_); }

    // Whether it is free now, at a certain place if one was found for the job.
    virtual bool fits(Request request, const Placement*) { return request.fits(available()); }

    // Whether a job fits and does not delay a reservation. If it is started now, it goes to the place that was found.
    virtual bool finds_place(Job& job, const Reservation* beside) {
        return fits_beside(job.request, job.estimate, beside);
    }

    // The first waiting job behind an arrival, none later than another, that finds a place.
    virtual JobPtr find(const Queue& queue, int64_t behind, int64_t last, const Reservation* beside) {
        return queue.find(behind, last, [&](Request request, double estimate) {
            return fits_beside(request, estimate, beside);
        });
    }

    // --- what happens to jobs ----------------------------------------------------------------------------

    // A job that fits gets hosts, those with the lowest numbers where it is to go.
    virtual void place(Job& job) { set_hosts(job, take_lowest(job.request)); }

    // A job gets these hosts, all of which are free, unless that breaks a rule.
    virtual void place_on(Job& job, Runs hosts) {
        take(hosts);
        set_hosts(job, std::move(hosts));
    }

    // It is known when a job will end that has its hosts.
    virtual void started(const Job& job) { shadow_.started(job); }

    // A job gives everything back, but for hosts that were taken away meanwhile.
    virtual void ended(Job& job) {
        shadow_.ended(job);
        give(those_there(job.hosts));
    }

    // Running jobs are expected to end at other times.
    virtual void ends_change() { shadow_.begin_again({available() + nb_to_wake_}); }

    // --- hosts that are taken away ----------------------------------------------------------------------

    bool all_there() const { return there_.available() == all_; }
    const HostPool& there() const { return there_; }
    Runs those_there(const Runs& hosts) const { return all_there() ? hosts : there_.overlap(hosts); }

    // Hosts are taken away; jobs on them go on.
    void take_away(const Runs& hosts, const Running& running) {
        Runs idle = overlap(hosts);
        take(idle);
        there_.take(there_.overlap(hosts));
        hosts_change(idle, false, running);
    }

    // Hosts are there again; those with a job on them are free when it ends.
    void give_back(const Runs& hosts, const Running& running) {
        there_.give(without(hosts, there_.runs()));
        Runs idle = without(without(hosts, runs()), blocked());
        for (const Running::Place& place : running.by_end()) idle = without(idle, place.job->hosts);
        give(idle);
        hosts_change(idle, true, running);
    }

    // --- hosts that sleep --------------------------------------------------------------------------------

    // Hosts without jobs are not free until they are awake again; reservations count on them all the time.
    void fall_asleep(const Runs& hosts) {
        take(hosts);
        nb_to_wake_ = nb_to_wake_ + Request{count_hosts(hosts)};
    }
    void wake(const Runs& hosts) {
        give(hosts);
        nb_to_wake_ = nb_to_wake_ - Request{count_hosts(hosts)};
    }

    // --- what will be free -------------------------------------------------------------------------------

    // Of a job that asks for this; `arrival` tells which job, if it waits.
    virtual Reservation reservation(Request request, int64_t arrival, double now, const Running& running) {
        if (!could_grant(request)) return {arrival, now};
        return shadow_.reservation(request, arrival, now, running, counts_all_ends);
    }

    // Whether a reservation may be of this machine.
    virtual bool may_have_made(const Reservation& reservation) const { return !reservation.at_shadow_time.nodes; }

    AvailabilityProfile profile(double now, const Running& running) const {
        return {now, available(), running, all_there() ? std::nullopt : std::optional(there_)};
    }

    virtual std::unique_ptr<AnyPlan> plan(double now, const Running& running) const {
        return std::make_unique<Plan<AvailabilityProfile>>(profile(now, running));
    }

protected:
    // Hosts without jobs that nobody may use.
    virtual Runs blocked() const { return {}; }

    // These hosts are free now, or are not any more, because they have come or gone.
    virtual void hosts_change(const Runs&, bool, const Running& running) {
        for (const Running::Place& place : running.by_end()) {
            place.job->nb_given_back = count_hosts(there_.overlap(place.job->hosts));
        }
        ends_change();
    }

private:
    Request all_, nb_to_wake_;
    HostPool there_;  // the hosts that were not taken away
    Shadow<HostsAhead> shadow_;

    static void set_hosts(Job& job, Runs hosts) {
        job.hosts = std::move(hosts);
        job.nb_hosts = job.nb_given_back = count_hosts(job.hosts);
    }

    bool fits_beside(Request request, double estimate, const Reservation* beside) const {
        return request.fits(available()) && (!beside || beside->allows(request, estimate));
    }
};

}  // namespace batsched
