// The rows of jobs.csv and sums over them (specification: batsched_py/simulator/outputs.py).
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "busy.hpp"
#include "distribution.hpp"

namespace batsched {

struct Sums {
    int64_t nb_jobs = 0, nb_rejected = 0, nb_success = 0;
    double makespan = 0;
    double sum_waiting = 0, max_waiting = 0;
    double sum_turnaround = 0, max_turnaround = 0;
    double sum_slowdown = 0, max_slowdown = 0;
    double sum_bounded_slowdown = 0;
    Distribution waitings, bounded_slowdowns;  // for medians
};

class Rows {
public:
    Sums sums;
    Busy busy;
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
        double bounded = std::max(1.0, turnaround / std::max(runtime, kSlowdownBound));
        sums.sum_bounded_slowdown += bounded;
        sums.waitings.add(waiting);
        sums.bounded_slowdowns.add(bounded);
        busy.ran(job, finish);
        if (!write) return;
        describe(job);
        add(success ? "1," : "0,");
        add(name_of(job.state));
        add(",");
        for (double value : {job.begun, runtime, finish, waiting, turnaround, slowdown}) add_decimal(value);
        hosts_.clear();
        append_hosts(hosts_, job.hosts);
        make_room(hosts_.size() + job.note.size() + kNumbers);
        add(hosts_);
        add(",-1.000000,\"");
        end_row(job);
    }

    void rejected(const Job& job) {
        ++sums.nb_jobs;
        ++sums.nb_rejected;
        busy.rejected(job);
        if (!write) return;
        describe(job);
        make_room(job.note.size() + kNumbers);
        add("0,REJECTED,,,,,,,,,\"");
        end_row(job);
    }

    void flush() {
        if (end_ == rows_.data()) return;
        std::string full(rows_.data(), end_);
        end_ = rows_.data();
        write(full);
    }

private:
    static constexpr size_t kMany = 1 << 16;        // letters are written at a time
    static constexpr size_t kNumbers = 4096;        // letters, enough for all numbers of a row
    static constexpr double kLeastRuntime = 1e-5;   // Batsim's, so that the stretch is finite
    static constexpr double kSlowdownBound = 10.0;  // seconds
    std::vector<char> rows_ = std::vector<char>(2 * kMany);
    char* end_ = rows_.data();  // of what was added
    std::string hosts_;

    // Makes room for so many more letters, which are then added without looking.
    void make_room(size_t more) {
        size_t used = static_cast<size_t>(end_ - rows_.data());
        if (used + more <= rows_.size()) return;
        rows_.resize(2 * (used + more));
        end_ = rows_.data() + used;
    }

    void add(std::string_view text) { end_ = std::copy(text.begin(), text.end(), end_); }
    void add_integer(int64_t value) { end_ = std::to_chars(end_, end_ + 24, value).ptr; }

    void describe(const Job& job) {
        make_room(4 * (job.id.size() + job.profile.name.size()) + kNumbers);
        add_name(name_in(job.id));
        add_name(workload_in(job.id));
        add_name(job.profile.name);
        add_decimal(job.submission);
        add_integer(job.request.hosts);
        add(",");
        add_decimal(job.walltime == INFINITY ? -1.0 : job.walltime);
    }

    void end_row(const Job& job) {
        add(job.note);
        add("\"\n");
        if (end_ - rows_.data() > static_cast<ptrdiff_t>(kMany)) flush();
    }

    // A name may have commas and quotes.
    void add_name(std::string_view part) {
        if (part.find_first_of("\",\r\n") == part.npos) {
            add(part);
        } else {
            add("\"");
            for (char letter : part) add(letter == '"' ? std::string_view("\"\"") : std::string_view(&letter, 1));
            add("\"");
        }
        add(",");
    }

    // Six decimals, correctly rounded.
    void add_decimal(double value) {
        if (std::abs(value) < 1e15 && value == std::floor(value) && !(value == 0 && std::signbit(value))) {
            add_integer(static_cast<int64_t>(value));
            add(".000000,");
        } else if (value >= 1 && value < 1e12) {
            add_millionths(value);
        } else if (std::isfinite(value)) {
            end_ = std::to_chars(end_, end_ + 400, value, std::chars_format::fixed, 6).ptr;
            add(",");
        } else {
            add(std::isnan(value) ? "nan," : value > 0 ? "inf," : "-inf,");
        }
    }

    // A number from 1 to 10 ** 12 is an integer over a power of two, so that its decimals can be counted in integers.
    // Halves go to the even neighbour.
    void add_millionths(double value) {
        int exponent;
        auto digits = static_cast<uint64_t>(std::ldexp(std::frexp(value, &exponent), 53));
        int shift = 53 - exponent;  // the value is digits / 2 ** shift
        unsigned __int128 scaled = static_cast<unsigned __int128>(digits) * 1'000'000;
        unsigned __int128 half = static_cast<unsigned __int128>(1) << (shift - 1), rest = scaled & (2 * half - 1);
        auto rounded = static_cast<uint64_t>(scaled >> shift);
        rounded += rest > half || (rest == half && rounded % 2);
        add_integer(static_cast<int64_t>(rounded / 1'000'000));
        char text[8] = {'.', '0', '0', '0', '0', '0', '0', ','};
        for (uint64_t left = rounded % 1'000'000, place = 6; left; left /= 10, --place) {
            text[place] = static_cast<char>('0' + left % 10);
        }
        add({text, sizeof text});
    }
};

}  // namespace batsched
