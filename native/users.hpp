// Users who submit jobs, and what speaks for all of them (specification: batsched_py/users/broker.py).
#pragma once
#include <functional>
#include <queue>
#include <unordered_map>

#include "job.hpp"

namespace batsched {

// What a user does besides submitting: take a job back, or change what is noted about it.
struct Change {
    std::string job_id, note;
    bool withdraws;
};

struct Actions {
    std::vector<JobPtr> submissions;
    std::vector<Change> changes;

    bool empty() const { return submissions.empty() && changes.empty(); }
};

class User {
public:
    virtual ~User() = default;
    virtual std::string name() const = 0;  // as errors have it, such as "user 7"
    virtual bool hears_starts() const { return false; }
    virtual double next_time() = 0;  // when it wants to act; infinite for not at all
    virtual void submit(double now, Actions& actions) = 0;
    virtual void job_started(Job&, double) {}
    virtual void job_ended(Job& job, double now) = 0;  // how it ended is its state
};

// A user has asked for something that makes no sense.
struct UserFault : std::runtime_error {
    using runtime_error::runtime_error;
};

// A user who may still act.
struct Client {
    int64_t number;
    std::unique_ptr<User> user;
    double wish = INFINITY;    // when it wants to act
    double wanted = INFINITY;  // the same in ticks
    int64_t nb_outstanding = 0;
};

// Merges users, tells each of the starts and ends of its own jobs, and knows when to be called next. A user's time
// has come at the first tick that is not before it; the user itself is given a time that is not before its own.
class Users {
public:
    void add(std::unique_ptr<User> user) {
        hears_starts_ = hears_starts_ || user->hears_starts();
        auto client = std::make_unique<Client>(Client{count_, std::move(user)});
        Client& added = *(clients_[count_++] = std::move(client));
        ask(added);
    }

    bool hears_starts() const { return hears_starts_; }
    bool due(double now) const { return next_time_ <= now; }
    bool will_act() const { return next_time_ != INFINITY; }
    bool done() const { return !nb_outstanding_ && next_time_ == INFINITY; }

    // What all users do now. Of the submissions, what was decided first comes first, then user by user.
    Actions act(double now) {
        Actions all;
        while (due(now)) {
            Client& client = *clients_.at(plan_.top().second);
            plan_.pop();
            Actions actions;
            client.user->submit(std::max(now, client.wish), actions);
            for (JobPtr& job : actions.submissions) {
                job->client = &client;
                outstanding_[job->id] = job.get();
                ++client.nb_outstanding;
                ++nb_outstanding_;
                all.submissions.push_back(job);
            }
            for (Change& change : actions.changes) {
                check_own(client, change, now);
                all.changes.push_back(std::move(change));
            }
            client.wanted = -INFINITY;
            double wanted = ask(client);
            if (actions.empty() && wanted <= now) {
                throw UserFault(client.user->name() + " wants to submit at time " + general(now) +
                                ", yet submits nothing");
            }
        }
        std::stable_sort(all.submissions.begin(), all.submissions.end(),
                         [](const JobPtr& one, const JobPtr& other) { return one->decided < other->decided; });
        return all;
    }

    // The job of this name that is a user's and may still end.
    Job* outstanding(const std::string& id) const {
        auto found = outstanding_.find(id);
        return found == outstanding_.end() ? nullptr : found->second;
    }

    void job_started(Job& job, double now) {
        bool is_news = &job.as_submitted() == &job;  // not if it is begun again
        if (!is_news || !job.client || !job.client->user->hears_starts()) return;
        job.client->user->job_started(job, now);
        ask(*job.client);
    }

    void job_ended(Job& job, double now) {
        if (!job.client) return;
        Client& client = *std::exchange(job.client, nullptr);
        outstanding_.erase(job.as_submitted().id);
        --client.nb_outstanding;
        --nb_outstanding_;
        client.user->job_ended(job, now);
        ask(client);
    }

    // A job that has ended goes on as another one.
    void goes_on(Job& ended, Job& next) {
        next.client = std::exchange(ended.client, nullptr);
        outstanding_[next.as_submitted().id] = &next;
    }

    // When a call is needed that was not asked for yet; never, if none is. A call cannot be taken back, and one that
    // comes too early does no harm.
    double call_to_ask(double now) {
        while (!calls_.empty() && calls_.top() <= now) calls_.pop();
        if (next_time_ == INFINITY || (!calls_.empty() && calls_.top() <= next_time_)) return INFINITY;
        calls_.push(next_time_);
        return next_time_;
    }

private:
    using Wish = std::pair<double, int64_t>;  // of which client

    std::unordered_map<int64_t, std::unique_ptr<Client>> clients_;
    int64_t count_ = 0;
    std::priority_queue<Wish, std::vector<Wish>, std::greater<>> plan_;  // with wishes that are no longer valid
    std::unordered_map<std::string, Job*> outstanding_;
    int64_t nb_outstanding_ = 0;
    std::priority_queue<double, std::vector<double>, std::greater<>> calls_;
    double next_time_ = INFINITY;
    bool hears_starts_ = false;

    // Asks a user for its next time and puts it down; in ticks. A user who will never act again is forgotten.
    double ask(Client& client) {
        double time = client.user->next_time();
        if (std::isnan(time) || time == -INFINITY) {
            throw UserFault(client.user->name() + " wants to submit at time " + general(time) +
                            ", which never comes");
        }
        client.wish = time;
        time = to_tick(time);
        if (time != client.wanted) {
            client.wanted = time;
            if (time != INFINITY) plan_.push({time, client.number});
            drop_stale_wishes();
        }
        if (time == INFINITY && !client.nb_outstanding) clients_.erase(client.number);
        return time;
    }

    void drop_stale_wishes() {
        while (!plan_.empty()) {
            auto client = clients_.find(plan_.top().second);
            if (client != clients_.end() && client->second->wanted == plan_.top().first) break;
            plan_.pop();
        }
        next_time_ = plan_.empty() ? INFINITY : plan_.top().first;
    }

    void check_own(Client& client, const Change& change, double now) {
        Job* job = outstanding(change.job_id);
        std::string who = client.user->name() + " at time " + general(now) + ": ";
        if (!job || job->client != &client) {
            throw UserFault(who + (change.withdraws ? "withdrawal" : "remark") + " of job " + change.job_id +
                            ", which is not one of its own that waits or runs");
        }
        if (change.withdraws && std::exchange(job->withdrawn, true)) {
            throw UserFault(who + "withdraws job " + change.job_id + " a second time");
        }
    }
};

}  // namespace batsched
