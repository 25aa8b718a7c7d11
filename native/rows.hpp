// The rows of jobs.csv and sums over them (specification: batsched_py/simulator/outputs.py).
#pragma once
#include "busy.hpp"
#include "distribution.hpp"
#include "lines.hpp"

namespace batsched {

struct Sums {
    int64_t nb_jobs = 0, nb_rejected = 0, nb_success = 0;
    int64_t nb_grouped_switches = 0, nb_machine_switches = 0;  // of power states
    double makespan = 0;
    double sum_waiting = 0, max_waiting = 0;
    double sum_turnaround = 0, max_turnaround = 0;
    double sum_slowdown = 0, max_slowdown = 0;
    double sum_bounded_slowdown = 0;
    Distribution waitings, bounded_slowdowns;  // for medians
};

class Rows : public Lines {
public:
    Sums sums;
    Busy busy;

    void finished(const Job& job, double end) {
        double runtime = end - job.begun;
        if (runtime == 0) runtime = kLeastRuntime;
        double finish = job.begun + runtime;
        double waiting = job.begun - job.submission;
        double turnaround = finish - job.submission;
        double slowdown = turnaround / runtime;
        bool success = job.state == State::kSuccess;
        ++sums.nb_jobs;
        sums.nb_success += success;
        sums.makespan = std::max(sums.makespan, finish);
        sums.sum_waiting += waiting;
        sums.max_waiting = std::max(sums.max_waiting, waiting);
        sums.sum_turnaround += turnaround;
        sums.max_turnaround = std::max(sums.max_turnaround, turnaround);
        sums.sum_slowdown += slowdown;
        sums.max_slowdown = std::max(sums.max_slowdown, slowdown);
        double bounded = std::max(1.0, turnaround / std::max(runtime, kSlowdownBound));
        sums.sum_bounded_slowdown += bounded;
        sums.waitings.add(waiting);
        sums.bounded_slowdowns.add(bounded);
        busy.ran(job, finish);
        if (!write) return;
        describe(job);
        add(success ? "1," : "0,");
        add(name_of(job.state));
        add(",");
        for (double value : {job.begun, runtime, finish, waiting, turnaround, slowdown}) add_decimal(value);
        hosts_.clear();
        append_hosts(hosts_, job.hosts);
        make_room(hosts_.size() + job.note.size());
        add(hosts_);
        add(",");
        add_decimal(job.joules);
        add("\"");
        end_row(job);
    }

    void rejected(const Job& job) {
        ++sums.nb_jobs;
        ++sums.nb_rejected;
        busy.rejected(job);
        if (!write) return;
        describe(job);
        make_room(job.note.size());
        add("0,REJECTED,,,,,,,,,\"");
        end_row(job);
    }

private:
    static constexpr double kLeastRuntime = 1e-5;   // Batsim's, so that the stretch is finite
    static constexpr double kSlowdownBound = 10.0;  // seconds
    std::string hosts_;

    void describe(const Job& job) {
        make_room(4 * (job.id.size() + job.profile.name.size()));
        add_name(name_in(job.id));
        add_name(workload_in(job.id));
        add_name(job.profile.name);
        add_decimal(job.submission);
        add_integer(job.request.hosts);
        add(",");
        add_decimal(job.walltime == INFINITY ? -1.0 : job.walltime);
    }

    void end_row(const Job& job) {
        add(job.note);
        add("\"");
        end_line();
    }
};

}  // namespace batsched
