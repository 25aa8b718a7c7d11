// The rows of jobs.csv and sums over them (specification: batsched_py/simulator/outputs.py).
#pragma once
#include <algorithm>
#include <functional>
#include <string>

#include "job.hpp"

namespace batsched {

struct Sums {
    int64_t nb_jobs = 0, nb_rejected = 0, nb_success = 0;
    double makespan = 0;
    double sum_waiting = 0, max_waiting = 0;
    double sum_turnaround = 0, max_turnaround = 0;
    double sum_slowdown = 0, max_slowdown = 0;
    double sum_bounded_slowdown = 0;
};

class Rows {
public:
    Sums sums;
    std::function<void(const std::string&)> write;  // takes the rows when they are many; none if nobody wants them

    void finished(const Job& job, double end) {
        double runtime = end - job.begun;
        if (runtime == 0) runtime = kLeastRuntime;
        double finish = job.begun + runtime;
        double waiting = job.begun - job.submission;
        double turnaround = finish - job.submission;
        double slowdown = turnaround / runtime;
        bool success = job.state == State::kSuccess;
        ++sums.nb_jobs;
        sums.nb_success += success;
        sums.makespan = std::max(sums.makespan, finish);
        sums.sum_waiting += waiting;
        sums.max_waiting = std::max(sums.max_waiting, waiting);
        sums.sum_turnaround += turnaround;
        sums.max_turnaround = std::max(sums.max_turnaround, turnaround);
        sums.sum_slowdown += slowdown;
        sums.max_slowdown = std::max(sums.max_slowdown, slowdown);
        sums.sum_bounded_slowdown += std::max(1.0, turnaround / std::max(runtime, kSlowdownBound));
        if (!write) return;
        description(job);
        rows_ += success ? "1," : "0,";
        rows_ += name_of(job.state);
        rows_ += ',';
        for (double value : {job.begun, runtime, finish, waiting, turnaround, slowdown}) decimal(value);
        append_hosts(rows_, job.hosts);
        rows_ += ",-1.000000,\"";
        end_row(job);
    }

    void rejected(const Job& job) {
        ++sums.nb_jobs;
        ++sums.nb_rejected;
        if (!write) return;
        description(job);
        rows_ += "0,REJECTED,,,,,,,,,\"";
        end_row(job);
    }

    void flush() {
        if (rows_.empty()) return;
        std::string full = std::move(rows_);
        rows_.clear();
        write(full);
    }

private:
    static constexpr size_t kMany = 1 << 16;
    static constexpr double kLeastRuntime = 1e-5;   // Batsim's, so that the stretch is finite
    static constexpr double kSlowdownBound = 10.0;  // seconds
    std::string rows_;

    void description(const Job& job) {
        if (rows_.capacity() < kMany) rows_.reserve(2 * kMany);
        name(name_in(job.id));
        name(workload_in(job.id));
        name(job.profile.name);
        decimal(job.submission);
        append_integer(rows_, job.request.hosts);
        rows_ += ',';
        decimal(job.walltime == INFINITY ? -1.0 : job.walltime);
    }

    void end_row(const Job& job) {
        rows_ += job.note;
        rows_ += "\"\n";
        if (rows_.size() > kMany) flush();
    }

    // A name may have commas and quotes.
    void name(std::string_view part) {
        if (part.find_first_of("\",\r\n") == part.npos) {
            rows_ += part;
        } else {
            rows_ += '"';
            for (char letter : part) rows_.append(letter == '"' ? 2 : 1, letter);
            rows_ += '"';
        }
        rows_ += ',';
    }

    // Six decimals, correctly rounded.
    void decimal(double value) {
        if (std::abs(value) < 1e15 && value == std::floor(value) && !(value == 0 && std::signbit(value))) {
            append_integer(rows_, static_cast<int64_t>(value));
            rows_ += ".000000,";
        } else if (value >= 1 && value < 1e12) {
            millionths(value);
        } else if (std::isfinite(value)) {
            char digits[512];
            rows_.append(digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 6).ptr);
            rows_ += ',';
        } else {
            rows_ += std::isnan(value) ? "nan," : value > 0 ? "inf," : "-inf,";
        }
    }

    // A number from 1 to 10 ** 12 is an integer over a power of two, so that its decimals can be counted in integers.
    // Halves go to the even neighbour.
    void millionths(double value) {
        int exponent;
        auto digits = static_cast<uint64_t>(std::ldexp(std::frexp(value, &exponent), 53));
        int shift = 53 - exponent;  // the value is digits / 2 ** shift
        unsigned __int128 scaled = static_cast<unsigned __int128>(digits) * 1'000'000;
        unsigned __int128 half = static_cast<unsigned __int128>(1) << (shift - 1), rest = scaled & (2 * half - 1);
        auto rounded = static_cast<uint64_t>(scaled >> shift);
        rounded += rest > half || (rest == half && rounded % 2);
        append_integer(rows_, static_cast<int64_t>(rounded / 1'000'000));
        char text[8] = {'.', '0', '0', '0', '0', '0', '0', ','};
        for (uint64_t left = rounded % 1'000'000, place = 6; left; left /= 10, --place) {
            text[place] = static_cast<char>('0' + left % 10);
        }
        rows_.append(text, sizeof text);
    }
};

}  // namespace batsched
