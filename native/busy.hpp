// How busy the machine is while users react (specification: batsched_py/analysis/small_runs.py).
#pragma once
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "job.hpp"

namespace batsched {

// When jobs were submitted and ran, as the rows of jobs.csv tell it; of jobs that users submit only.
class Busy {
public:
    bool is_asked_for = false;

    void ran(const Job& job, double finish) {
        if (!is_asked_for) return;
        submitted(job);
        spans_.push_back({to_tick(job.begun), to_tick(finish), job.nb_hosts});
    }

    void rejected(const Job& job) {
        if (is_asked_for) submitted(job);
    }

    // The utilization until this percentage of the jobs is submitted, and how long that takes, if users react.
    std::optional<std::pair<double, double>> until(double percent, int64_t nb_hosts) const {
        if (!reacts_) return std::nullopt;
        std::vector<double> times = submissions_;
        auto count = static_cast<double>(times.size());
        auto last = times.begin() + static_cast<ptrdiff_t>(std::ceil(count * percent / 100)) - 1;
        std::nth_element(times.begin(), last, times.end());
        double begin = *std::min_element(submissions_.begin(), submissions_.end()), end = *last, total = 0;
        if (end <= begin) return std::nullopt;
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

    std::vector<double> submissions_;
    std::vector<Span> spans_;
    bool reacts_ = false;  // a job belongs to a session

    void submitted(const Job& job) {
        submissions_.push_back(to_tick(job.submission));
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
