// The rows of jobs.csv, and sums over them (batsched_py/simulator/outputs.py is the specification).
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <cstring>
#include <memory>
#include <string_view>

#include "hosts.hpp"
#include "jobs.hpp"

inline PyObject* name_flush;

// A text that grows at its end.
class Text {
public:
    size_t size = 0;
    const char* data() const { return letters_.get(); }

    // Makes room for so many more letters, which then can be added without looking.
    void reserve(size_t more) {
        if (size + more <= capacity_) return;
        capacity_ = 2 * (size + more);
        std::unique_ptr<char[]> larger(new char[capacity_]);
        if (size) std::memcpy(larger.get(), letters_.get(), size);
        letters_ = std::move(larger);
    }

    void add(std::string_view part) {
        std::memcpy(letters_.get() + size, part.data(), part.size());
        size += part.size();
    }

    template <class Number, class... Format>
    void add_number(Number value, Format... format) {
        char* end = letters_.get() + size;
        size = std::to_chars(end, letters_.get() + capacity_, value, format...).ptr - letters_.get();
    }

private:
    std::unique_ptr<char[]> letters_;
    size_t capacity_ = 0;
};

struct Results {
    long long nb_jobs = 0, nb_success = 0;
    double makespan = 0;
    double sum_waiting = 0, max_waiting = 0;
    double sum_turnaround = 0, max_turnaround = 0;
    double sum_slowdown = 0, max_slowdown = 0;
    double sum_bounded_slowdown = 0;
};

class Outputs {
public:
    Ref results;
    bool writes = false;  // whether there are files

    template <class Function>
    void each_ref(Function function) {
        function(results);
    }

    struct Ended {
        PyObject* job;
        std::string_view state;
        bool success;
        std::string_view hosts;
        double start, end, joules;
        std::string_view metadata;
    };

    void count(const Ended& ended) {
        double submission = job_submission(ended.job), walltime = job_walltime(ended.job);
        double runtime = ended.end - ended.start;
        if (runtime == 0) runtime = 1e-5;
        double finish = ended.start + runtime;
        double waiting = ended.start - submission;
        double turnaround = finish - submission;
        double slowdown = turnaround / runtime;
        Results& sums = of<Results>(results.get());
        ++sums.nb_jobs;
        sums.nb_success += ended.success;
        sums.sum_waiting += waiting;
        sums.sum_turnaround += turnaround;
        sums.sum_slowdown += slowdown;
        sums.sum_bounded_slowdown += std::max(1.0, turnaround / std::max(runtime, kSlowdownBound));
        if (finish > sums.makespan) sums.makespan = finish;
        if (waiting > sums.max_waiting) sums.max_waiting = waiting;
        if (turnaround > sums.max_turnaround) sums.max_turnaround = turnaround;
        if (slowdown > sums.max_slowdown) sums.max_slowdown = slowdown;
        if (!writes) return;
        std::string_view id = text_of(job_id(ended.job)), profile = text_of(job_profile(ended.job));
        size_t mark = std::min(id.find('!'), id.size());
        rows_.reserve(2 * (id.size() + profile.size()) + ended.hosts.size() + ended.metadata.size() + kNumbers);
        name(id.substr(std::min(mark + 1, id.size())));
        name(id.substr(0, mark));
        name(profile);
        decimal(submission);
        rows_.add_number(job_size(ended.job));
        rows_.add(",");
        decimal(walltime == INFINITY ? -1.0 : walltime);
        rows_.add(ended.success ? "1," : "0,");
        text(ended.state);
        for (double value : {ended.start, runtime, finish, waiting, turnaround, slowdown}) decimal(value);
        text(ended.hosts);
        decimal(ended.joules);
        rows_.add("\"");
        rows_.add(ended.metadata);
        rows_.add("\"\n");
    }

    bool is_full() const { return rows_.size > (1 << 16); }

    void append(std::string_view row) {
        rows_.reserve(row.size());
        rows_.add(row);
    }

    // The rows since this was last called.
    Ref take() {
        Ref taken(checked(PyUnicode_DecodeUTF8(rows_.data(), static_cast<Py_ssize_t>(rows_.size), "strict")));
        rows_.size = 0;
        return taken;
    }

private:
    static constexpr size_t kNumbers = 4096;  // letters, enough for all numbers of a row and some quotes
    static constexpr double kSlowdownBound = 10.0;  // seconds; outputs.SLOWDOWN_BOUND
    Text rows_;

    void text(std::string_view part) {
        rows_.add(part);
        rows_.add(",");
    }

    // A name may have commas and quotes.
    void name(std::string_view part) {
        auto separates = [](char letter) { return letter == '"' || letter == ',' || letter == '\r' || letter == '\n'; };
        if (std::none_of(part.begin(), part.end(), separates)) return text(part);
        rows_.add("\"");
        for (char letter : part) rows_.add(letter == '"' ? std::string_view("\"\"") : std::string_view(&letter, 1));
        rows_.add("\",");
    }

