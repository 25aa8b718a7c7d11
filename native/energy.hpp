// The power that hosts draw, and the energy that it adds up to (specification: batsched_py/simulator/energy.py).
#pragma once
#include <functional>

#include "lines.hpp"
#include "speeds.hpp"

namespace batsched {

// The power of a host: idle, at a load of almost nothing, and while all cores are busy.
struct Power {
    double idle, epsilon, full;

    double watts(double load) const { return load <= 0 ? idle : epsilon + (full - epsilon) * std::min(load, 1.0); }
};

// Joules drawn so far, by each host and by all together.
class Meter {
public:
    // Puts on the bill what was drawn from one time to another, which is so many watts; none if nobody pays.
    std::function<void(double, double, double)> draw;

    explicit Meter(std::vector<Power> powers) : powers_(std::move(powers)) {
        for (const Power& power : powers_) {
            hosts_.push_back({0, power.idle, 0, 0});
            all_.watts += power.idle;
            least_watts_ += power.epsilon;
        }
    }

    // The power that all hosts would draw at a load of almost nothing.
    double least_watts() const { return least_watts_; }

    double total(double now) const { return all_.total(now); }

    double drawn_by(const Runs& hosts, double now) const {
        double joules = 0;
        for (const Run& run : hosts) {
            for (int64_t host = run.first; host <= run.last; ++host) joules += hosts_[static_cast<size_t>(host)].total(now);
        }
        return joules;
    }

    // Puts on the bill what was drawn since this was last done.
    void bill(double now) {
        if (draw && now != billed_) draw(std::exchange(billed_, now), now, all_.watts);
    }

    // From now on, this share of the host's cores is busy.
    void put_load(int64_t number, double load, double now) {
        auto place = static_cast<size_t>(number);
        if (load == hosts_[place].load) return;
        hosts_[place].load = load;
        draw_from(place, now);
    }

    // From now on, the host is in another power state.
    void put_in_state(int64_t number, const Power& power, double now) {
        auto place = static_cast<size_t>(number);
        least_watts_ += power.epsilon - powers_[place].epsilon;
        powers_[place] = power;
        draw_from(place, now);
    }

private:
    struct Drawing {
        double load, watts, joules, since;

        double total(double now) const { return joules + watts * (now - since); }
        void pass(double now) {
            joules = total(now);
            since = now;
        }
    };

    std::vector<Power> powers_;
    std::vector<Drawing> hosts_;
    Drawing all_{0, 0, 0, 0};
    double least_watts_ = 0, billed_ = 0;

    // The host draws another power from now on.
    void draw_from(size_t place, double now) {
        bill(now);
        if (now != all_.since) all_.pass(now);
        Drawing& host = hosts_[place];
        double before = host.watts;
        host.pass(now);
        host.watts = powers_[place].watts(host.load);
        all_.watts += host.watts - before;
    }
};

// The energy at starts and ends of jobs and at changes of power states, in consumed_energy.csv.
class EnergyTrace {
public:
    Meter meter;
    Lines lines;
    std::function<void()> on_end;  // a job has left its hosts, and all is on the bill

    explicit EnergyTrace(std::vector<Power> powers) : meter(std::move(powers)) {}

    // What was drawn from the first submission of a static job to the last end of a job. Batsim begins with -1 for both.
    double consumed() const { return last_end_ - first_submission_; }

    void begins(double now) { first_submission_ = meter.total(now); }

    // A job is about to start on its hosts.
    void job_starts(Job& job, double now) {
        add_row('s', now);
        job.joules = meter.drawn_by(job.hosts, now);
    }

    // A job begins to compute.
    void computes(const Job& job, const Speeds& speeds, double now) {
        for (auto [host, load] : speeds.loads(job)) meter.put_load(host, load, now);
    }

    // A job has left its hosts.
    void job_ends(Job& job, double now) {
        for (const Run& run : job.hosts) {
            for (int64_t host = run.first; host <= run.last; ++host) meter.put_load(host, 0, now);
        }
        last_end_ = add_row('e', now);
        meter.bill(now);
        if (on_end) on_end();
        job.joules = meter.drawn_by(job.hosts, now) - job.joules;
    }

    // Power states are about to change, or have changed.
    void power_states_change(double now) { add_row('p', now); }

private:
    static constexpr double kLeastInterval = 1e-6;  // rows that are closer have no mean power between them
    double first_submission_ = -1, last_end_ = -1, last_row_ = 0, before_ = 0;

    double add_row(char kind, double now) {
        double joules = meter.total(now), time = std::exchange(last_row_, now), before = std::exchange(before_, joules);
        if (!lines.write) return joules;
        lines.make_room();
        lines.add_decimal(now);
        lines.add_decimal(joules);
        lines.add({&kind, 1});
        lines.add(",");
        lines.add_decimal(meter.least_watts());
        if (now - time >= kLeastInterval) {
            lines.add_decimal((joules - before) / (now - time));
            lines.drop_last();
        } else {
            lines.add("NA");
        }
        lines.end_line();
        return joules;
    }
};

}  // namespace batsched
