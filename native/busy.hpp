// How busy the machine is while users react (specification: batsched_py/analysis/small_runs.py).
#pragma once
#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>

#include "job.hpp"

namespace batsched {

// When jobs were submitted and ran, as the rows of jobs.csv tell it; of jobs that users submit only.
//
// Most of what ran is added up and forgotten early: what ended before the moment that is asked for counts whole,
// whenever exactly that moment is.
class Busy {
public:
    static constexpr double kLeastPercent = 90;  // that may be asked for
    bool is_asked_for = false;

    // A job is submitted, which will have a row.
    void came() { ++nb_came_; }

    void ran(const Job& job, double finish) {
        if (!is_asked_for) return;
        submitted(job);
        spans_.push_back({to_tick(job.begun), to_tick(finish), job.nb_hosts});
        if (spans_.size() > most_spans_) forget();
    }

    void rejected(const Job& job) {
        if (is_asked_for) submitted(job);
    }

    // The utilization until this percentage of the jobs is submitted, and how long that takes, if users react.
    std::optional<std::pair<double, double>> until(double percent, int64_t nb_hosts) {
        if (percent < kLeastPercent) throw std::invalid_argument("what ran so early is forgotten");
        if (!reacts_) return std::nullopt;
        double begin = first_, end = without_earlier(place_of(percent, nb_rows_));
        if (end <= begin) return std::nullopt;
        double total = total_;
        for (const Span& span : spans_) {
            if (!(span.begun < end && span.ended > begin)) continue;
            double seconds = std::min(span.ended, end) - std::max(span.begun, begin);
            double area = seconds * static_cast<double>(span.nb_hosts);
            total += area;
        }
        return std::pair(total / (static_cast<double>(nb_hosts) * (end - begin)), end - begin);
    }

private:
    struct Span {
        double begun, ended;
        int64_t nb_hosts;
    };

    static constexpr size_t kManySpans = 1 << 14;
    std::deque<double> submissions_;  // in any order, without the earliest ones
    std::deque<Span> spans_;          // in the order of the rows; those before them are in the total
    double total_ = 0;                // host seconds
    double first_ = INFINITY;
    size_t most_spans_ = kManySpans, nb_came_ = 0, nb_rows_ = 0;
    bool reacts_ = false;  // a job belongs to a session

    static size_t place_of(double percent, size_t count) {
        return static_cast<size_t>(std::ceil(static_cast<double>(count) * percent / 100));
    }

    // The submission of this place among all, from 1 on; those before it are forgotten.
    double without_earlier(size_t place) {
        size_t nb_forgotten = nb_rows_ - submissions_.size();
        if (place <= nb_forgotten) throw std::logic_error("a job was submitted before one that came earlier");
        auto found = submissions_.begin() + static_cast<ptrdiff_t>(place - nb_forgotten) - 1;
        std::nth_element(submissions_.begin(), found, submissions_.end());
        submissions_.erase(submissions_.begin(), found);
        return submissions_.front();
    }

    // Adds up what ended before any moment that may be asked for: jobs without a row yet may have been submitted
    // before all others, and those that are still to come are submitted later than all of them.
    void forget() {
        size_t nb_without = nb_came_ - std::min(nb_came_, nb_rows_);
        size_t place = place_of(kLeastPercent, nb_rows_ + nb_without);
        size_t nb_forgotten = nb_rows_ - submissions_.size();
        if (place > nb_without + nb_forgotten) {
            double least = without_earlier(place - nb_without);
            for (; !spans_.empty() && spans_.front().ended <= least; spans_.pop_front()) {
                const Span& span = spans_.front();
                double area = (span.ended - span.begun) * static_cast<double>(span.nb_hosts);
                total_ += area;
            }
        }
        most_spans_ = 2 * spans_.size() + kManySpans;
    }

    void submitted(const Job& job) {
        ++nb_rows_;
        submissions_.push_back(to_tick(job.submission));
        first_ = std::min(first_, submissions_.back());
        reacts_ = reacts_ || names_session(job.note);
    }

    static bool names_session(std::string_view note) {
        constexpr std::string_view kWord = "session=";
        for (size_t place = note.find(kWord); place != note.npos; place = note.find(kWord, place + 1)) {
            size_t behind = place + kWord.size();
            if ((!place || note[place - 1] == ' ') && behind < note.size() && note[behind] != ' ') return true;
        }
        return false;
    }
};

}  // namespace batsched
