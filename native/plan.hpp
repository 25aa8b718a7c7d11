// The reservations of all waiting jobs, in the order of their submission (specification: batsched_py/ledger/profile.py).
#pragma once
#include "queue.hpp"
#include "running.hpp"

namespace batsched {

// A plan of any kind of machine.
class AnyPlan {
public:
    virtual ~AnyPlan() = default;
    virtual void job_ended(const Job& job, double now) = 0;
    virtual void advance(double now, const Queue& queue) = 0;
    virtual void move_forward() = 0;
    virtual void reserve_new(const Queue& queue) = 0;
    virtual std::vector<JobPtr> due(double now) = 0;
    virtual void job_started(const Job& job) = 0;
    virtual std::vector<std::pair<JobPtr, double>> starts() const = 0;  // of all jobs with a reservation
};

// What is free over time, and where a job goes, is the profile's business.
template <class Profile>
class Plan final : public AnyPlan {
public:
    explicit Plan(Profile profile) : profile_(std::move(profile)) {}

    struct Reservation {
        JobPtr job;
        double start;
        typename Profile::Place place;
        double end() const { return start + job->told_walltime; }
    };

    std::vector<std::pair<JobPtr, double>> starts() const override {
        std::vector<std::pair<JobPtr, double>> starts;
        for (const Reservation& one : reserved_) starts.emplace_back(one.job, one.start);
        return starts;
    }

    // A job has ended: what it leaves of its time is free.
    void job_ended(const Job& job, double now) override {
        auto held = profile_.held_by(job);
        if (!held) return;
        auto& [end, place] = *held;
        profile_.give(now, end, place);
        freed_until_ = std::max(freed_until_, end);
        some_ended_ = true;
    }

    // Time has passed, and jobs may have left the queue.
    void advance(double now, const Queue& queue) override {
        profile_.advance(now);
        if (nb_waiting_before(queue) == reserved_.size()) return;
        std::erase_if(reserved_, [this](const Reservation& one) {
            if (one.job->state == State::kWaiting) return false;
            profile_.give(one.start, one.end(), one.place);
            return true;
        });
    }

    // Lets each job in turn have the earliest reservation that all others leave, if jobs have ended. Only where something
    // has become free can it be earlier than before. What a job leaves behind may serve those after it at once, and those
    // before it the next time.
    void move_forward() override {
        if (!std::exchange(some_ended_, false)) return;
        double freed_until = std::exchange(freed_until_, 0.0);
        profile_.begin_moves(reserved_);
        for (Reservation& one : reserved_) {
            auto start = profile_.earlier(one, freed_until);
            if (!start) continue;
            freed_until_ = std::max(freed_until_, one.end());
            freed_until = std::max(freed_until, freed_until_);
            profile_.move(one, *start);
            next_start_ = std::min(next_start_, one.start);
        }
    }

    // Gives the jobs that have none a reservation.
    void reserve_new(const Queue& queue) override {
        while (JobPtr job = queue.find(last_, INT64_MAX, [](Request, double) { return true; })) {
            last_ = job->arrival;
            double start = profile_.earliest(*job);
            Reservation made{job, start, profile_.place(*job, start)};
            take(made);
            reserved_.push_back(std::move(made));
        }
    }

    // The jobs whose time has come; each goes to the place that is reserved for it.
    std::vector<JobPtr> due(double now) override {
        std::vector<JobPtr> jobs;
        if (next_start_ > now) return jobs;
        next_start_ = INFINITY;
        for (const Reservation& one : reserved_) {
            next_start_ = std::min(next_start_, one.start);
            if (one.start > now) continue;
            profile_.choose(*one.job, one.place);
            jobs.push_back(one.job);
        }
        return jobs;
    }

    // A job was started: it has its place instead of a reservation.
    void job_started(const Job& job) override {
        auto one = std::find_if(reserved_.begin(), reserved_.end(),
                                [&](const Reservation& one) { return one.job.get() == &job; });
        if (one == reserved_.end()) return profile_.hold(job);
        profile_.start(job, *one);
        reserved_.erase(one);
    }

private:
    Profile profile_;
    std::vector<Reservation> reserved_;
    double freed_until_ = 0;
    double next_start_ = INFINITY;  // no reservation begins before
    bool some_ended_ = false;
    int64_t last_ = 0;  // the arrival of the last job with a reservation

    void take(const Reservation& one) {
        profile_.take(one.start, one.end(), one.place);
        next_start_ = std::min(next_start_, one.start);
    }

    // How many jobs wait that had a reservation.
    size_t nb_waiting_before(const Queue& queue) const {
        size_t count = queue.size();
        int64_t behind = last_;
        while (JobPtr job = queue.find(behind, INT64_MAX, [](Request, double) { return true; })) {
            behind = job->arrival;
            --count;
        }
        return count;
    }
};

}  // namespace batsched
