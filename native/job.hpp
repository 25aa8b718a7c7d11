// A job from its submission to its end.
#pragma once
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts.hpp"

namespace batsched {

// A decision that Batsim would not accept.
struct RuleBroken : std::runtime_error {
    using runtime_error::runtime_error;
};

// Something outside this library that belongs to a job, such as the object by which a caller knows it.
class Handle {
public:
    static inline void (*release)(void*) = [](void*) {};

    Handle() = default;
    explicit Handle(void* object) : object_(object) {}
    Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Handle() {
        if (object_) release(object_);
    }

    void* get() const { return object_; }

private:
    void* object_ = nullptr;
};

// What a job does: a computation on each of its hosts, or nothing for some seconds.
struct Profile {
    enum class Kind : uint8_t { kComputation, kDelay };

    std::string name;
    double amount = 0;  // flops or seconds
    int64_t return_code = 0;
    Kind kind = Kind::kComputation;
    std::string fault = {};  // why it cannot be run, if that is so

    // Whether it ends by itself within a walltime; of a computation that ends at the same time, SimGrid says yes.
    bool fits(double seconds, double walltime) const {
        return kind == Kind::kComputation ? !(seconds > walltime + 1e-9) : seconds < walltime;
    }

    int64_t killed_code() const { return kind == Kind::kComputation ? -2 : -1; }
};

enum class State : uint8_t { kKnown, kWaiting, kRunning, kSuccess, kFailed, kWalltimeReached, kKilled, kRejected };

constexpr const char* name_of(State state) {
    constexpr const char* names[] = {"NOT_SUBMITTED",    "SUBMITTED",        "RUNNING",
                                     "COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED",
                                     "COMPLETED_KILLED", "REJECTED"};
    return names[static_cast<size_t>(state)];
}

class Log;
struct Client;
struct Execution;
struct Job;
struct Placement;

// Owns a job together with others, in one thread.
class JobPtr {
public:
    JobPtr() = default;
    JobPtr(std::nullptr_t) {}
    inline explicit JobPtr(Job* job);
    JobPtr(const JobPtr& other) : JobPtr(other.job_) {}
    JobPtr(JobPtr&& other) noexcept : job_(std::exchange(other.job_, nullptr)) {}
    JobPtr& operator=(JobPtr other) noexcept {
        std::swap(job_, other.job_);
        return *this;
    }
    inline ~JobPtr();

    Job* get() const { return job_; }
    Job& operator*() const { return *job_; }
    Job* operator->() const { return job_; }
    explicit operator bool() const { return job_; }
    bool operator==(const JobPtr&) const = default;
    void reset() { *this = JobPtr(); }

private:
    Job* job_ = nullptr;
};

struct Job {
    // As its submitter describes it.
    std::string id;
    double submission = 0, walltime = INFINITY;
    Request request;
    Profile profile;
    const Log* log = nullptr;  // where it comes from, if from a log
    uint32_t extra = 0;        // what else the log says about it, by number
    std::string note;          // for the column `metadata`
    bool waits = false;        // it says that it waits for others, or is a task of an array
    bool is_awaited = true;    // others may wait for it

    // As it is told: times in ticks.
    double told_submission = 0, told_walltime = INFINITY;

    State state = State::kKnown;
    int64_t arrival = 0;   // how many were submitted until then
    int64_t user = -1;     // the number of its user, once somebody asked for it
    double estimate = 0;   // how long it is expected to run

    std::shared_ptr<const Placement> placement;  // on nodes: of a running job, or found for one that waits
    std::shared_ptr<const Placement> given_back;  // what will be free of it when the job ends

    // Of a running job.
    double start = 0, expected_end = 0;  // as told
    int64_t number = 0;                  // how many were started until then
    int64_t nb_hosts = 0;
    int64_t nb_given_back = 0;  // how many of its hosts will be free when it ends; the others were taken away
    Runs hosts;
    std::vector<int64_t> executors;  // the host of each, where they are not one on each host
    double begun = 0, seconds = 0;
    double joules = -1;  // what its hosts draw; while it runs, what they had drawn before; -1 if nobody counts
    bool ends_by_itself = true;
    enum class Phase : uint8_t { kDecided, kLaunched, kBegun, kCleanedUp } phase = Phase::kDecided;
    int64_t agenda_number = 0;
    double ended = 0;
    State outcome = State::kSuccess;
    int64_t return_code = 0;

    // Of a job that a user submitted.
    Client* client = nullptr;
    int32_t session = 0;
    double decided = 0;
    bool withdrawn = false;
    std::unique_ptr<Execution> execution;  // where hosts may fail, and jobs with them

    Handle source;    // the object it was made from
    Handle view;      // the object that stands for it outside
    Handle decision;  // what was decided, where that says more than which hosts
    void* running_view = nullptr;  // the object that stands for it on its hosts, if somebody holds one
    int64_t nb_owners = 0;

    void tell_in_ticks() {
        told_submission = to_tick(submission);
        told_walltime = to_tick(walltime);
    }
    // The job as its user has submitted it.
    inline const Job& as_submitted() const;

    bool is_over() const { return state > State::kRunning; }

    // If it is started now, it goes to no certain place.
    void forget_place() {
        if (state == State::kWaiting) placement = nullptr;
    }
};

// One of several executions of a job, if hosts fail.
struct Execution {
    JobPtr first;  // the first one, if it is another
    int64_t number = 0;  // how many were before
    std::string submitted_note, note;  // as its user has submitted it, and what was said of it since
    bool has_failed = false;
};

const Job& Job::as_submitted() const { return execution && execution->first ? *execution->first : *this; }

JobPtr::JobPtr(Job* job) : job_(job) {
    if (job_) ++job_->nb_owners;
}

JobPtr::~JobPtr() {
    if (job_ && !--job_->nb_owners) delete job_;
}

}  // namespace batsched
