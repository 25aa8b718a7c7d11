// What a policy sees, and what it may say (specification: batsched_py/ledger/ledger.py).
//
// The way of a job: it joins the queue when it is submitted; `start` takes hosts for it, and notes that it is to be begun.
#pragma once
#include <functional>
#include <span>
#include <unordered_map>

#include "agenda.hpp"
#include "free.hpp"
#include "holds.hpp"
#include "registry.hpp"
#include "use.hpp"

namespace batsched {

// Something that was decided and is to be carried out.
struct Effect {
    enum class Kind : uint8_t { kStart, kReject, kKill, kCall, kNote, kSwitch, kNothing } kind;
    double time;  // when it was decided, or of a call when it is to come
    JobPtr job;
    std::vector<std::string> texts = {};  // the identifiers of jobs, or one and a note
    Handle decision = {};                 // what the policy said, where it is none of these
};

class Ledger {
public:
    Agenda agenda;
    Queue queue;
    Running running;
    std::unique_ptr<FreeHosts> free;
    Registry registry;
    std::unique_ptr<Holds> holds;            // if any jobs wait for others
    std::function<int32_t(Job&)> demand_of;  // the number of what a job asks of nodes, if there are any
    std::function<double(Job&)> estimate;    // how long a job is expected to run, if not for its walltime
    std::vector<std::function<void(Job&)>> on_start;  // hear of each job that starts
    UserNumbers user_numbers;

    explicit Ledger(int64_t hosts) : free(std::make_unique<FreeHosts>(hosts)) {}

    // --- what a policy sees ------------------------------------------------------------------------------

    double now() const { return agenda.now; }
    bool quiet() const { return nb_changes_ == nb_settled_changes_; }
    int64_t nb_changes() const { return nb_changes_; }
    int64_t epoch() const { return epoch_; }
    std::span<const Effect> decided() const {  // since the policy was last asked; not what users do
        return std::span(effects_).subspan(std::min(nb_effects_before_, effects_.size()));
    }

    JobPtr find(std::string_view id) const {
        auto found = live_.find(id);
        return found == live_.end() ? nullptr : found->second;
    }

    bool fits(const Job& job) const { return free->fits(job.request, job.placement.get()); }

    Reservation reservation(Request request, int64_t arrival) {
        return free->reservation(request, arrival, now(), running);
    }

    // Behind which arrival jobs have to be looked at that may start beside a reservation. If nothing has happened but
    // submissions since all were tried, those that would have delayed it still would.
    int64_t tried(const Reservation& reservation) const {
        bool same = reservation.arrival && tried_.arrival == reservation.arrival && tried_.nb_changes == nb_changes_ &&
                    tried_.nb_started == running.nb_started();
        return same && !(free->counts_all_ends && reservation.is_late()) ? tried_.last : 0;
    }

    // All jobs up to an arrival were tried, from when there had been so many changes.
    void note_tried(const Reservation& reservation, int64_t nb_changes, int64_t last) {
        tried_ = {reservation.arrival, nb_changes, running.nb_started(), last};
    }

    // How many jobs wait, and the first of them.
    std::pair<size_t, JobPtr> left_waiting() const {
        return {queue.size() + unfit_.size(), !queue.empty() ? queue.head() : unfit_.empty() ? nullptr : unfit_[0]};
    }

    // --- what a policy says ------------------------------------------------------------------------------

    // Runs a waiting job that fits on the free hosts with the lowest numbers.
    void start(const JobPtr& job) {
        free->place(*job);
        started(job);
    }

    // Runs a waiting job on these hosts, all of which are free.
    void start_on(const JobPtr& job, Runs hosts) {
        free->place_on(*job, std::move(hosts));
        started(job);
    }

    void reject(const JobPtr& job) {
        ++nb_changes_;
        if (job->state == State::kWaiting) queue.remove(*job);
        std::erase(unfit_, job);
        job->forget_place();
        job->state = State::kRejected;
        effects_.push_back({Effect::Kind::kReject, now(), job});
        live_.erase(job->id);
        if (hear_of(*job)) holds->over(*job, false);
    }

