// The jobs of a log in the Standard Workload Format, made of a text in which nothing is unusual.
//
// The specification is batsched_py/workload: `read_swf` and `swf_to_workload`. A text with anything in it that
// has to be reported is left to them.
#pragma once
#include <algorithm>
#include <array>
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

// What is needed of a line.
struct Record {
    double number, submit, wait, run_time, processors, requested_time;
    Extra extra;

    explicit Record(const Line& line)
        : number(line[kNumber]),
          submit(line[kSubmit]),
          wait(line[kWait]),
          run_time(line[kRunTime]),
          processors(line[kAllocated] > 0 ? line[kAllocated] : line[kRequested]),
          requested_time(line[kRequestedTime]) {
        std::copy_n(line.begin() + kUser, extra.size(), extra.begin());
    }
};

struct Log {
    std::vector<Record> records;
    std::vector<std::string_view> comments;
};

inline bool is_space(char letter) { return static_cast<unsigned char>(letter) <= ' '; }

// The number that a word is, if it is one in plain digits.
inline bool read_number(const char* word, const char* end, double& number) {
    const char* digits = word + (*word == '-');
    if (digits == end || *digits < '0' || *digits > '9') return false;
    int64_t whole = 0;
    const char* place = digits;
    for (; place != end && *place >= '0' && *place <= '9' && place - digits < 16; ++place) {
        whole = 10 * whole + (*place - '0');
    }
    if (place == end) {
        number = static_cast<double>(*word == '-' ? -whole : whole);
        return true;
    }
    auto [stop, error] = std::from_chars(word, end, number, std::chars_format::fixed);
    return stop == end && error == std::errc();
}

