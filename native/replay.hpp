// Users that replay a log: as recorded, or session by session with think times (specification:
// batsched_py/users/rigid.py, batsched_py/users/think_time.py, batsched_py/workload/session_graph.py).
#pragma once
#include <algorithm>
#include <queue>

#include "log.hpp"
#include "users.hpp"

namespace batsched {

// A job as a user submits one of a log: profiles are registered with six decimals.
inline JobPtr submission_of(const Log& log, size_t place, std::string note) {
    JobPtr job = log.job(place);
    job->profile.amount = to_tick(job->profile.amount);
    job->note = std::move(note);
    return job;
}

// Submits each job at its recorded time.
class RigidUser : public User {
public:
    // What a note begins with is told by a function of the number of an extra.
    RigidUser(std::shared_ptr<const Log> log, std::vector<std::string> who_by_extra)
        : log_(std::move(log)), who_(std::move(who_by_extra)), order_(log_->in_submission_order()) {}

    std::string name() const override { return "user " + log_->workload; }

    double next_time() override {
        return next_ == order_.size() ? INFINITY : log_->records.submission[order_[next_]];
    }

    void submit(double now, Actions& actions) override {
        for (; next_time() <= now; ++next_) {
            Log::Record record = log_->records[order_[next_]];
            std::string note = who_[record.extra];
            if (!note.empty()) note += ' ';
            note += "recorded=" + spelled(record.submission);
            actions.submissions.push_back(submission_of(*log_, order_[next_], std::move(note)));
        }
    }

    void job_ended(Job&, double) override {}

private:
    std::shared_ptr<const Log> log_;
    std::vector<std::string> who_;
    std::vector<uint32_t> order_;
    size_t next_ = 0;
};

// Where one session ends and the next begins (batsched_py/workload/sessions.py).
struct Delimiter {
    enum class Rule : uint8_t { kArrival, kLast, kMax } rule;
    double seconds;
};

// The sessions of one user, in the order of their starts, and what depends on what.
class SessionGraph {
public:
    std::vector<double> starts, finishes;
    std::vector<int32_t> first_jobs;       // and behind the last session the number of all jobs
    std::vector<int32_t> first, stop;      // of the sessions that depend on one
    std::vector<int32_t> nb_predecessors;

    SessionGraph(const Log& log, const std::vector<uint32_t>& places, Delimiter delimiter, bool reduced) {
        cut(log, places, delimiter);
        link(reduced);
    }

    int32_t size() const { return static_cast<int32_t>(starts.size()); }

private:
    void cut(const Log& log, const std::vector<uint32_t>& places, Delimiter delimiter) {
        double latest = -INFINITY;  // finish of all jobs so far
        for (size_t job = 0; job < places.size(); ++job) {
            Log::Record record = log.records[places[job]];
            bool opens = !job;
            if (job) {
                Log::Record before = log.records[places[job - 1]];
                switch (delimiter.rule) {
                    case Delimiter::Rule::kArrival:
                        opens = record.submission - before.submission >= delimiter.seconds;
                        break;
                    case Delimiter::Rule::kLast:
                        opens = record.submission - before.finish > delimiter.seconds;
                        break;
                    case Delimiter::Rule::kMax: opens = record.submission - latest > delimiter.seconds; break;
                }
            }
            if (opens) {
                first_jobs.push_back(static_cast<int32_t>(job));
                starts.push_back(record.submission);
                finishes.push_back(record.finish);
            }
            finishes.back() = std::max(finishes.back(), record.finish);
            latest = std::max(latest, record.finish);
        }
        first_jobs.push_back(static_cast<int32_t>(places.size()));
    }

    void link(bool reduced) {
        int32_t count = size();
        first.reserve(starts.size()), stop.reserve(starts.size());
        std::vector<int32_t> earliest(static_cast<size_t>(count) + 1, count);  // that depends on some session from a place on
        for (int32_t index = 0; index < count; ++index) {
            auto later = std::lower_bound(starts.begin(), starts.end(), finishes[static_cast<size_t>(index)]);
            first.push_back(std::max(index + 1, static_cast<int32_t>(later - starts.begin())));
        }
        for (auto index = static_cast<size_t>(count); index-- > 0;) {
            earliest[index] = std::min(earliest[index + 1], first[index]);
        }
        nb_predecessors.assign(static_cast<size_t>(count) + 1, 0);
        for (size_t index = 0; index < starts.size(); ++index) {
            stop.push_back(reduced ? earliest[static_cast<size_t>(first[index])] : count);
            ++nb_predecessors[static_cast<size_t>(first[index])];
            --nb_predecessors[static_cast<size_t>(stop[index])];
        }
        for (size_t index = 1; index < starts.size(); ++index) nb_predecessors[index] += nb_predecessors[index - 1];
        nb_predecessors.pop_back();
    }
};

// Works through a session graph. A session starts when the recorded think times have passed since those that it
// depends on were over; one that depends on none starts at its recorded time.
class ThinkTimeUser : public User {
public:
    ThinkTimeUser(std::shared_ptr<const Log> log, std::string name, std::string who, std::vector<uint32_t> places,
                  Delimiter delimiter, bool reduced)
        : log_(std::move(log)), name_(std::move(name)), who_(std::move(who)), places_(std::move(places)),
          delimiter_(delimiter), reduced_(reduced) {}

