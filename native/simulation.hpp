// A simulation of plain jobs on equal hosts, with a policy outside that is asked what to do (specification:
// batsched_py/simulator, batsched_py/ledger and batsched_py/decision).
//
// The way of a job: `submit` puts it into the queue, the policy calls `start`, which takes hosts for it; when the
// policy has decided all, `begin` puts its end into the agenda, and `end` gives the hosts back and writes its row.
#pragma once
#include <deque>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "agenda.hpp"
#include "log.hpp"
#include "machines.hpp"
#include "node_profile.hpp"
#include "plan.hpp"
#include "registry.hpp"
#include "rows.hpp"
#include "running.hpp"
#include "users.hpp"

namespace batsched {

// By when the head of a queue will start, and what it will leave free then.
struct Reservation {
    int64_t arrival;     // of the job it is for; 0 if that does not wait
    double now;          // when it was asked for
    double shadow_time;  // infinite where the job can never start
    Request extra;

    // On a machine of nodes: what the job asks for, and what will be free at the shadow time, before it starts.
    std::shared_ptr<const Nodes> nodes = nullptr;
    const Demand* demand = nullptr;
    SharedAmounts future = {};

    // Whether a job that starts now and runs for so long would still run at the shadow time.
    bool ends_after(double estimate) const { return !(now + estimate <= shadow_time); }

    // Whether such a job would not delay it.
    bool allows(Request request, double estimate) const { return !ends_after(estimate) || request.fits(extra); }

    // A job was started beside it.
    void admit(const Job& job) {
        if (!(job.expected_end > shadow_time)) return;
        extra = extra - Request{job.nb_hosts};
        if (nodes && nodes->has_placed(job)) nodes->take(future.own(), *job.placement, nodes->demand(job.request));
    }
};

struct Progress {
    JobPtr job;
    double done;
};

// Jobs that were killed, and how far those had come that had not ended by themselves.
struct Killed {
    std::vector<std::string> ids;
    std::vector<Progress> progress;
};

// What happens to a job on its hosts.
enum class Step : uint8_t { kLaunches, kBegins, kEnds };

// Something that the policy may want to know.
struct Told {
    enum class Kind : uint8_t { kSubmitted, kEnded, kCalled, kNoMoreJobs, kKilled } kind;
    double time;
    JobPtr job;
    int64_t return_code = 0;
    std::shared_ptr<Killed> killed = nullptr;
};

// Something that was decided and is to be carried out.
struct Effect {
    enum class Kind : uint8_t { kStart, kReject, kKill, kCall, kNote, kNothing } kind;
    double time;  // when it was decided, or of a call when it is to come
    JobPtr job;
    std::vector<std::string> texts = {};  // the identifiers of jobs, or one and a note
    Handle decision = {};                 // what the policy said, where it is none of these
};

class Simulation {
public:
    Agenda agenda;
    Queue queue;
    Running running;
    FreeHosts free;
    Machines machines;
    Rows rows;
    Registry registry;
    Users users;
    std::shared_ptr<Nodes> nodes;  // if hosts are the cores of nodes
    std::function<int32_t(Job&)> demand_of;  // the number of what a job asks of nodes
    bool only_starts_jobs = false;  // the policy: it need not be asked when no job fits
    std::function<double(Job&)> estimate;  // how long a job is expected to run, if not for its walltime
    std::deque<std::function<void(const JobPtr&)>> on_end;  // hear of each job that ends
    double launch_time = 0, cleaning_time = 0;  // seconds before and after a job, in which it has its hosts
    std::function<void(const Job&, Step)> trace;  // hears what happens to jobs on their hosts, if somebody wants to

    Simulation(int64_t hosts, double speed) : free(hosts), machines(hosts), speed_(speed) {}

    void add_source(std::unique_ptr<JobSource> source) { sources_.push_back({std::move(source), nullptr}); }

    void set_nodes(std::shared_ptr<Nodes> given) {
        nodes = std::move(given);
        shadow_ = {kNobody, SharedAmounts(nodes->free)};
    }

    void accept_users() {
        has_users_ = registry.dynamic = registry.accepts = users_are_expected_ = true;
    }