inline bool is_usual(const Line& line) {
    for (int field = 0; field < kFields; ++field) {
        if (std::abs(line[field]) > kLargest) return false;
        if (kWhole[field] && line[field] != std::floor(line[field])) return false;
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

// The records in the order of their submissions; nothing if any line is unusual.
inline std::optional<Log> read(const char* text, size_t length) {
    Log log;
    log.records.reserve(length / kShortLine);
    const char* end = text + length;
    while (text != end) {
        while (text != end && is_space(*text)) ++text;  // blank lines too
        if (text == end) break;
        if (*text == ';') {
            const char* stop = std::find(text, end, '\n');
            log.comments.push_back({text, static_cast<size_t>(stop - text)});
            text = stop;
            continue;
        }
        Line line;
        for (int field = 0; field < kFields; ++field) {
            while (text != end && is_space(*text) && *text != '\n') ++text;
            const char* word = text;
            while (text != end && !is_space(*text)) ++text;
            if (word == text || !read_number(word, text, line[field])) return std::nullopt;
        }
        while (text != end && is_space(*text) && *text != '\n') ++text;
        if ((text != end && *text != '\n') || !is_usual(line)) return std::nullopt;
        log.records.emplace_back(line);
    }
    if (log.records.empty() || has_twins(log.records)) return std::nullopt;
    auto earlier = [](const Record& one, const Record& other) { return one.submit < other.submit; };
    if (!std::is_sorted(log.records.begin(), log.records.end(), earlier)) {
        std::stable_sort(log.records.begin(), log.records.end(), earlier);
    }
    return log;
}

struct ExtraHash {
    size_t operator()(const Extra& values) const {
        size_t hash = 0;
        for (double value : values) hash = hash * 1000003 + std::hash<double>()(value);
        return hash;
    }
};

// Who submitted what to where, in one dictionary for each combination.
class Extras {
public:
    PyObject* of_record(const Record& record) {
        const Extra& values = record.extra;
        Ref& extra = shared_[values];
        if (!extra) {
            extra = Ref(checked(PyDict_New()));
            for (size_t place = 0; place < values.size(); ++place) {
                if (values[place] == -1) continue;
                checked(PyDict_SetItemString(extra.get(), kExtraNames[place],
                                             from_int(static_cast<int64_t>(values[place])).get()));
            }
        }
        return extra.get();
    }

private:
    std::unordered_map<Extra, Ref, ExtraHash> shared_;
};

// A number as Python's workloads spell it in names.
inline std::string spelled(double value) {
    if (value == std::floor(value)) return std::to_string(static_cast<int64_t>(value));
    char* text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    if (!text) throw PythonError();
    std::string copy(text);
    PyMem_Free(text);
    return copy;
}

// The run times of a log, and the names of the profiles that last as long.
class Profiles {
public:
    Ref run_times{PyDict_New()};  // by name

    explicit Profiles(const std::vector<Record>& records) {
        for (const Record& record : records) sorted_.push_back(record.run_time);
        std::sort(sorted_.begin(), sorted_.end());
        sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
        for (double run_time : sorted_) {
            names_.emplace_back(checked(PyUnicode_FromString(("run_" + spelled(run_time)).c_str())));
            checked(PyDict_SetItem(run_times.get(), names_.back().get(), from_double(run_time).get()));
        }
    }

    PyObject* name_of(const Record& record) const {
        return names_[std::lower_bound(sorted_.begin(), sorted_.end(), record.run_time) - sorted_.begin()].get();
    }

private:
    std::vector<double> sorted_;
    std::vector<Ref> names_;
};

// Jobs, run times by the names of profiles, recorded finishes, comments, and how many jobs have no processors.
inline PyObject* read_jobs(PyObject*, PyObject* arguments) {
    return guarded([&]() -> PyObject* {
        const char *text, *workload;
        Py_ssize_t length;
        double factor;
        int requested_only;
        if (!PyArg_ParseTuple(arguments, "y#sdp", &text, &length, &workload, &factor, &requested_only)) {
            throw PythonError();
        }
        std::optional<Log> log = read(text, static_cast<size_t>(length));
        if (!log) return Py_NewRef(Py_None);
        std::vector<Record>& records = log->records;
        size_t before = records.size();
        std::erase_if(records, [](const Record& record) { return record.processors <= 0; });
        if (records.empty()) return Py_NewRef(Py_None);

        Profiles profiles(records);
        Extras extras;
        double first = records[0].submit;
        auto count = static_cast<Py_ssize_t>(records.size());
        Ref jobs(checked(PyList_New(count))), finishes(checked(PyList_New(count)));
        std::string id = std::string(workload) + "!";
        size_t prefix = id.size();
        for (Py_ssize_t place = 0; place < count; ++place) {
            const Record& record = records[place];
            double walltime = std::max(record.requested_time, 0.0);
            if (!requested_only) walltime = std::max(walltime, factor * record.run_time);
            if (walltime == 0) walltime = std::numeric_limits<double>::infinity();
            char digits[24];
            id.resize(prefix);
            id.append(digits, std::to_chars(digits, digits + sizeof digits, static_cast<int64_t>(record.number)).ptr);
            double submission = record.submit - first;
            Ref name(checked(PyUnicode_FromStringAndSize(id.data(), static_cast<Py_ssize_t>(id.size()))));
            Ref job = call(reinterpret_cast<PyObject*>(job_slots.type), name.get(), from_double(submission).get(),
                           from_int(static_cast<int64_t>(record.processors)).get(), from_double(walltime).get(),
                           profiles.name_of(record), extras.of_record(record));
            PyList_SET_ITEM(jobs.get(), place, job.release());
            double finish = submission + std::max(record.wait, 0.0) + record.run_time;
            PyList_SET_ITEM(finishes.get(), place, from_double(finish).release());
        }
        Ref comments(checked(PyList_New(0)));
        for (std::string_view comment : log->comments) {
            Ref line(checked(PyBytes_FromStringAndSize(comment.data(), static_cast<Py_ssize_t>(comment.size()))));
            checked(PyList_Append(comments.get(), line.get()));
        }
        return checked(Py_BuildValue("OOOOnn", jobs.get(), profiles.run_times.get(), finishes.get(), comments.get(),
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
