// How much users have used the machine, where old use counts less than new (specification: batsched_py/schedulers/use.py).
#pragma once
#include <functional>
#include <unordered_map>

#include "log.hpp"
#include "running.hpp"

namespace batsched {

// Users by number, also those of jobs whose user is not known, who count as one.
class UserNumbers {
public:
    std::function<std::optional<std::string>(Job&)> name_of;  // of the user of a job that is from no log

    size_t of(Job& job) {
        if (!job.log) return of(name_of ? name_of(job) : std::nullopt);
        std::vector<size_t>& numbers = by_log_[job.log];
        if (numbers.size() <= job.extra) numbers.resize(job.log->users.size(), kNone);
        size_t& number = numbers[job.extra];
        if (number == kNone) number = of(job.log->users[job.extra]);
        return number;
    }

    size_t of(const std::optional<std::string>& name) {
        size_t& number = name ? by_name_.try_emplace(*name, kNone).first->second : nobody_;
        if (number == kNone) number = count_++;
        return number;
    }

private:
    static constexpr size_t kNone = SIZE_MAX;

    std::unordered_map<const Log*, std::vector<size_t>> by_log_;
    std::unordered_map<std::string, size_t> by_name_;
    size_t nobody_ = kNone, count_ = 0;
};

// The host-seconds of each user, of which those of a half-life ago count half. New use is made to weigh more.
class Use {
public:
    Use(double half_life, double scale, UserNumbers& users, const Running& running)
        : half_life_(half_life), scale_(scale), users_(users) {
        for (const Running::Place& place : running.by_end()) started(*place.job);
    }

    void started(Job& job) { change(job, job.nb_hosts, weight(job.start)); }
    void ended(Job& job, double now) { change(job, -job.nb_hosts, weight(now)); }

    // Of the user of a job, times a factor that is the same for all users at a time.
    double weighted(Job& job, double weight) {
        const Share& share = share_of(job);
        return share.paid + share.hosts * weight;
    }

    // The same in host-seconds.
    double seconds(double weighted, double weight) const { return weighted / weight * scale_; }

    // What a host has cost from the beginning until a time, up to a factor.
    double weight(double time) {
        double halvings = (time - epoch_) / half_life_;
        for (; halvings > kMost; halvings -= kMost) {
            for (Share& share : shares_) share.paid *= std::ldexp(1.0, -kMost);
            epoch_ += kMost * half_life_;
        }
        static const volatile double two = 2;  // so that no other function is called than Python calls
        return std::pow(two, halvings);
    }

private:
    static constexpr int kMost = 500;

    struct Share {
        double hosts = 0, paid = 0;
    };

    double half_life_, scale_, epoch_ = 0;
    UserNumbers& users_;
    std::vector<Share> shares_;

    Share& share_of(Job& job) {
        size_t number = users_.of(job);
        if (number >= shares_.size()) shares_.resize(number + 1);
        return shares_[number];
    }

    void change(Job& job, int64_t hosts, double weight) {
        Share& share = share_of(job);
        share.hosts += static_cast<double>(hosts);
        share.paid -= static_cast<double>(hosts) * weight;
    }
};

}  // namespace batsched
