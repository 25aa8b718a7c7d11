// What is free of a machine of nodes (specification: batsched_py/ledger/free_nodes.py).
#pragma once
#include "free.hpp"
#include "node_profile.hpp"

namespace batsched {

// The free hosts, the free amounts of each resource of the nodes, and where a job goes.
class FreeNodes final : public FreeHosts {
public:
    FreeNodes(int64_t hosts, std::shared_ptr<const Nodes> nodes)
        : FreeHosts(hosts), nodes_(std::move(nodes)), free_(nodes_->has), shadow_(all_free_now()) {}

    const FreeAmounts& amounts() const override { return free_; }

    bool could_grant(Request request) const override {
        return FreeHosts::could_grant(request) && nodes_->demand(request).could_be_granted;
    }

    bool fits(Request request, const Placement* chosen) override {
        if (!request.fits(available())) return false;
        const Demand& demand = nodes_->demand(request);
        if (chosen) return Nodes::has_licences(demand, free_) && nodes_->is_free(*chosen, free_);
        return !finds_none(request, 0, nullptr) && (nodes_->fits(demand, free_) || note_unfit(request));
    }

    bool finds_place(Job& job, const Reservation* beside) override {
        if (!job.request.fits(available()) || finds_none(job.request, job.estimate, beside)) return false;
        const Demand& demand = nodes_->demand(job.request);
        std::optional<Placement> placement = nodes_->place(demand, free_);
        if (!placement) return note_unfit(job.request);
        if (beside && beside->ends_after(job.estimate) && !leaves_place(*beside, *placement, demand)) {
            placement = place_beside(*beside, demand);
            if (!placement || !leaves_place(*beside, *placement, demand)) {
                Known& known = known_of(job.request);
                known.refused_beside = beside->arrival;
                known.refused_since = nb_changes_;
                return false;
            }
        }
        job.placement = nodes_->made(std::move(*placement));
        return true;
    }

    JobPtr find(const Queue& queue, int64_t behind, int64_t last, const Reservation* beside) override {
        while (JobPtr job = queue.find(behind, last, [&](Request request, double estimate) {
                   return request.fits(available()) && !finds_none(request, estimate, beside);
               })) {
            if (finds_place(*job, beside)) return job;
            behind = job->arrival;
        }
        return nullptr;
    }

    // The hosts with the lowest numbers in each node.
    void place(Job& job) override {
        const Demand& asked = nodes_->demand(job.request);
        if (!job.placement) job.placement = nodes_->made(*nodes_->place(asked, free_));
        const Placement& placement = *job.placement;
        Runs hosts;
        for (size_t row = 0; row < placement.nodes.size(); ++row) {
            append_lowest(hosts, nodes_->hosts_of(placement.nodes[row]), placement.tasks[row] * asked.cores);
        }
        take_place(job, std::move(hosts));
    }

    void place_on(Job& job, Runs hosts) override {
        job.placement = nodes_->made(nodes_->placed_on(hosts, nodes_->demand(job.request), free_));
        take_place(job, std::move(hosts));
    }

    void started(const Job& job) override {
        ++nb_changes_;
        shadow_.started(job);
    }

    void ended(Job& job) override {
        ++nb_changes_;
        ++nb_given_;
        shadow_.ended(job);
        give(those_there(job.hosts));
        nodes_->give(free_, *std::exchange(job.given_back, nullptr), nodes_->demand(job.request));
        job.placement = nullptr;
        if (auto blocked = blocked_.extract(&job)) give(those_there(blocked.mapped()));
    }

    void ends_change() override {
        ++nb_changes_;
        shadow_.begin_again(all_free_now());
    }

    Reservation reservation(Request request, int64_t arrival, double now, const Running& running) override {
        if (!could_grant(request)) return {arrival, now, INFINITY, request, {}, {nodes_}};
        return shadow_.reservation(request, arrival, now, running, counts_all_ends);
    }

    bool may_have_made(const Reservation& reservation) const override {
        return reservation.at_shadow_time.nodes == nodes_;
    }

