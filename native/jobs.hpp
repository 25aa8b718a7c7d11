// What a job says about itself, read where a Struct keeps it.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>

#include "python.hpp"

struct JobSlots {
    PyTypeObject* type;
    Py_ssize_t id, submission, size, walltime, profile, extra;
};

inline JobSlots job_slots;
inline PyObject* name_user;

inline PyObject* checked_job(PyObject* job) {
    if (!PyObject_TypeCheck(job, job_slots.type)) {
        PyErr_Format(PyExc_TypeError, "a job is needed, not %R", job);
        throw PythonError();
    }
    return job;
}

inline std::string_view text_of(PyObject* text) {
    Py_ssize_t length;
    const char* letters = PyUnicode_AsUTF8AndSize(text, &length);
    if (!letters) throw PythonError();
    return {letters, static_cast<size_t>(length)};
}

// A number of usual size as names and notes spell it: without decimals if it is whole, else as Python does.
inline std::string spelled(double value) {
    if (value == std::floor(value)) return std::to_string(static_cast<int64_t>(value));
    char* text = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    if (!text) throw PythonError();
    std::string copy(text);
    PyMem_Free(text);
    return copy;
}

inline PyObject* job_id(PyObject* job) { return slot(job, job_slots.id); }
inline PyObject* job_profile(PyObject* job) { return slot(job, job_slots.profile); }
inline int64_t job_size(PyObject* job) { return as_int(slot(job, job_slots.size)); }
inline double job_submission(PyObject* job) { return as_double(slot(job, job_slots.submission)); }
inline double job_walltime(PyObject* job) { return as_double(slot(job, job_slots.walltime)); }

// What a profile says in which nothing is to be known of a job but how long it takes.
struct HomogeneousSlots {
    PyTypeObject* type;
    Py_ssize_t work, bytes_sent, return_code, extra, spelling;
};

inline HomogeneousSlots homogeneous;

// Jobs in the order of their submissions.
class Submissions {
public:
    struct Submitted {
        double time;
        PyObject* job;
        Py_ssize_t place;
    };
    std::vector<Submitted> order;

    explicit Submissions(PyObject* jobs) : jobs_(checked(PySequence_Fast(jobs, "jobs are a sequence"))) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(jobs_.get());
        order.reserve(static_cast<size_t>(count));
        for (Py_ssize_t place = 0; place < count; ++place) {
            PyObject* job = checked_job(PySequence_Fast_GET_ITEM(jobs_.get(), place));
            order.push_back({job_submission(job), job, place});
        }
        auto earlier = [](const Submitted& one, const Submitted& other) { return one.time < other.time; };
        if (std::is_sorted(order.begin(), order.end(), earlier)) return;
        std::stable_sort(order.begin(), order.end(), earlier);
    }

private:
    Ref jobs_;
};

// The places of each user's jobs, in the order of submission; those of nobody are under None.
inline Ref by_user(PyObject* jobs) {
    Submissions submissions(jobs);
    Ref users(checked(PyDict_New()));
    std::unordered_map<PyObject*, PyObject*> known;  // what was said of a user, and the places that belong to it
    for (const auto& [time, job, place] : submissions.order) {
        PyObject* user = PyDict_GetItemWithError(slot(job, job_slots.extra), name_user);
        checked(!user && PyErr_Occurred() ? -1 : 0);
        PyObject*& places = known[user];
        if (!places) {
            Ref name(user && user != Py_None ? checked(PyObject_Str(user)) : Py_NewRef(Py_None));
            Ref none_yet(checked(PyList_New(0)));
            places = checked(PyDict_SetDefault(users.get(), name.get(), none_yet.get()));
        }
        checked(PyList_Append(places, from_int(place).get()));
    }
    return users;
}

// Jobs as Batsim submits those of a workload file: by time, then by the letters of their ids.
inline Ref in_submission_order(PyObject* jobs) {
    Submissions submissions(jobs);
    using Submitted = Submissions::Submitted;
    std::vector<Submitted>& order = submissions.order;
    for (auto begin = order.begin(), end = begin; begin != order.end(); begin = end) {
        while (end != order.end() && end->time == begin->time) ++end;
        if (end - begin < 2) continue;
        std::stable_sort(begin, end, [](const Submitted& one, const Submitted& other) {
            return PyUnicode_Compare(job_id(one.job), job_id(other.job)) < 0;
        });
    }
    Ref list(checked(PyList_New(static_cast<Py_ssize_t>(order.size()))));
    for (size_t place = 0; place < order.size(); ++place) {
        PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(place), Py_NewRef(order[place].job));
    }
    return list;
}

inline void prepare_jobs(PyObject* module) {
    name_user = checked(PyUnicode_InternFromString("user"));
    static PyMethodDef functions[] = {
        {"by_user", [](PyObject*, PyObject* jobs) { return guarded([&] { return by_user(jobs).release(); }); }, METH_O,
         "The places of each user's jobs, in the order of submission."},
        {"in_submission_order",
         [](PyObject*, PyObject* jobs) { return guarded([&] { return in_submission_order(jobs).release(); }); },
         METH_O, "Jobs by the time of their submission, then by the letters of their ids."},
        {}};
    checked(PyModule_AddFunctions(module, functions));
    Ref jobs(checked(PyImport_ImportModule("batsched_py.protocol.jobs")));
    PyObject* type = attribute(jobs.get(), "Job").release();
    job_slots = {reinterpret_cast<PyTypeObject*>(type), slot_offset(type, "id"),
                 slot_offset(type, "submission_time"),  slot_offset(type, "size"),
                 slot_offset(type, "walltime"),         slot_offset(type, "profile"),
                 slot_offset(type, "extra")};
    Ref profiles(checked(PyImport_ImportModule("batsched_py.protocol.profiles")));
    type = attribute(profiles.get(), "Homogeneous").release();
    homogeneous = {reinterpret_cast<PyTypeObject*>(type), slot_offset(type, "work"),
                   slot_offset(type, "bytes_sent"),       slot_offset(type, "return_code"),
                   slot_offset(type, "extra"),            slot_offset(type, "spelling")};
}
