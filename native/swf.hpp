// The jobs of a log in the Standard Workload Format, made of a text in which nothing is unusual.
//
// The specification is batsched_py/workload: `read_swf` and `swf_to_workload`. A text with anything in it that
// has to be reported is left to them.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "jobs.hpp"

namespace swf {

constexpr int kFields = 18;
constexpr size_t kShortLine = 48;  // most lines are longer
constexpr double kLargest = 9007199254740992.0;  // 2 ** 53

enum Field { kNumber, kSubmit, kWait, kRunTime, kAllocated, kCpu, kMemory, kRequested, kRequestedTime, kUser = 11 };
constexpr std::array<const char*, 5> kExtraNames = {"user", "group", "executable", "queue", "partition"};
constexpr std::array<bool, kFields> kWhole = {true,  false, false, false, true, false, false, true, false,
                                              false, true,  true,  true,  true, true,  true,  true, false};

using Line = std::array<double, kFields>;
using Extra = std::array<double, 5>;

struct Hash {
    // The zero makes one number of the two zeros.
    size_t operator()(double value) const { return (std::bit_cast<uint64_t>(value + 0.0) * 0x9E3779B97F4A7C15) >> 20; }
    size_t operator()(const Extra& values) const {
        size_t hash = 0;
        for (double value : values) hash = hash * 1000003 + (*this)(value);
        return hash;
    }
};

// Values of which each is kept once, and known by its number from then on.
template <class Value>
class Distinct {
public:
    std::vector<Value> values;

    uint32_t number_of(const Value& value) {
        if (!values.empty() && values[last_] == value) return last_;
        auto [place, is_new] = numbers_.try_emplace(value, static_cast<uint32_t>(values.size()));
        if (is_new) values.push_back(value);
        return last_ = place->second;
    }

private:
    std::unordered_map<Value, uint32_t, Hash> numbers_;
    uint32_t last_ = 0;  // many a line is like the one before
};

// What is needed of a line.
struct Record {
    double number, submit, wait, processors, requested_time;
    uint32_t run_time, extra;  // their numbers among the distinct ones
};

struct Log {
    std::vector<Record> records;
    Distinct<double> run_times;
    Distinct<Extra> extras;
    std::vector<std::string> comments;

    void add(const Line& line) {
        Extra extra;
        std::copy_n(line.begin() + kUser, extra.size(), extra.begin());
        records.push_back({line[kNumber], line[kSubmit], line[kWait],
                           line[kAllocated] > 0 ? line[kAllocated] : line[kRequested], line[kRequestedTime],
                           run_times.number_of(line[kRunTime]), extras.number_of(extra)});
    }
};

inline bool is_space(char letter) { return static_cast<unsigned char>(letter) <= ' '; }

inline bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// Reads the word that a text begins with, if it is a number in plain digits.
inline bool read_number(const char*& text, const char* end, double& number) {
    const char* word = text;
    bool negative = text != end && *text == '-';
    const char* digits = text += negative;
    if (text == end || !is_digit(*text)) return false;
    int64_t whole = 0;
    for (; text != end && is_digit(*text) && text - digits < 16; ++text) whole = 10 * whole + (*text - '0');
    if (text == end || is_space(*text)) {
        number = static_cast<double>(negative ? -whole : whole);
        return true;
    }
    while (text != end && !is_space(*text)) ++text;
    auto [stop, error] = std::from_chars(word, text, number, std::chars_format::fixed);
    return stop == text && error == std::errc();
}

inline bool is_usual(const Line& line) {
    for (int field = 0; field < kFields; ++field) {
        if (std::abs(line[field]) > kLargest) return false;
        if (kWhole[field] && line[field] != static_cast<double>(static_cast<int64_t>(line[field]))) return false;
    }
    return line[kSubmit] >= 0 && line[kRunTime] >= 0;
}

inline bool has_twins(const std::vector<Record>& records) {
    bool ascend = true;
    for (size_t place = 1; place < records.size(); ++place) {
        ascend &= records[place - 1].number < records[place].number;
    }
    if (ascend) return false;
    std::unordered_set<double> seen;
    return !std::all_of(records.begin(), records.end(),
                        [&](const Record& record) { return seen.insert(record.number).second; });
}

// Reads whole lines; whether all of them are usual.
inline bool read_lines(Log& log, std::string_view lines) {
    const char *text = lines.data(), *end = text + lines.size();
    while (text != end) {
        while (text != end && is_space(*text)) ++text;  // blank lines too
        if (text == end) break;
        if (*text == ';') {
            const char* stop = std::find(text, end, '\n');
            log.comments.emplace_back(text, stop);
            text = stop;
            continue;
        }
        Line line;
        for (int field = 0; field < kFields; ++field) {
            while (text != end && is_space(*text) && *text != '\n') ++text;
            if (!read_number(text, end, line[field])) return false;
        }
        while (text != end && is_space(*text) && *text != '\n') ++text;
        if ((text != end && *text != '\n') || !is_usual(line)) return false;
        log.add(line);
    }
    return true;
}

// The records of all pieces in the order of their submissions; nothing if any line is unusual or the log large.
inline std::optional<Log> read(PyObject* pieces, size_t largest) {
    Log log;
    log.records.reserve(largest / kShortLine);  // which is no memory yet
    size_t size = 0;
    Ref each(checked(PyObject_GetIter(pieces)));
    while (Ref piece = Ref(PyIter_Next(each.get()))) {
        char* text;
        Py_ssize_t length;
        checked(PyBytes_AsStringAndSize(piece.get(), &text, &length));
        size += static_cast<size_t>(length);
        if (size > largest || !read_lines(log, {text, static_cast<size_t>(length)})) return std::nullopt;
    }
    checked(PyErr_Occurred() ? -1 : 0);
    if (log.records.empty() || has_twins(log.records)) return std::nullopt;
    auto earlier = [](const Record& one, const Record& other) { return one.submit < other.submit; };
    if (!std::is_sorted(log.records.begin(), log.records.end(), earlier)) {
        std::stable_sort(log.records.begin(), log.records.end(), earlier);
    }
    return log;
}

// Who submitted what to where, in one dictionary for each combination.
inline std::vector<Ref> make_extras(const std::vector<Extra>& combinations) {
    std::vector<Ref> made;
    for (const Extra& values : combinations) {
        Ref extra(checked(PyDict_New()));
        for (size_t place = 0; place < values.size(); ++place) {
            if (values[place] == -1) continue;
            checked(PyDict_SetItemString(extra.get(), kExtraNames[place],
                                         from_int(static_cast<int64_t>(values[place])).get()));
        }
        made.push_back(extra);
    }
    return made;
}

// The profiles that last as long as the run times that jobs have, from the shortest on.
struct Profiles {
    Ref by_name{PyDict_New()};
    std::vector<Ref> names;  // by the numbers of the run times