    void kill(std::vector<std::string> ids, Handle decision = {}) {
        effects_.push_back({Effect::Kind::kKill, now(), nullptr, std::move(ids), std::move(decision)});
    }
    void call_at(double time, Handle decision = {}) {
        effects_.push_back({Effect::Kind::kCall, time, nullptr, {}, std::move(decision)});
    }

    // Leaves a note on a job that may still be to come.
    void note(const std::string& id, std::string text, Handle decision = {}) {
        check_note(text);
        effects_.push_back({Effect::Kind::kNote, now(), find(id), {id, std::move(text)}, std::move(decision)});
    }

    void do_nothing(Handle decision = {}) {
        effects_.push_back({Effect::Kind::kNothing, now(), nullptr, {}, std::move(decision)});
    }

    void expect(Job& job, double run_time) {
        ++nb_changes_;
        if (job.state == State::kWaiting) {
            queue.expect(job, run_time);
        } else {
            running.expect(job, run_time);
            free->ends_change();
        }
    }

    void reorder() { ++nb_changes_; }

    // The policy has broken a rule, which ends the simulation even if it takes no notice.
    void break_rule(std::string rule) { broken_rule_ = std::move(rule); }

    // A job is made known that comes from no workload file, and waits.
    void register_job(const JobPtr& job, const Profile* profile = nullptr) {
        registry.add_job(*job, profile);
        job->tell_in_ticks();
        submit(job);
    }

    // A job that was held joins the queue.
    void join(const JobPtr& job) { queue.append(job, estimate ? estimate(*job) : job->told_walltime); }

protected:
    std::vector<Effect> effects_;
    size_t nb_effects_before_ = 0;  // the policy was asked
    int64_t nb_changes_ = 0;        // other than submissions
    int64_t nb_settled_changes_ = -1;
    int64_t epoch_ = 0;  // how often hosts may have become free, or turns of the policy were over
    std::unordered_map<std::string_view, JobPtr> live_;  // that wait or run
    std::vector<JobPtr> unfit_;  // that wait, and could never be granted what they ask for

    // Whether the job is not held.
    bool submit(const JobPtr& job) {
        live_.emplace(job->id, job);
        if (demand_of) job->request.demand = demand_of(*job);
        bool could_be_granted = free->could_grant(job->request);
        if (hear_of(*job) && holds->submitted(*job, could_be_granted)) return false;
        if (could_be_granted) {
            join(job);
        } else {
            unfit_.push_back(job);
        }
        return true;
    }

    bool hear_of(const Job& job) const { return holds && holds->hear_of(job); }

    // What no state of the machine could ever run is rejected without asking the policy.
    void reject_unfit() {
        while (!unfit_.empty()) reject(JobPtr(unfit_.front()));
    }

    // Nobody knows a job any more that has ended.
    JobPtr forget(Job& job) {
        JobPtr ended = running.remove(job);
        free->ended(job);
        live_.erase(job.id);
        ++nb_changes_;
        ++epoch_;
        return ended;
    }

    void check_unbroken() const {
        if (!broken_rule_.empty()) throw RuleBroken(broken_rule_);
    }

    static void check_note(const std::string& text) {
        if (text.find('"') != text.npos) throw RuleBroken("metadata may not contain the character \"");
    }

private:
    struct Tried {
        int64_t arrival = -1, nb_changes = -1, nb_started = -1, last = 0;
    };

    Tried tried_;
    std::string broken_rule_;

    void started(const JobPtr& job) {
        JobPtr kept = job;  // the queue may have held the last reference
        if (job->state == State::kWaiting && free->could_grant(job->request)) queue.remove(*kept);
        if (hear_of(*kept)) holds->started(*kept);
        running.add(kept, now());
        free->started(*kept);
        for (auto& hear : on_start) hear(*kept);
        effects_.push_back({Effect::Kind::kStart, now(), std::move(kept)});
    }
};

}  // namespace batsched