    // Lets everything happen until the policy is to be asked; whether it is, or else all is over.
    bool advance() {
        if (!begun_) {
            begun_ = is_first_turn_ = true;
            nb_settled_changes_ = nb_changes_;
            plan_submissions();
            if (open_turn()) return true;
        } else if (in_turn_ && go_on_after_decisions()) {
            return true;
        }
        while (!agenda.empty() || news_) {
            if (!(news_ && ready_ && agenda.instant_is_over())) {
                happen(agenda.next());
                continue;
            }
            news_ = false;
            acknowledged_.clear();
            if (open_turn()) return true;
        }
        return false;
    }

    // --- what a policy sees ------------------------------------------------------------------------------

    double now() const { return agenda.now; }
    bool quiet() const { return nb_changes_ == nb_settled_changes_; }
    const std::vector<Told>& told() const { return told_; }
    std::span<const Effect> decided() const {  // since the policy was last asked; not what users do
        return std::span(effects_).subspan(has_users_ ? std::min(nb_effects_before_, effects_.size()) : 0);
    }
    int64_t epoch() const { return epoch_; }
    const JobPtr& last_submitted() const { return last_submitted_; }

    JobPtr find(std::string_view id) const {
        auto found = live_.find(id);
        return found == live_.end() ? nullptr : found->second;
    }

    bool could_grant(Request request) const {
        return request.hosts > 0 && request.fits({machines.count}) && (!nodes || nodes->could_grant(request));
    }
    bool fits(const Job& job) const { return job.request.fits(free.available()) && (!nodes || nodes->fits(job)); }

    // Of a job that asks for this; `arrival` tells which job, if it waits.
    Reservation reservation(Request request, int64_t arrival) {
        if (nodes) return node_reservation(request, arrival);
        Request available = free.available();
        if (!could_grant(request)) return {arrival, now(), INFINITY, {}};
        if (request.fits(available)) return {arrival, now(), now(), available - request};
        for (const Running::Place& place : running.by_end()) {
            available = available + Request{place.job->nb_hosts};
            if (request.fits(available)) {
                return {arrival, now(), std::max(place.expected_end, now()), available - request};
            }
        }
        return {arrival, now(), INFINITY, {}};
    }

    NodeProfile node_profile() const { return {*nodes, running, now(), kTick}; }

    // Whether it is known that there is no place for such a job, because another one has found none since things changed.
    bool finds_none(Request request, double estimate, const Reservation* beside) const {
        return nodes->is_unfit(request) || (beside && beside->ends_after(estimate) && was_refused(request, *beside));
    }

    // Whether there is a place for a job that does not delay a reservation; if it is started now, it goes there.
    bool finds_place(Job& job, const Reservation* beside) {
        if (finds_none(job.request, job.estimate, beside)) return false;
        std::optional<Placement> placement = nodes->place(job.request);
        if (!placement) return false;
        const Demand& demand = nodes->demand(job.request);
        if (beside && beside->ends_after(job.estimate) && !leaves_place(*beside, *placement, demand)) {
            placement = place_beside(*beside, demand);
            if (!placement || !leaves_place(*beside, *placement, demand)) {
                note_refused(job.request, *beside);
                return false;
            }
        }
        nodes->choose(job, std::move(*placement));
        return true;
    }

    AvailabilityProfile profile() const { return {now(), free.available(), running, kTick}; }

    // Behind which arrival jobs have to be looked at that may start beside a reservation. If nothing has happened but
    // submissions since all were tried, those that would have delayed it still would.
    int64_t tried(const Reservation& reservation) const {
        bool same = reservation.arrival && tried_.arrival == reservation.arrival && tried_.nb_changes == nb_changes_ &&
                    tried_.nb_started == running.nb_started();
        return same ? tried_.last : 0;
    }

    // All jobs up to an arrival were tried, from when there had been so many changes.
    void note_tried(const Reservation& reservation, int64_t nb_changes, int64_t last) {
        tried_ = {reservation.arrival, nb_changes, running.nb_started(), last};
    }
    int64_t nb_changes() const { return nb_changes_; }

    // --- what a policy says ------------------------------------------------------------------------------

    // Runs a waiting job that fits on the free hosts with the lowest numbers.
    void start(const JobPtr& job) {
        if (nodes) {
            job->hosts = nodes->start(*job, free);
            free.take(job->hosts);
        } else {
            job->hosts = free.take_lowest(job->request);
        }
        put_on_hosts(job);
    }