    // Six decimals of a number from 1 to 10 ** 12: in binary it is an integer over a power of two, so that all of it
    // can be counted in integers. Halves go to the even neighbour.
    void millionths(double value) {
        int exponent;
        auto digits = static_cast<uint64_t>(std::ldexp(std::frexp(value, &exponent), 53));
        int shift = 53 - exponent;  // the value is digits / 2 ** shift
        unsigned __int128 scaled = static_cast<unsigned __int128>(digits) * 1'000'000;
        unsigned __int128 half = static_cast<unsigned __int128>(1) << (shift - 1), rest = scaled & (2 * half - 1);
        auto rounded = static_cast<uint64_t>(scaled >> shift);
        rounded += rest > half || (rest == half && rounded % 2);
        rows_.add_number(rounded / 1'000'000);
        char text[8] = ".000000";
        for (uint64_t left = rounded % 1'000'000, place = 6; left; left /= 10, --place) text[place] += left % 10;
        text[7] = ',';
        rows_.add({text, 8});
    }

    // Six decimals, correctly rounded.
    void decimal(double value) {
        if (std::abs(value) < 1e15 && value == std::floor(value) && !(value == 0 && std::signbit(value))) {
            rows_.add_number(static_cast<int64_t>(value));
            rows_.add(".000000,");
        } else if (value >= 1 && value < 1e12) {
            millionths(value);
        } else if (std::isfinite(value)) {
            rows_.add_number(value, std::chars_format::fixed, 6);
            rows_.add(",");
        } else {
            text(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        }
    }
};

// Counts a job that has ended, and lets Python write the rows when they are many.
inline void count_end(PyObject* self, const Outputs::Ended& ended) {
    Outputs& outputs = of<Outputs>(self);
    outputs.count(ended);
    if (outputs.is_full()) call_method(self, name_flush);
}

inline void write_hosts(std::string& text, const Runs& hosts) {
    text.clear();
    char digits[24];
    for (const Run& run : hosts) {
        if (!text.empty()) text += ' ';
        text.append(digits, std::to_chars(digits, digits + sizeof digits, run.first).ptr);
        if (run.last == run.first) continue;
        text += '-';
        text.append(digits, std::to_chars(digits, digits + sizeof digits, run.last).ptr);
    }
}

inline void prepare_outputs(PyObject* module) {
    name_flush = checked(PyUnicode_InternFromString("_flush"));
    static PyMemberDef sums[] = {MEMBER(Results, nb_jobs, "nb_jobs", T_LONGLONG),
                                 MEMBER(Results, nb_success, "nb_success", T_LONGLONG),
                                 MEMBER(Results, makespan, "makespan", T_DOUBLE),
                                 MEMBER(Results, sum_waiting, "sum_waiting", T_DOUBLE),
                                 MEMBER(Results, max_waiting, "max_waiting", T_DOUBLE),
                                 MEMBER(Results, sum_turnaround, "sum_turnaround", T_DOUBLE),
                                 MEMBER(Results, max_turnaround, "max_turnaround", T_DOUBLE),
                                 MEMBER(Results, sum_slowdown, "sum_slowdown", T_DOUBLE),
                                 MEMBER(Results, max_slowdown, "max_slowdown", T_DOUBLE),
                                 MEMBER(Results, sum_bounded_slowdown, "sum_bounded_slowdown", T_DOUBLE),
                                 {}};
    checked(PyModule_AddType(module, &box_type<Results>("batsched_py._native.Results", "Sums over finished jobs.",
                                                        nullptr, sums)));

    static PyMethodDef methods[] = {
        {"finished",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject *job, *state, *hosts, *metadata;
                 double start, end, joules;
                 if (!PyArg_ParseTuple(arguments, "OUOdddU", &job, &state, &hosts, &start, &end, &joules,
                                       &metadata)) {
                     throw PythonError();
                 }
                 std::string text;
                 write_hosts(text, runs_of(hosts));
                 bool success = text_of(state) == "COMPLETED_SUCCESSFULLY";
                 count_end(self, {checked_job(job), text_of(state), success, text, start, end, joules,
                                  text_of(metadata)});
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "A job left its hosts."},
        {"_append",
         [](PyObject* self, PyObject* row) {
             return guarded([&] {
                 of<Outputs>(self).append(text_of(row));
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "Add a row."},
        {"_take", [](PyObject* self, PyObject*) { return guarded([&] { return of<Outputs>(self).take().release(); }); },
         METH_NOARGS, "The rows since this was last called."},
        {}};
    static PyMemberDef members[] = {MEMBER(Outputs, writes, "_writes", T_BOOL), {}};
    static PyGetSetDef getset[] = {TYPED(Outputs, results, Results, "_sums"), {}};
    checked(PyModule_AddType(module, &box_type<Outputs>("batsched_py._native.Outputs", "The rows of jobs.csv.", methods,
                                                        members, getset)));
}
