// Jobs on hosts that fail: they are killed, and submitted again if that is the rule (specification:
// batsched_py/decision/submissions.py).
#pragma once
#include "running.hpp"

namespace batsched {

class Restarts {
public:
    bool have_rule = false;  // else jobs go on when their hosts fail
    bool resubmits = false;

    bool is_due() const { return !failed_.empty() || !again_.empty(); }

    // A job is submitted.
    void submitted(Job& job) const {
        if (!have_rule || job.execution) return;
        job.execution = std::make_unique<Execution>();
        job.execution->submitted_note = job.execution->note = job.note;
    }

    // Hosts fail while jobs run.
    void hosts_fail(const Runs& hosts, const Running& running) {
        for (const Running::Place& place : running.by_end()) {
            const JobPtr& job = place.job;
            if (!job->client || !job->execution || job->execution->has_failed) continue;
            Runs lost = HostPool(hosts).overlap(job->hosts);
            if (lost.empty()) continue;
            auto known = std::find_if(failed_.begin(), failed_.end(), [&](Failure& one) { return one.job == job; });
            if (known == failed_.end()) known = failed_.insert(known, {job, HostPool(Runs())});
            known->lost.give(without(lost, known->lost.runs()));
        }
    }

    // A job that has lost hosts.
    struct Failure {
        JobPtr job;
        HostPool lost;
    };

    // The jobs that are to be killed now.
    std::vector<Failure> take_failed() { return std::exchange(failed_, {}); }

    // The executions that have ended and are to begin again now.
    std::vector<JobPtr> take_ended() { return std::exchange(again_, {}); }

    // A job that has lost hosts is killed: the note on it.
    static std::string fail(const Failure& failure) {
        failure.job->execution->has_failed = true;
        std::string hosts;
        append_hosts(hosts, failure.lost.runs());
        std::replace(hosts.begin(), hosts.end(), ' ', ',');
        return joined(failure.job->execution->note, "failed=" + hosts);
    }

    // Whether a job is to be submitted again that has ended.
    bool comes_back(const JobPtr& ended) {
        if (!ended->execution) return false;
        std::erase_if(failed_, [&](const Failure& one) { return one.job == ended; });
        bool is_killed = ended->execution->has_failed && ended->state == State::kKilled;
        if (!is_killed || !resubmits || ended->withdrawn) return false;
        again_.push_back(ended);
        return true;
    }

    // How the next execution of a job is called.
    static std::string name_of_next(const Job& ended) {
        return ended.as_submitted().id + '#' + std::to_string(ended.execution->number + 1);
    }

    // The next execution of a job.
    static JobPtr next_of(const JobPtr& ended) {
        const JobPtr& first = ended->execution->first ? ended->execution->first : ended;
        JobPtr job(new Job);
        job->execution = std::make_unique<Execution>();
        job->execution->first = first;
        int64_t number = job->execution->number = ended->execution->number + 1;
        job->id = name_of_next(*ended);
        job->walltime = first->walltime;
        job->request = {first->request.hosts};
        job->profile = first->profile;
        job->log = first->log;
        job->extra = first->extra;
        job->is_awaited = first->waits || first->is_awaited;
        job->session = first->session;
        job->decided = first->decided;
        job->note = joined(first->execution->submitted_note, "restart=" + std::to_string(number));
        job->execution->note = job->note;
        return job;
    }

private:
    std::vector<Failure> failed_;
    std::vector<JobPtr> again_;

    static std::string joined(const std::string& note, const std::string& fact) {
        return note.empty() ? fact : note + ' ' + fact;
    }
};

}  // namespace batsched