    // Runs a waiting job on these hosts, all of which are free.
    void start_on(const JobPtr& job, Runs hosts) {
        std::string fault = nodes ? nodes->start_on(*job, hosts) : "";
        if (!fault.empty()) throw RuleBroken(fault);
        free.take(hosts);
        job->hosts = std::move(hosts);
        put_on_hosts(job);
    }

    void reject(const JobPtr& job) {
        ++nb_changes_;
        if (job->state == State::kWaiting) queue.remove(*job);
        std::erase(unfit_, job);
        if (nodes) nodes->forget(*job);
        job->state = State::kRejected;
        effects_.push_back({Effect::Kind::kReject, now(), job});
        live_.erase(job->id);
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
            if (nodes) shadow_ = {kNobody, SharedAmounts(nodes->free)};
        }
    }

    void reorder() { ++nb_changes_; }

    // The policy has broken a rule, which ends the simulation even if it takes no notice.
    void break_rule(std::string rule) { broken_rule_ = std::move(rule); }

    // A job is made known that comes from no workload file, and waits.
    void register_job(const JobPtr& job) {
        registry.add_job(*job);
        job->tell_in_ticks();
        submit(job);
    }

    // --- afterwards --------------------------------------------------------------------------------------

    // How many jobs wait, and the first of them.
    std::pair<size_t, JobPtr> left_waiting() const {
        return {queue.size() + unfit_.size(), !queue.empty() ? queue.head() : unfit_.empty() ? nullptr : unfit_[0]};
    }

private:
    static constexpr double kTick = 1e-6;
    static constexpr double kLeastCall = 1e-5;  // Batsim stretches shorter waits for a call to this

    struct Source {
        std::unique_ptr<JobSource> jobs;
        JobPtr next;
    };

    struct Tried {
        int64_t arrival = -1, nb_changes = -1, nb_started = -1, last = 0;
        bool operator==(const Tried&) const = default;
    };

    // The reservation that was last made on nodes, which holds until something changes.
    struct Reserved {
        int64_t nb_changes = -1, nb_started = -1;
        double end = 0;
        Reservation made{-1, 0, 0, {}};
    };

    static inline const Running::Place kNobody{-INFINITY, -1, nullptr};

    // What is free when the running jobs up to this one will have ended; kept from one reservation to the next.
    struct Shadow {
        Running::Place last = kNobody;
        SharedAmounts free;
    };

    double speed_;
    std::vector<Source> sources_;
    Source* next_source_ = nullptr;
    JobPtr last_submitted_;
    std::unordered_map<std::string_view, JobPtr> live_;  // that wait or run
    std::vector<JobPtr> unfit_;  // that wait, and could never be granted what they ask for
    std::unordered_map<std::string, std::string> early_notes_;  // on jobs that are to come
    std::vector<Told> told_;
    std::vector<Effect> effects_, late_effects_, carried_out_;
    std::unordered_set<std::string> acknowledged_;  // jobs that were killed since something was last told
    std::deque<std::shared_ptr<Killed>> to_acknowledge_;  // when the hosts of the jobs are clean
    std::unordered_map<std::string, std::unordered_set<std::string>> users_profiles_;
    size_t nb_effects_before_ = 0;  // the policy was asked
    int64_t nb_changes_ = 0;        // other than submissions
    int64_t nb_settled_changes_ = -1;
    int64_t epoch_ = 0;  // how often hosts may have become free, or turns of the policy were over
    Tried tried_;
    Reserved reserved_;
    Shadow shadow_;
    std::vector<Tried> refused_;  // for each demand: when it would have delayed a reservation
    std::string broken_rule_;
    bool begun_ = false, is_first_turn_ = false, in_turn_ = false;
    bool news_ = false, ready_ = true;
    bool has_users_ = false, users_are_expected_ = false;

    // --- nodes -------------------------------------------------------------------------------------------

    Reservation node_reservation(Request request, int64_t arrival) {
        if (!could_grant(request)) return {arrival, now(), INFINITY, {}, nodes};
        if (!arrival || reserved_.made.arrival != arrival || reserved_.nb_changes != nb_changes_ ||
            reserved_.nb_started != running.nb_started()) {
            make_node_reservation(request, arrival);
        }
        Reservation made = reserved_.made;
        made.now = now();
        made.shadow_time = std::max(reserved_.end, now());
        return made;
    }