    Profiles(const Log& log, double speed) : names(log.run_times.values.size()) {
        const std::vector<double>& run_times = log.run_times.values;
        std::vector<bool> is_used(run_times.size());
        for (const Record& record : log.records) is_used[record.run_time] = true;
        std::vector<uint32_t> order;
        for (uint32_t number = 0; number < run_times.size(); ++number) {
            if (is_used[number]) order.push_back(number);
        }
        std::sort(order.begin(), order.end(),
                  [&](uint32_t one, uint32_t other) { return run_times[one] < run_times[other]; });
        for (uint32_t number : order) {
            double run_time = run_times[number];
            names[number] = Ref(checked(PyUnicode_FromString(("run_" + spelled(run_time)).c_str())));
            Ref profile = call(reinterpret_cast<PyObject*>(homogeneous.type), from_double(run_time * speed).get());
            checked(PyDict_SetItem(by_name.get(), names[number].get(), profile.get()));
        }
    }
};

// A number as Python has it; jobs that follow each other and have the same one share it.
class Shared {
public:
    PyObject* of(double value) {
        if (!number_ || PyFloat_AS_DOUBLE(number_.get()) != value) number_ = from_double(value);
        return number_.get();
    }

private:
    Ref number_;
};

// Jobs, profiles by their names, recorded finishes, comments, and how many jobs have no processors.
inline PyObject* read_jobs(PyObject*, PyObject* arguments) {
    return guarded([&]() -> PyObject* {
        PyObject* pieces;
        const char* workload;
        Py_ssize_t largest;
        double factor, speed;
        int requested_only;
        if (!PyArg_ParseTuple(arguments, "Onsdpd", &pieces, &largest, &workload, &factor, &requested_only, &speed)) {
            throw PythonError();
        }
        std::optional<Log> log = read(pieces, static_cast<size_t>(largest));
        if (!log) return Py_NewRef(Py_None);
        std::vector<Record>& records = log->records;
        size_t before = records.size();
        std::erase_if(records, [](const Record& record) { return record.processors <= 0; });
        if (records.empty()) return Py_NewRef(Py_None);

        Profiles profiles(*log, speed);
        std::vector<Ref> extras = make_extras(log->extras.values);
        Shared submissions, walltimes;
        double first = records[0].submit;
        auto count = static_cast<Py_ssize_t>(records.size());
        Ref jobs(checked(PyList_New(count)));
        std::vector<double> finishes;
        finishes.reserve(records.size());
        std::string id = std::string(workload) + "!";
        size_t prefix = id.size();
        for (Py_ssize_t place = 0; place < count; ++place) {
            const Record& record = records[place];
            double run_time = log->run_times.values[record.run_time];
            double walltime = std::max(record.requested_time, 0.0);
            if (!requested_only) walltime = std::max(walltime, factor * run_time);
            if (walltime == 0) walltime = std::numeric_limits<double>::infinity();
            char digits[24];
            id.resize(prefix);
            id.append(digits, std::to_chars(digits, digits + sizeof digits, static_cast<int64_t>(record.number)).ptr);
            double submission = record.submit - first;
            Ref name(checked(PyUnicode_FromStringAndSize(id.data(), static_cast<Py_ssize_t>(id.size()))));
            Ref job = call(reinterpret_cast<PyObject*>(job_slots.type), name.get(), submissions.of(submission),
                           from_int(static_cast<int64_t>(record.processors)).get(), walltimes.of(walltime),
                           profiles.names[record.run_time].get(), extras[record.extra].get());
            PyList_SET_ITEM(jobs.get(), place, job.release());
            finishes.push_back(submission + std::max(record.wait, 0.0) + run_time);
        }
        Ref comments(checked(PyList_New(0)));
        for (const std::string& comment : log->comments) {
            Ref line(checked(PyBytes_FromStringAndSize(comment.data(), static_cast<Py_ssize_t>(comment.size()))));
            checked(PyList_Append(comments.get(), line.get()));
        }
        return checked(Py_BuildValue("OOy#Onn", jobs.get(), profiles.by_name.get(),
                                     reinterpret_cast<const char*>(finishes.data()),
                                     static_cast<Py_ssize_t>(finishes.size() * sizeof(double)), comments.get(),
                                     static_cast<Py_ssize_t>(before - records.size()),
                                     static_cast<Py_ssize_t>(before)));
    });
}

}  // namespace swf

inline void prepare_swf(PyObject* module) {
    static PyMethodDef functions[] = {
        {"read_jobs", swf::read_jobs, METH_VARARGS, "The jobs of a log in which nothing is unusual, else nothing."},
        {}};
    checked(PyModule_AddFunctions(module, functions));
}