    std::unique_ptr<AnyPlan> plan(double now, const Running& running) const override {
        if (nodes_->are_hosts) return FreeHosts::plan(now, running);
        return std::make_unique<Plan<NodeProfile>>(NodeProfile(*nodes_, free_, running, now));
    }

protected:
    Runs blocked() const override {
        HostPool all{Runs()};
        for (const auto& [job, hosts] : blocked_) all.give(hosts);
        return all.runs();
    }

    void hosts_change(const Runs& hosts, bool are_free, const Running& running) override {
        nb_given_ += are_free;
        static const Demand nothing_else;
        Placement cores = nodes_->cores_of(hosts);
        are_free ? nodes_->give(free_, cores, nothing_else) : nodes_->take(free_, cores, nothing_else);
        for (const Running::Place& place : running.by_end()) {
            Job& job = *place.job;
            HostPool own(job.hosts);
            if (auto blocked = blocked_.find(&job); blocked != blocked_.end()) own.give(blocked->second);
            job.given_back = nodes_->made(nodes_->left_of(*job.placement, those_there(own.runs())));
        }
        FreeHosts::hosts_change(hosts, are_free, running);
    }

private:
    // What is known of jobs that ask for the same.
    struct Known {
        int64_t unfit_since = -1;     // how often something had become free when there was no place for one
        int64_t refused_beside = -1;  // the arrival of the job that one would have delayed
        int64_t refused_since = -1;   // and how often things had changed then
    };

    std::shared_ptr<const Nodes> nodes_;
    FreeAmounts free_;
    Shadow<NodesAhead> shadow_;
    std::unordered_map<const Job*, Runs> blocked_;  // hosts that nobody may use while an exclusive job runs
    std::vector<Known> known_;                      // by the numbers of demands
    int64_t nb_given_ = 0;                          // how often something has become free
    int64_t nb_changes_ = 0;                        // how often jobs have started, ended or were expected to end otherwise

    NodesAhead all_free_now() const { return {nodes_, SharedAmounts(free_)}; }

    void take_place(Job& job, Runs hosts) {
        const Demand& demand = nodes_->demand(job.request);
        nodes_->take(free_, *job.placement, demand);
        job.given_back = job.placement;
        FreeHosts::place_on(job, std::move(hosts));
        if (!demand.exclusive) return;
        Runs& blocked = blocked_[&job];
        for (size_t node : job.placement->nodes) {
            for (const Run& run : overlap({nodes_->hosts_of(node)})) blocked.push_back(run);
        }
        take(blocked);
    }

    Known& known_of(Request request) {
        auto number = static_cast<size_t>(request.demand);
        if (number >= known_.size()) known_.resize(number + 1);
        return known_[number];
    }

    bool note_unfit(Request request) {
        known_of(request).unfit_since = nb_given_;
        return false;
    }

    // Whether it is known that there is no place for such a job, because another one has found none since things changed.
    bool finds_none(Request request, double estimate, const Reservation* beside) {
        const Known& known = known_of(request);
        if (known.unfit_since == nb_given_) return true;
        return beside && beside->ends_after(estimate) && known.refused_beside == beside->arrival &&
               known.refused_since == nb_changes_ && !(counts_all_ends && beside->is_late());
    }

    // Whether the job with a reservation has a place at the shadow time although another one has this.
    bool leaves_place(const Reservation& beside, const Placement& placement, const Demand& demand) const {
        return beside.at_shadow_time.free.attempt([&](FreeAmounts& future) {
            nodes_->take(future, placement, demand);
            bool leaves = nodes_->fits(nodes_->demand(beside.request), future);
            nodes_->give(future, placement, demand);
            return leaves;
        });
    }

    // A place that is free now and stays free when the job with a reservation starts where it would now go.
    std::optional<Placement> place_beside(const Reservation& beside, const Demand& demand) const {
        const Demand& waiting = nodes_->demand(beside.request);
        FreeAmounts left = *beside.at_shadow_time.free;
        std::optional<Placement> place = nodes_->place(waiting, left);
        if (!place) return std::nullopt;
        nodes_->take(left, *place, waiting);
        for (size_t each = 0; each < left.nodes.size(); ++each) left.nodes[each] = std::min(left.nodes[each], free_.nodes[each]);
        left.licences = free_.licences;
        left.by_cores.clear();
        return nodes_->place(demand, left);
    }
};

}  // namespace batsched
