// The jobs of a workload as columns, and where jobs come from.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "job.hpp"

namespace batsched {

// Numbers in four bytes each, as long as all of them are whole and small (specification: batsched_py/workload/columns.py).
template <class Wide>
class Column {
public:
    void push_back(Wide value) {
        if (!is_wide_ && !is_small(value)) {
            for (size_t place = 0; place < small_.size(); ++place) wide_.push_back((*this)[place]);
            small_ = {};
            is_wide_ = true;
        }
        if (is_wide_) {
            wide_.push_back(value);
        } else {
            small_.push_back(is_infinite(value) ? kInfinite : static_cast<int32_t>(value));
        }
    }

    Wide operator[](size_t place) const {
        if (is_wide_) return wide_[place];
        return small_[place] == kInfinite ? kEndless : static_cast<Wide>(small_[place]);
    }

    size_t size() const { return is_wide_ ? wide_.size() : small_.size(); }

    // A column that has other values in these places, one after the other.
    template <class Value>
    static Column of(const std::vector<uint32_t>& places, Value value) {
        Column made;
        for (uint32_t place : places) made.push_back(value(place));
        return made;
    }

private:
    static constexpr int32_t kInfinite = INT32_MIN;
    static constexpr Wide kEndless =
        std::numeric_limits<Wide>::has_infinity ? std::numeric_limits<Wide>::infinity() : Wide(kInfinite);

    bool is_wide_ = false;
    std::vector<int32_t> small_;
    std::vector<Wide> wide_;

    static bool is_infinite(Wide value) { return value == kEndless; }
    static bool is_small(Wide value) {
        if (is_infinite(value)) return true;
        return value > Wide(INT32_MIN) && value <= Wide(INT32_MAX) && static_cast<Wide>(static_cast<int32_t>(value)) == value;
    }
};

// Jobs in the order of their submission. Those of a log in the Standard Workload Format have numbers and run times;
// others have names and profiles.
class Log {
public:
    struct Record {
        double submission, walltime, finish, run_time;
        int64_t number, size;
        uint32_t extra;
    };

    // All records, of which only the columns are kept: a log may have millions.
    class Records {
    public:
        Column<double> submission, walltime, finish, run_time;
        Column<int64_t> number, hosts;
        std::vector<uint32_t> extra;

        size_t size() const { return extra.size(); }
        Record operator[](size_t place) const {
            return {submission[place], walltime[place], finish[place], run_time[place],
                    number[place],     hosts[place],    extra[place]};
        }
        void push_back(const Record& record) {
            submission.push_back(record.submission);
            walltime.push_back(record.walltime);
            finish.push_back(record.finish);
            run_time.push_back(record.run_time);
            number.push_back(record.number);
            hosts.push_back(record.size);
            extra.push_back(record.extra);
        }

        // Keeps the records in these places, in this order.
        void pick(const std::vector<uint32_t>& places) {
            pick(submission, places), pick(walltime, places), pick(finish, places), pick(run_time, places);
            pick(number, places), pick(hosts, places);
            std::vector<uint32_t> kept;
            kept.reserve(places.size());
            for (uint32_t place : places) kept.push_back(extra[place]);
            extra = std::move(kept);
        }

    private:
        template <class Wide>
        static void pick(Column<Wide>& column, const std::vector<uint32_t>& places) {
            column = Column<Wide>::of(places, [&](uint32_t place) { return column[place]; });
        }
    };

    // User, group, executable, queue and partition; -1 where the log says nothing.
    using Extra = std::array<double, 5>;

    std::string workload;
    double speed = 1;  // of the hosts the log was recorded on, in flop/s
    Records records;
    std::vector<Extra> extras;
    std::vector<std::string> names;     // of jobs that have no numbers
    std::vector<Profile> profiles;      // of jobs that have no run times
    std::vector<uint32_t> profile_of;   // by job
    std::vector<std::optional<std::string>> users;     // by extra
    std::vector<std::string> after;                    // by extra, what jobs wait for, if the log says so
    std::vector<bool> waits;                           // by extra, whether jobs wait for others; empty if none does
    std::unordered_set<int64_t> awaited;               // the numbers of jobs for which others wait
    mutable std::vector<Handle> extra_objects;  // what stands for each extra outside

    Log() = default;
    Log(Log&&) = default;
    Log(const Log&) = delete;

    size_t size() const { return records.size(); }

    std::string id(size_t place) const {
        std::string id = workload + "!";
        if (names.empty()) {
            append_integer(id, records.number[place]);
        } else {
            id += names[place];
        }
        return id;
    }

    Profile profile(size_t place) const {
        if (!profiles.empty()) return profiles[profile_of[place]];
        double run_time = records.run_time[place];
        return {"run_" + spelled(run_time), run_time * speed};
    }

    JobPtr job(size_t place) const {
        Record record = records[place];
        JobPtr job(new Job);
        job->id = id(place);
        job->submission = record.submission;
        job->walltime = record.walltime;
        job->request = {record.size};
        job->profile = profile(place);
        job->log = this;
        job->extra = record.extra;
        job->waits = !waits.empty() && waits[record.extra];
        job->is_awaited = !names.empty() || awaited.contains(record.number);
        return job;
    }

    // The places as Batsim submits jobs of a workload file: by time, then by the letters of their identifiers.
    std::vector<uint32_t> in_submission_order() const {
        std::vector<uint32_t> order(size());
        std::iota(order.begin(), order.end(), 0U);
        for (auto begin = order.begin(), end = begin; begin != order.end(); begin = end) {
            double time = records.submission[*begin];
            while (end != order.end() && records.submission[*end] == time) ++end;
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
        std::vector<size_t> nb_jobs(found.size() + 1);
        for (uint32_t extra : records.extra) ++nb_jobs[group[extra]];
        for (size_t number = 0; number < found.size(); ++number) found[number].second.reserve(nb_jobs[number + 1]);
        for (uint32_t place = 0; place < records.size(); ++place) {
            if (uint32_t number = group[records.extra[place]]) found[number - 1].second.push_back(place);
        }
        std::erase_if(found, [](const auto& one) { return one.second.empty(); });
        return found;
    }

    bool has_jobs_without_user() const {
        return std::any_of(records.extra.begin(), records.extra.end(),
                           [this](uint32_t extra) { return !users[extra]; });
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