    // The more jobs have ended, the more fits. So the number of jobs after whose ends the job fits is looked for around
    // that of the reservation before, in growing steps and then by halves.
    void make_node_reservation(Request request, int64_t arrival) {
        const Demand& demand = nodes->demand(request);
        const auto& by_end = running.by_end();
        size_t most = by_end.size();
        size_t ended = static_cast<size_t>(std::upper_bound(by_end.begin(), by_end.end(), shadow_.last) - by_end.begin());
        auto after = [&](size_t count) {
            for (; ended < count; ++ended) change_shadow(*by_end[ended].job, true);
            for (; ended > count; --ended) change_shadow(*by_end[ended - 1].job, false);
            return nodes->fits(demand, *shadow_.free);
        };
        size_t low = 0, high = most + 1;  // not after fewer than `low`; after `high`, unless that is more than all
        if (after(ended)) {
            high = ended;
            for (size_t step = 1; high; step *= 2) {
                size_t count = high - std::min(step, high);
                if (!after(count)) {
                    low = count + 1;
                    break;
                }
                high = count;
            }
        } else {
            low = ended + 1;
            for (size_t step = 1; low <= most; step *= 2) {
                size_t count = std::min(low + step - 1, most);
                if (after(count)) {
                    high = count;
                    break;
                }
                low = count + 1;
            }
        }
        while (low < high && low <= most) {
            size_t middle = low + (high - low) / 2;
            if (after(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        bool never = low > most;
        after(never ? most : low);
        shadow_.last = ended ? Running::Place{by_end[ended - 1].expected_end, by_end[ended - 1].number, nullptr} : kNobody;
        int64_t extra = never ? 0 : nodes->nb_cores(*shadow_.free) - request.hosts;
        reserved_ = {nb_changes_, running.nb_started(), never ? INFINITY : ended ? shadow_.last.expected_end : -INFINITY,
                     {arrival, 0, 0, {extra}, nodes, &demand, shadow_.free}};
    }

    // A job beyond the last one that has ended at the shadow time takes its place now, or leaves it.
    void keep_shadow(const Job& job, bool ends) {
        if (shadow_.last < Running::Place{job.expected_end, job.number, nullptr}) change_shadow(job, ends);
    }

    // The reservation that was made with it is over then.
    void change_shadow(const Job& job, bool ends) {
        reserved_ = {};
        FreeAmounts& amounts = shadow_.free.own();
        const Placement& placement = *job.placement;
        if (ends) {
            nodes->give(amounts, placement, nodes->demand(job.request));
        } else {
            nodes->take(amounts, placement, nodes->demand(job.request));
        }
    }

    Tried state_beside(const Reservation& beside) const { return {beside.arrival, nb_changes_, running.nb_started()}; }

    // Whether a job of the same demand would have delayed a reservation, and nothing has changed since.
    bool was_refused(Request request, const Reservation& beside) const {
        auto number = static_cast<size_t>(request.demand);
        return number < refused_.size() && refused_[number] == state_beside(beside);
    }

    void note_refused(Request request, const Reservation& beside) {
        auto number = static_cast<size_t>(request.demand);
        if (number >= refused_.size()) refused_.resize(number + 1);
        refused_[number] = state_beside(beside);
    }

    // Whether the job with a reservation has a place at the shadow time although another one has this.
    bool leaves_place(const Reservation& beside, const Placement& placement, const Demand& demand) const {
        return beside.future.attempt([&](FreeAmounts& future) {
            nodes->take(future, placement, demand);
            bool leaves = nodes->fits(*beside.demand, future);
            nodes->give(future, placement, demand);
            return leaves;
        });
    }

    // A place that is free now and stays free when the job with a reservation starts where it would now go.
    std::optional<Placement> place_beside(const Reservation& beside, const Demand& demand) const {
        std::optional<Placement> place = nodes->place(*beside.demand, *beside.future);
        if (!place) return std::nullopt;
        FreeAmounts left = *beside.future;
        nodes->take(left, *place, *beside.demand);
        for (size_t each = 0; each < left.nodes.size(); ++each) left.nodes[each] = std::min(left.nodes[each], nodes->free.nodes[each]);
        left.licences = nodes->free.licences;
        left.by_cores.clear();
        return nodes->place(demand, left);
    }

    // --- turns -------------------------------------------------------------------------------------------

    bool open_turn() {
        if (has_users_) {
            registry.next_reply();
            let_users_act();
        }
        return ask_or_go_on();
    }

    // Whether the policy is to be asked.
    bool ask_or_go_on() {
        if (only_starts_jobs && !queue.some_fit(free.available())) {
            close_turn();
            return false;
        }
        nb_effects_before_ = effects_.size();
        return in_turn_ = true;
    }

    // The policy has decided: whether it is to be asked again, because that made users act at once.
    bool go_on_after_decisions() {
        in_turn_ = false;
        check_unbroken();
        ++epoch_;
        nb_settled_changes_ = nb_changes_;
        queue.settle();
        told_.clear();
        if (has_users_) {
            tell_users(nb_effects_before_);
            if (users.due(now())) {
                let_users_act();
                return ask_or_go_on();
            }
        }
        close_turn();
        return false;
    }

    void check_unbroken() const {
        if (!broken_rule_.empty()) throw RuleBroken(broken_rule_);
    }

    void close_turn() {
        if (has_users_) say_what_users_wait_for();
        if (is_first_turn_) {
            is_first_turn_ = false;
            while (!agenda.instant_is_over()) happen(agenda.next());
            carry_out();
        } else if (!effects_.empty() || agenda.now > agenda.clock) {
            carry_out();
        }
    }

    void carry_out() {
        if (!news_) {
            while (agenda.notice_is_due()) happen(agenda.next());
        }
        if (agenda.now > agenda.clock) {
            ready_ = false;
            late_effects_ = std::exchange(effects_, {});
            agenda.put(agenda.now, Action::kCarryOut);
        } else {
            carried_out_.swap(effects_);
            apply(carried_out_);
        }
    }

    void apply(std::vector<Effect>& effects) {
        for (Effect& effect : effects) {
            switch (effect.kind) {
                case Effect::Kind::kStart: launch(*effect.job); break;
                case Effect::Kind::kReject: rows.rejected(*effect.job); break;
                case Effect::Kind::kKill: kill_now(effect.texts); break;
                case Effect::Kind::kCall: agenda.put(std::max(effect.time, agenda.clock + kLeastCall), Action::kCall); break;
                case Effect::Kind::kNote:
                    (effect.job ? effect.job->note : early_notes_[effect.texts[0]]) = std::move(effect.texts[1]);
                    break;
                case Effect::Kind::kNothing: break;
            }
        }
        effects.clear();
    }

    // --- what happens ------------------------------------------------------------------------------------

    void happen(const Agenda::Entry& entry) {
        switch (entry.action) {
            case Action::kSubmit: submit_next(); break;
            case Action::kBegin: begin(*entry.job); break;
            case Action::kEnd: {
                Job& job = *entry.job;
                if (!job.ends_by_itself) {
                    end(job, State::kWalltimeReached, -1);
                } else if (job.profile.return_code) {
                    end(job, State::kFailed, job.profile.return_code);
                } else {
                    end(job, State::kSuccess, 0);
                }
                break;
            }
            case Action::kLeave: leave(*entry.job); break;
            case Action::kAcknowledge: {
                tell({Told::Kind::kKilled, now(), nullptr, 0, std::move(to_acknowledge_.front())});
                to_acknowledge_.pop_front();
                break;
            }
            case Action::kCall: tell({Told::Kind::kCalled, now(), nullptr}); break;
            case Action::kCarryOut: {
                std::vector<Effect> effects = std::exchange(late_effects_, {});
                apply(effects);
                ready_ = true;
                break;
            }
            case Action::kNoMoreJobs: tell({Told::Kind::kNoMoreJobs, now(), nullptr}); break;
        }
    }

    void tell(Told told) {
        news_ = true;
        told_.push_back(std::move(told));
    }

    void plan_submissions() {
        if (sources_.empty()) return;
        for (Source& source : sources_) source.next = source.jobs->next();
        plan_next_submission(0.0);
    }

    void plan_next_submission(double time) {
        next_source_ = nullptr;
        for (Source& source : sources_) {
            if (source.next && (!next_source_ || source.next->submission < next_source_->next->submission)) {
                next_source_ = &source;
            }
        }
        if (next_source_) {
            agenda.put(std::max(next_source_->next->submission, time), Action::kSubmit);
        } else {
            agenda.put(time, Action::kNoMoreJobs);
        }
    }

    // The jobs of one instant, workload by workload.
    void submit_next() {
        double time = next_source_->next->submission;
        for (Source& source : sources_) {
            while (source.next && source.next->submission == time) {
                last_submitted_ = std::exchange(source.next, nullptr);
                hear_submission(last_submitted_);
                source.next = source.jobs->next();
            }
        }
        plan_next_submission(time);
    }

    void hear_submission(const JobPtr& job) {
        job->tell_in_ticks();
        if (!early_notes_.empty()) {
            auto note = early_notes_.extract(job->id);
            if (note) job->note = std::move(note.mapped());
        }
        tell({Told::Kind::kSubmitted, now(), job});
        submit(job);
        reject_unfit();
    }

    void submit(const JobPtr& job) {
        live_.emplace(job->id, job);
        if (nodes) job->request.demand = demand_of(*job);
        if (could_grant(job->request)) {
            queue.append(job, estimate ? estimate(*job) : job->told_walltime);
        } else {
            unfit_.push_back(job);
        }
    }

    // What no state of the machine could ever run is rejected without asking the policy.
    void reject_unfit() {
        while (!unfit_.empty()) reject(JobPtr(unfit_.front()));
    }

    void put_on_hosts(const JobPtr& job) {
        job->nb_hosts = count_hosts(job->hosts);
        if (nodes) free.take(nodes->block(*job, free));
        JobPtr kept = job;  // the queue may have held the last reference
        if (job->state == State::kWaiting && could_grant(job->request)) queue.remove(*kept);
        running.add(kept, now());
        if (nodes) keep_shadow(*kept, false);
        effects_.push_back({Effect::Kind::kStart, now(), std::move(kept)});
    }

    void launch(Job& job) {
        if (!(launch_time > 0)) return begin(job);
        job.is_launching = true;
        job.agenda_number = agenda.put(agenda.clock + launch_time, Action::kBegin, &job);
        if (trace) trace(job, Step::kLaunches);
    }

    void begin(Job& job) {
        job.is_launching = false;
        double seconds = std::isnan(job.seconds) ? job.profile.seconds(speed_) : job.seconds;
        job.begun = agenda.clock;
        job.ends_by_itself = job.profile.fits(seconds, job.walltime);
        machines.occupy(job.nb_hosts, agenda.clock);
        if (trace) trace(job, Step::kBegins);
        job.agenda_number = agenda.put(agenda.clock + (job.ends_by_itself ? seconds : job.walltime), Action::kEnd, &job);
    }

    void end(Job& job, State outcome, int64_t return_code) {
        machines.vacate(job.hosts, job.nb_hosts, agenda.clock);
        job.ended = agenda.clock;
        job.outcome = outcome;
        job.return_code = return_code;
        if (trace) trace(job, Step::kEnds);
        if (!(cleaning_time > 0)) return leave(job);
        job.is_cleaned_up = true;
        agenda.put(agenda.clock + cleaning_time, Action::kLeave, &job);
    }

    // Its hosts are free again.
    void leave(Job& job) {
        JobPtr ended = running.remove(job);
        if (nodes) keep_shadow(job, true);
        job.state = job.outcome;
        rows.finished(job, job.ended);
        ++nb_changes_;
        ++epoch_;
        free.give(job.hosts);
        if (nodes) free.give(nodes->end(job));
        live_.erase(job.id);
        tell({Told::Kind::kEnded, now(), ended, job.return_code});
        for (size_t place = 0, count = on_end.size(); place < count; ++place) on_end[place](ended);
        check_unbroken();
        users.job_ended(job, now());
    }

    // Kills jobs; one that has ended by itself meanwhile is acknowledged without progress.
    void kill_now(const std::vector<std::string>& ids) {
        auto killed = std::make_shared<Killed>();
        for (const std::string& id : ids) {
            if (!acknowledged_.insert(id).second) continue;
            killed->ids.push_back(id);
            JobPtr job = find(id);
            if (!job || job->state != State::kRunning || job->is_cleaned_up) continue;
            if (job->is_launching) {
                agenda.cancel(job->agenda_number);
                begin(*job);
            }
            killed->progress.push_back({job, progress(*job)});
        }
        for (const Progress& one : killed->progress) {
            agenda.cancel(one.job->agenda_number);
            end(*one.job, State::kKilled, one.job->profile.killed_code());
        }
        if (killed->ids.empty()) return;
        if (!(cleaning_time > 0)) return tell({Told::Kind::kKilled, now(), nullptr, 0, killed});
        to_acknowledge_.push_back(std::move(killed));
        agenda.put(agenda.clock + cleaning_time, Action::kAcknowledge);
    }

    double progress(const Job& job) const {
        double seconds = std::isnan(job.seconds) ? job.profile.seconds(speed_) : job.seconds;
        return seconds > 0 ? std::min((agenda.clock - job.begun) / seconds, 1.0) : 1.0;
    }

    static void check_note(const std::string& text) {
        if (text.find('"') != text.npos) throw RuleBroken("metadata may not contain the character \"");
    }

    // --- users -------------------------------------------------------------------------------------------

    void let_users_act() {
        while (users.due(now())) {
            Actions actions = users.act(now());
            for (const JobPtr& job : actions.submissions) {
                take_submission(job);
                reject_unfit_of_users();
            }
            for (Change& change : actions.changes) {
                take_change(change);
                reject_unfit_of_users();
            }
        }
    }

    void reject_unfit_of_users() {
        if (unfit_.empty()) return;
        size_t before = effects_.size();
        reject_unfit();
        tell_users(before);
    }

    // Makes a job known that a user submits, and its profile before it if that is new.
    void take_submission(const JobPtr& job) {
        job->submission = now();
        if (!(job->walltime > 0)) {
            throw RuleBroken("RegisterJob " + job->id + ": a walltime of " + general(job->walltime) + " s makes no sense");
        }
        job->walltime = to_tick(job->walltime);
        std::string workload(workload_in(job->id));
        if (users_profiles_[workload].insert(job->profile.name).second) {
            broken_by("RegisterProfile", [&] {
                registry.add_profile(workload, job->profile);
                const auto& [name, fault] = std::tie(job->profile.name, job->profile.fault);
                if (!fault.empty()) throw RuleBroken("workload '" + workload + "': profile '" + name + "' " + fault);
            });
        }
        broken_by("RegisterJob " + job->id, [&] { register_job(job); });
        broken_by("SetJobMetadata " + job->id, [&] { check_note(job->note); });
        do_nothing();
    }

    // A job that is taken back is rejected if it waits and killed if it runs.
    void take_change(Change& change) {
        Job* job = users.outstanding(change.job_id);
        if (!job) return;
        if (!change.note.empty() || !change.withdraws) {
            broken_by("SetJobMetadata " + change.job_id, [&] { note(change.job_id, std::move(change.note)); });
        }
        if (!change.withdraws) return;
        if (job->state == State::kRunning) {
            kill({change.job_id});
        } else {
            JobPtr kept = find(change.job_id);
            reject(kept);
            users.job_ended(*kept, now());
        }
    }

    template <class Function>
    static void broken_by(const std::string& decision, Function function) {
        try {
            function();
        } catch (const RuleBroken& broken) {
            throw RuleBroken(decision + ": " + broken.what());
        }
    }

    // Users hear which of their jobs were started and rejected.
    void tell_users(size_t first) {
        for (size_t place = first; place < effects_.size(); ++place) {
            Effect& effect = effects_[place];
            if (effect.kind == Effect::Kind::kReject) users.job_ended(*effect.job, effect.time);
            if (effect.kind == Effect::Kind::kStart && users.hears_starts()) users.job_started(*effect.job, effect.job->start);
        }
    }

    // When they want to be called next, or that nobody will ever submit again.
    void say_what_users_wait_for() {
        if (users_are_expected_ && users.done()) {
            users_are_expected_ = false;
            registry.accepts = false;
            do_nothing();
            return;
        }
        double time = users.call_to_ask(now());
        if (time != INFINITY) call_at(time);
    }
};

}  // namespace batsched