    std::string name() const override { return "user " + name_; }

    double next_time() override {
        if (!graph_) return log_->records.submission[places_[0]];
        return plan_.empty() ? INFINITY : plan_.top().time;
    }

    void submit(double now, Actions& actions) override {
        if (!graph_) begin();
        while (next_time() <= now) {
            auto [time, index, place] = plan_.top();
            plan_.pop();
            Session& session = sessions_.at(index);
            int32_t first = graph_->first_jobs[static_cast<size_t>(index)];
            size_t job_place = places_[static_cast<size_t>(first + place)];
            double recorded = log_->records.submission[job_place];
            double decided = session.decided;
            bool is_root = session.is_root;
            if (++place < graph_->first_jobs[static_cast<size_t>(index) + 1] - first) {
                double distance = log_->records.submission[places_[static_cast<size_t>(first + place)]] -
                                  log_->records.submission[places_[static_cast<size_t>(first)]];
                plan_.push({session.start + distance, index, place});
            }
            if (place == 1 && is_root) begin_next_root();
            std::string note = who_ + " session=";
            append_integer(note, index);
            note += " recorded=" + spelled(recorded);
            JobPtr job = submission_of(*log_, job_place, std::move(note));
            job->session = index;
            job->decided = decided;
            actions.submissions.push_back(std::move(job));
        }
    }

    void job_ended(Job& job, double now) override {
        int32_t index = job.session;
        if (--sessions_.at(index).nb_unfinished) return;
        sessions_.erase(index);
        for (int32_t next = graph_->first[static_cast<size_t>(index)]; next < graph_->stop[static_cast<size_t>(index)];
             ++next) {
            auto successor = static_cast<size_t>(next);
            double start = now + (graph_->starts[successor] - graph_->finishes[static_cast<size_t>(index)]);
            auto known = earliest_start_.find(next);
            if (known != earliest_start_.end()) start = std::max(start, known->second);
            if (--graph_->nb_predecessors[successor]) {
                earliest_start_[next] = start;
            } else {
                if (known != earliest_start_.end()) earliest_start_.erase(known);
                begin_session(next, start, now, false);
            }
        }
    }

private:
    struct Session {
        double start, decided;
        bool is_root;
        int32_t nb_unfinished;
    };

    struct Planned {
        double time;
        int32_t index, place;  // of the session, and of the job in it
        bool operator>(const Planned& other) const {
            return time != other.time ? time > other.time : index > other.index;
        }
    };

    std::shared_ptr<const Log> log_;
    std::string name_, who_;
    std::vector<uint32_t> places_;  // of the user's jobs in the log
    Delimiter delimiter_;
    bool reduced_;
    std::unique_ptr<SessionGraph> graph_;  // from the first submission on
    std::priority_queue<Planned, std::vector<Planned>, std::greater<>> plan_;  // of each session the next job only
    std::unordered_map<int32_t, Session> sessions_;          // that have started or are about to
    std::unordered_map<int32_t, double> earliest_start_;     // of sessions that wait for others
    std::vector<int32_t> roots_;
    size_t nb_begun_roots_ = 0;

    void begin() {
        graph_ = std::make_unique<SessionGraph>(*log_, places_, delimiter_, reduced_);
        for (int32_t index = 0; index < graph_->size(); ++index) {
            if (!graph_->nb_predecessors[static_cast<size_t>(index)]) roots_.push_back(index);
        }
        begin_next_root();
    }

    // Plans the root that starts next; the others can wait.
    void begin_next_root() {
        if (nb_begun_roots_ == roots_.size()) return;
        int32_t index = roots_[nb_begun_roots_++];
        begin_session(index, graph_->starts[static_cast<size_t>(index)], 0.0, true);
    }

    void begin_session(int32_t index, double start, double decided, bool is_root) {
        auto place = static_cast<size_t>(index);
        sessions_[index] = {start, decided, is_root, graph_->first_jobs[place + 1] - graph_->first_jobs[place]};
        plan_.push({start, index, 0});
    }
};

}  // namespace batsched
