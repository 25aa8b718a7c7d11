// A simulation of plain jobs, with a policy outside that is asked what to do (specification:
// batsched_py/simulator and batsched_py/decision).
//
// The way of a job: `submit` puts it into the queue, the policy calls `start`, which takes hosts for it; when the
// policy has decided all, `begin` puts its end into the agenda, and `end` gives the hosts back and writes its row.
#pragma once
#include <deque>
#include <unordered_set>

#include "energy.hpp"
#include "ledger.hpp"
#include "log.hpp"
#include "machines.hpp"
#include "power_states.hpp"
#include "restarts.hpp"
#include "rows.hpp"
#include "users.hpp"

namespace batsched {

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

// Something that happens from outside.
struct Outside {
    enum class Kind : uint8_t { kGo, kCome, kOther } kind;
    double time;
    Runs hosts;  // that go away or come back
    Handle event;
};

// An event from outside makes no sense.
struct EventFault : std::runtime_error {
    using runtime_error::runtime_error;
};

// Something that the policy may want to know.
struct Told {
    enum class Kind : uint8_t { kSubmitted, kEnded, kCalled, kNoMoreJobs, kKilled, kOutside, kNoMoreOutside } kind;
    double time;
    JobPtr job;
    int64_t return_code = 0;
    std::shared_ptr<Killed> killed = nullptr;
    std::shared_ptr<Outside> outside = nullptr;
};

class Simulation : public Ledger {
public:
    Machines machines;
    Speeds speeds;
    std::unique_ptr<EnergyTrace> energy;  // if anybody wants to know
    std::unique_ptr<PowerStates> power_states;  // if hosts may sleep
    Rows rows;
    Lines states;  // of machines, over time
    Users users;
    Restarts restarts;
    bool only_starts_jobs = false;  // the policy: it need not be asked when no job fits
    std::deque<std::function<void(const JobPtr&)>> on_end;  // hear of each job that ends
    double launch_time = 0, cleaning_time = 0;  // seconds before and after a job, in which it has its hosts
    bool late_jobs_stay = false;  // walltimes are estimates only
    std::function<void(const Job&, Step)> trace;  // hears what happens to jobs on their hosts, if somebody wants to

    Simulation(int64_t hosts, double speed) : Ledger(hosts), machines(hosts), speeds(speed) {}

    // What happens from outside, one after another in the order of time.
    std::function<std::shared_ptr<Outside>()> next_outside;

    void add_source(std::unique_ptr<JobSource> source) { sources_.push_back({std::move(source), nullptr}); }

    void accept_users() {
        has_users_ = registry.dynamic = registry.accepts = users_are_expected_ = rows.busy.is_asked_for = true;
    }

