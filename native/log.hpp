// The jobs of a workload as columns, and where jobs come from.
#pragma once
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "job.hpp"

namespace batsched {

// Jobs in the order of their submission. Those of a log in the Standard Workload Format have numbers and run times;
// others have names and profiles.
class Log {
public:
    struct Record {
        double submission, walltime, finish, run_time;
        int64_t number, size;
        uint32_t extra, profile;
    };

    // User, group, executable, queue and partition; -1 where the log says nothing.
    using Extra = std::array<double, 5>;

    std::string workload;
    double speed = 1;  // of the hosts the log was recorded on, in flop/s
    std::vector<Record> records;
    std::vector<Extra> extras;
    std::vector<std::string> names;  // of jobs that have no numbers
    std::vector<Profile> profiles;   // of jobs that have no run times
    std::vector<std::optional<std::string>> users;     // by extra
    mutable std::vector<Handle> extra_objects;  // what stands for each extra outside

    Log() = default;
    Log(Log&&) = default;
    Log(const Log&) = delete;

    size_t size() const { return records.size(); }

    std::string id(size_t place) const {
        std::string id = workload + "!";
        if (names.empty()) {
            append_integer(id, records[place].number);
        } else {
            id += names[place];
        }
        return id;
    }

    Profile profile(size_t place) const {
        const Record& record = records[place];
        if (!profiles.empty()) return profiles[record.profile];
        return {"run_" + spelled(record.run_time), record.run_time * speed};
    }

    JobPtr job(size_t place) const {
        const Record& record = records[place];
        JobPtr job(new Job);
        job->id = id(place);
        job->submission = record.submission;
        job->walltime = record.walltime;
        job->request = {record.size};
        job->profile = profile(place);
        job->log = this;
        job->extra = record.extra;
        return job;
    }

    // The places as Batsim submits jobs of a workload file: by time, then by the letters of their identifiers.
    std::vector<uint32_t> in_submission_order() const {
        std::vector<uint32_t> order(size());
        std::iota(order.begin(), order.end(), 0U);
        for (auto begin = order.begin(), end = begin; begin != order.end(); begin = end) {
            while (end != order.end() && records[*end].submission == records[*begin].submission) ++end;
            if (end - begin < 2) continue;
            std::vector<std::pair<std::string, uint32_t>> named;
            for (auto place = begin; place != end; ++place) named.push_back({id(*place), *place});
            std::sort(named.begin(), named.end());
            std::transform(named.begin(), named.end(), begin, [](auto& one) { return one.second; });
        }
        return order;
    }

    // The places of each user's jobs; of users with short names first, and in the order of their names.
    std::vector<std::pair<std::string, std::vector<uint32_t>>> by_user() const {
        std::vector<std::pair<std::string, std::vector<uint32_t>>> found;
        std::vector<uint32_t> group(users.size());
        std::vector<uint32_t> order;
        for (uint32_t extra = 0; extra < group.size(); ++extra) {
            if (users[extra]) order.push_back(extra);
        }
        std::sort(order.begin(), order.end(), [this](uint32_t one, uint32_t other) {
            const std::string &a = *users[one], &b = *users[other];
            return a.size() != b.size() ? a.size() < b.size() : a < b;
        });
        for (uint32_t extra : order) {
            if (found.empty() || found.back().first != *users[extra]) found.push_back({*users[extra], {}});
            group[extra] = static_cast<uint32_t>(found.size());
        }
        for (uint32_t place = 0; place < records.size(); ++place) {
            if (uint32_t number = group[records[place].extra]) found[number - 1].second.push_back(place);
        }
        std::erase_if(found, [](const auto& one) { return one.second.empty(); });
        return found;
    }

    bool has_jobs_without_user() const {
        return std::any_of(records.begin(), records.end(),
                           [this](const Record& record) { return !users[record.extra]; });
    }
};

// Gives jobs in the order of their submission.
class JobSource {
public:
    virtual ~JobSource() = default;
    virtual JobPtr next() = 0;  // none when there are no more
};

class LogSource : public JobSource {
public:
    explicit LogSource(std::shared_ptr<const Log> log) : log_(std::move(log)), order_(log_->in_submission_order()) {}

    JobPtr next() override { return place_ == order_.size() ? nullptr : log_->job(order_[place_++]); }

private:
    std::shared_ptr<const Log> log_;
    std::vector<uint32_t> order_;
    size_t place_ = 0;
};

}  // namespace batsched