    // Lets everything happen until the policy is to be asked; whether it is, or else all is over.
    bool advance() {
        if (!begun_) {
            begun_ = is_first_turn_ = true;
            nb_settled_changes_ = nb_changes_;
            more_jobs_ = !sources_.empty();
            plan_submissions();
            if (next_outside) {
                turn_of_outside_ = agenda.reserve();
                await_outside(0.0);
            }
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

    // Lets the policy have one more turn, although nothing has happened.
    void ask_again() { news_ = true; }

    // Hands over what is to be written.
    void flush() {
        rows.flush();
        states.flush();
        if (energy) energy->lines.flush();
        if (power_states) power_states->lines.flush();
    }

    // Lets hosts fall asleep, none of which has a job, or wakes hosts that sleep: together those with the same power state.
    void switch_hosts(const Runs& hosts, bool to_sleep) {
        for (Switch& each : power_states->requests(hosts, to_sleep)) {
            ++nb_changes_;
            if (to_sleep) free->fall_asleep(each.hosts);
            power_states->leave(each);
            effects_.push_back({Effect::Kind::kSwitch, now(), nullptr});
        }
    }

    // A job that was held joins the queue, of which the policy hears.
    void join(const JobPtr& job) {
        Ledger::join(job);
        told_.push_back({Told::Kind::kSubmitted, now(), job});
    }

    const std::vector<Told>& told() const { return told_; }
    const JobPtr& last_submitted() const { return last_submitted_; }

private:
    static constexpr double kLeastCall = 1e-5;  // Batsim stretches shorter waits for a call to this

    struct Source {
        std::unique_ptr<JobSource> jobs;
        JobPtr next;
    };

    std::vector<Source> sources_;
    Source* next_source_ = nullptr;
    JobPtr last_submitted_;
    std::shared_ptr<Outside> outside_;  // what happens next from outside
    int64_t turn_of_outside_ = 0;
    std::unordered_map<std::string, std::string> early_notes_;  // on jobs that are to come
    std::vector<Told> told_;
    std::vector<Effect> late_effects_, carried_out_;
    std::unordered_set<std::string> acknowledged_;  // jobs that were killed since something was last told
    std::deque<std::shared_ptr<Killed>> to_acknowledge_;  // when the hosts of the jobs are clean
    bool begun_ = false, is_first_turn_ = false, in_turn_ = false;
    bool news_ = false, ready_ = true;
    bool has_users_ = false, users_are_expected_ = false;
    bool more_jobs_ = false;  // will come from workloads

    // --- turns -------------------------------------------------------------------------------------------

    // Whether the policy is to be asked.
    bool open_turn() {
        if (holds && holds->next_time <= now()) holds->wake();
        if (has_users_) {
            registry.next_reply();
            let_users_act();
        } else if (are_unsettled()) {
            holds->settle();
        }
        return ask_or_go_on();
    }

    bool are_unsettled() const { return holds && holds->are_unsettled; }

    bool ask_or_go_on() {
        if (only_starts_jobs && !queue.some_fit(free->available())) return close_turn();
        if (has_users_) nb_effects_before_ = effects_.size();
        return in_turn_ = true;
    }

    // The policy has decided: whether it is to be asked again, because that made users act at once or let jobs go.
    bool go_on_after_decisions() {
        in_turn_ = false;
        check_unbroken();
        ++epoch_;
        nb_settled_changes_ = nb_changes_;
        queue.settle();
        told_.clear();
        bool joined = are_unsettled() && holds->settle();
        if (has_users_) {
            tell_users(nb_effects_before_);
            joined = joined || users.due(now()) || restarts.is_due();
            if (joined) let_users_act();
        }
        return joined ? ask_or_go_on() : close_turn();
    }

    // Whether the policy is to be asked once more, because jobs wait for others that nobody will submit any more.
    bool close_turn() {
        if (holds && holds->hold_any) {
            bool more_may_come = more_jobs_ || users.will_act();
            if (holds->next_time < INFINITY || !more_may_come) holds->look_after(more_may_come);
        }
        if (has_users_ && are_unsettled()) {
            let_users_act();
            return ask_or_go_on();
        }
        if (has_users_) say_what_users_wait_for();
        if (is_first_turn_) {
            is_first_turn_ = false;
            while (!agenda.instant_is_over()) happen(agenda.next());
            carry_out();
        } else if (!effects_.empty() || agenda.now > agenda.clock) {
            carry_out();
        }
        return false;
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
                case Effect::Kind::kSwitch: begin_switch(); break;
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
            case Action::kOutside: occur(); break;
            case Action::kArrive: arrive(entry.number); break;
            case Action::kCountOff: count_off(entry.number); break;
            case Action::kNoMoreJobs:
                more_jobs_ = false;
                tell({Told::Kind::kNoMoreJobs, now(), nullptr});
                break;
            case Action::kNoMoreOutside: tell({Told::Kind::kNoMoreOutside, now(), nullptr}); break;
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
        if (energy && !last_submitted_) energy->begins(agenda.clock);
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
        rows.busy.came();
        if (!early_notes_.empty()) {
            auto note = early_notes_.extract(job->id);
            if (note) job->note = std::move(note.mapped());
        }
        news_ = true;
        if (submit(job)) told_.push_back({Told::Kind::kSubmitted, now(), job});
        reject_unfit();
    }

    void launch(Job& job) {
        if (!(launch_time > 0)) return begin(job);
        job.phase = Job::Phase::kLaunched;
        job.agenda_number = agenda.put(agenda.clock + launch_time, Action::kBegin, &job);
        if (trace) trace(job, Step::kLaunches);
    }

    void begin(Job& job) {
        job.phase = Job::Phase::kBegun;
        job.seconds = speeds.seconds(job);
        job.begun = agenda.clock;
        job.ends_by_itself = late_jobs_stay || job.profile.fits(job.seconds, job.walltime);
        if (energy) energy->job_starts(job, agenda.clock);
        machines.occupy(job.nb_given_back, agenda.clock);
        if (trace) trace(job, Step::kBegins);
        add_states();
        if (energy) energy->computes(job, speeds, agenda.clock);
        double lasts = job.ends_by_itself ? job.seconds : job.walltime;
        job.agenda_number = agenda.put(agenda.clock + lasts, Action::kEnd, &job);
    }

    void end(Job& job, State outcome, int64_t return_code) {
        machines.vacate(free->those_there(job.hosts), job.nb_given_back, agenda.clock);
        job.phase = Job::Phase::kCleanedUp;
        job.ended = agenda.clock;
        job.outcome = outcome;
        job.return_code = return_code;
        if (trace) trace(job, Step::kEnds);
        add_states();
        if (energy) energy->job_ends(job, agenda.clock);
        if (!(cleaning_time > 0)) return leave(job);
        agenda.put(agenda.clock + cleaning_time, Action::kLeave, &job);
    }

    // How many hosts do what, in machine_states.csv.
    void add_states() {
        if (!states.write) return;
        states.make_room();
        states.add(general(agenda.clock));
        for (int64_t number : {machines.nb(Away::kSleeping), machines.nb(Away::kSwitchingOn),
                               machines.nb(Away::kSwitchingOff), machines.nb_idle(), machines.computing}) {
            states.add(",");
            states.add_integer(number);
        }
        states.end_line();
    }

    // --- power states ------------------------------------------------------------------------------------

    // Hosts leave their power state. They pass through another one, in which they execute one flop.
    void begin_switch() {
        std::shared_ptr<Switch> request = power_states->next_request();
        energy->power_states_change(agenda.clock);
        power_states->add_row(agenda.clock, request->hosts, request->to_sleep ? -2 : -1);
        ++rows.sums.nb_grouped_switches;
        rows.sums.nb_machine_switches += count_hosts(request->hosts);
        std::vector<std::pair<double, HostPool>> ways;  // by how long they are on their way
        for (const auto& [seconds, hosts] : power_states->by_way(*request)) {
            machines.turn(hosts, request->to_sleep ? Away::kSwitchingOff : Away::kSwitchingOn, 0, agenda.clock);
            for (int64_t host : each_host(hosts)) {
                const SleepKind& kind = power_states->kind_of(host);
                energy->meter.put_in_state(host, kind.way(request->to_sleep).power, agenda.clock);
                energy->meter.put_load(host, kind.load, agenda.clock);
            }
            auto same = [seconds = seconds](const auto& group) { return group.first == seconds; };
            auto group = std::find_if(ways.begin(), ways.end(), same);
            if (group == ways.end()) group = ways.insert(group, {seconds, HostPool(0)});
            group->second.give(hosts);
        }
        for (auto& [seconds, hosts] : ways) {
            int64_t number = agenda.put(agenda.clock + seconds, Action::kArrive);
            power_states->on_their_way.emplace(number, Arrival{request, hosts.runs()});
        }
        add_states();
    }

    // Hosts are in the power state they were put into.
    void arrive(int64_t number) {
        Arrival arrival = power_states->take_arrival(number);
        for (int64_t host : each_host(arrival.hosts)) {
            const SleepKind& kind = power_states->kind_of(host);
            energy->meter.put_load(host, 0, agenda.clock);
            energy->meter.put_in_state(host, arrival.request->to_sleep ? kind.asleep : kind.awake, agenda.clock);
        }
        auto after = arrival.request->to_sleep ? std::optional(Away::kSleeping) : std::nullopt;
        machines.turn(arrival.hosts, after, 0, agenda.clock);
        power_states->on_their_way.emplace(agenda.put(agenda.clock, Action::kCountOff), std::move(arrival));
    }

    // This is told when all others have arrived, too.
    void count_off(int64_t number) {
        Arrival arrival = power_states->take_arrival(number);
        Switch& request = *arrival.request;
        request.nb_left -= count_hosts(arrival.hosts);
        if (request.nb_left) return;
        power_states->add_row(agenda.clock, request.hosts, request.pstate);
        energy->power_states_change(agenda.clock);
        add_states();
        ++nb_changes_;
        ++epoch_;
        power_states->reach(request);
        if (!request.to_sleep) free->wake(request.hosts);
        news_ = true;
    }

    // Its hosts are free again.
    void leave(Job& job) {
        JobPtr ended = forget(job);
        job.state = job.outcome;
        rows.finished(job, job.ended);
        tell({Told::Kind::kEnded, now(), ended, job.return_code});
        for (size_t place = 0, count = on_end.size(); place < count; ++place) on_end[place](ended);
        check_unbroken();
        if (!restarts.comes_back(ended)) {
            tell_user_of_end(job);
            if (hear_of(job)) holds->over(job, job.state == State::kSuccess);
        } else if (hear_of(job)) {
            holds->comes_back(job);
        }
    }

    // Kills jobs; one that has ended by itself meanwhile is acknowledged without progress.
    void kill_now(const std::vector<std::string>& ids) {
        auto killed = std::make_shared<Killed>();
        for (const std::string& id : ids) {
            if (!acknowledged_.insert(id).second) continue;
            killed->ids.push_back(id);
            JobPtr job = find(id);
            if (!job || job->state != State::kRunning || job->phase == Job::Phase::kCleanedUp) continue;
            if (job->phase == Job::Phase::kLaunched) {
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
        return job.seconds > 0 ? std::min((agenda.clock - job.begun) / job.seconds, 1.0) : 1.0;
    }

    // --- from outside ------------------------------------------------------------------------------------

    // Plans what happens next from outside, or tells that there is nothing more, when the last of it has happened.
    void await_outside(double last) {
        outside_ = next_outside();
        if (outside_) {
            agenda.put_in_turn(turn_of_outside_, outside_->time, Action::kOutside);
        } else {
            agenda.put_in_turn(turn_of_outside_, last, Action::kNoMoreOutside);
        }
    }

    void occur() {
        std::shared_ptr<Outside> event = outside_;
        await_outside(event->time);
        const Runs &hosts = event->hosts, away = without(hosts, free->there().runs());
        if (event->kind != Outside::Kind::kOther) {
            bool goes = event->kind == Outside::Kind::kGo;
            if (goes && !away.empty()) refuse("machine_unavailable", away, "are unavailable already");
            if (!goes && away != hosts) refuse("machine_available", without(hosts, away), "are not unavailable");
            turn(hosts, goes);
        }
        tell({Told::Kind::kOutside, now(), nullptr, 0, nullptr, event});
    }

    // Hosts go away or come back. Jobs on them go on, unless the rule is that they fail.
    void turn(const Runs& hosts, bool go) {
        Runs idle = hosts;
        for (const Running::Place& place : running.by_end()) {
            if (place.job->phase == Job::Phase::kBegun) idle = without(idle, place.job->hosts);
        }
        int64_t nb_busy = count_hosts(hosts) - count_hosts(idle);
        ++nb_changes_;
        if (go) {
            machines.turn(hosts, Away::kUnavailable, -nb_busy, agenda.clock);
            free->take_away(hosts, running);
            restarts.hosts_fail(hosts, running);
        } else {
            machines.turn(without(hosts, idle), std::nullopt, nb_busy, agenda.clock);
            machines.turn(idle, std::nullopt, 0, agenda.clock);
            free->give_back(hosts, running);
            ++epoch_;
        }
    }

    [[noreturn]] void refuse(const std::string& event, const Runs& hosts, const std::string& why) const {
        char time[64];
        std::snprintf(time, sizeof time, "%f", agenda.clock);
        std::string text = event + " at " + time + ": hosts ";
        append_hosts(text, hosts);
        throw EventFault(text + ' ' + why);
    }

    // --- users -------------------------------------------------------------------------------------------

    void let_users_act() {
        while (users.due(now()) || restarts.is_due() || are_unsettled()) {
            std::vector<Restarts::Failure> failed = restarts.take_failed();
            std::vector<JobPtr> again;
            for (const JobPtr& ended : restarts.take_ended()) {
                again.push_back(Restarts::next_of(ended));
                users.goes_on(*ended, *again.back());
            }
            Actions actions = users.act(now());
            for (const Restarts::Failure& failure : failed) take_failure(failure);
            again.insert(again.end(), actions.submissions.begin(), actions.submissions.end());
            for (const JobPtr& job : again) {
                take_submission(job);
                reject_unfit_of_users();
            }
            for (Change& change : actions.changes) {
                take_change(change);
                reject_unfit_of_users();
            }
            if (are_unsettled()) {
                size_t before = effects_.size();
                holds->settle();
                tell_users(before);
            }
        }
    }

    void reject_unfit_of_users() {
        if (unfit_.empty()) return;
        size_t before = effects_.size();
        reject_unfit();
        tell_users(before);
    }

    void take_failure(const Restarts::Failure& failure) {
        const std::string& id = failure.job->id;
        broken_by("SetJobMetadata ", id, [&] { note(id, Restarts::fail(failure)); });
        kill({id});
    }

    // Makes a job known that a user submits, and its profile before it if that is new.
    void take_submission(const JobPtr& job) {
        job->submission = now();
        restarts.submitted(*job);
        bool is_new = &job->as_submitted() == job.get();
        if (is_new && !(job->walltime > 0)) {
            throw RuleBroken("RegisterJob " + job->id + ": a walltime of " + general(job->walltime) + " s makes no sense");
        }
        job->walltime = to_tick(job->walltime);
        std::string workload(workload_in(job->id));
        const Profile* profile = nullptr;
        broken_by("RegisterProfile", "", [&] {
            profile = &registry.profile_of_users(workload, job->profile);
            const auto& [name, fault] = std::tie(profile->name, profile->fault);
            if (!fault.empty()) throw RuleBroken("workload '" + workload + "': profile '" + name + "' " + fault);
        });
        broken_by("RegisterJob ", job->id, [&] { register_job(job, profile); });
        rows.busy.came();
        broken_by("SetJobMetadata ", job->id, [&] { check_note(job->note); });
        do_nothing();
    }

    // A job that is taken back is rejected if it waits and killed if it runs.
    void take_change(Change& change) {
        Job* job = users.outstanding(change.job_id);
        if (!job) return;
        if (!change.note.empty() && job->execution) job->execution->note = change.note;
        if (!change.note.empty() || !change.withdraws) {
            broken_by("SetJobMetadata ", job->id, [&] { note(job->id, std::move(change.note)); });
        }
        if (!change.withdraws) return;
        if (job->state == State::kRunning) {
            kill({job->id});
        } else {
            JobPtr kept = find(job->id);
            reject(kept);
            tell_user_of_end(*kept);
        }
    }

    template <class Function>
    static void broken_by(const char* decision, const std::string& job_id, Function function) {
        try {
            function();
        } catch (const RuleBroken& broken) {
            throw RuleBroken(decision + job_id + ": " + broken.what());
        }
    }

    // Users hear which of their jobs were started and rejected.
    void tell_users(size_t first) {
        for (size_t place = first; place < effects_.size(); ++place) {
            Effect& effect = effects_[place];
            if (effect.kind == Effect::Kind::kReject) tell_user_of_end(*effect.job);
            if (effect.kind == Effect::Kind::kStart && users.hears_starts()) users.job_started(*effect.job, effect.job->start);
        }
    }

    // A user hears that a job is over; if it was begun again, so do those who hold jobs that wait for it.
    void tell_user_of_end(Job& job) {
        bool is_first = &job.as_submitted() == &job;
        if (!is_first && hear_of(job)) holds->over(*job.execution->first, job.state == State::kSuccess);
        users.job_ended(job, now());
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
