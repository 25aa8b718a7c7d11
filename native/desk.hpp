// The desk at which users hand in their jobs (batsched_py/decision/desk.py is the specification).
//
// A job with usual times is registered here, and its profile if nothing but its length is to be known of it. All
// other things that users do, and every broken rule, are left to the Python class.
#pragma once
#include "broker.hpp"
#include "ledger.hpp"
#include "names.hpp"
#include "outputs.hpp"

inline PyObject *name_accepts, *name_add_job, *name_meet_profile, *name_take, *name_closing, *name_submit_job;

struct Desk {
    Ref broker, ledger, registry;
    Ref names, profiles;            // the registry's
    Ref known_profiles;             // sets of names, by workload
    Ref rule_broken;                // the class
    bool reuses_profiles = false;   // and the simulator neither acknowledges jobs nor plays workloads itself
    std::string workload;           // the last one that was looked up
    PyObject* known = nullptr;      // its set
    PyObject* registered = nullptr; // what the registry knows of it

    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&broker, &ledger, &registry, &names, &profiles, &known_profiles, &rule_broken}) function(*ref);
    }

    Broker& users() const { return of<Broker>(broker.get()); }

    bool is_open() const { return is_true(Ref(checked(PyObject_GetAttr(registry.get(), name_accepts))).get()); }

    // Whether what a job does is known; it is met if there is nothing to be said about it.
    bool knows(PyObject* job, PyObject* profile) {
        std::string_view id = text_of(job_id(job));
        std::string_view name = id.substr(0, std::min(id.find('!'), id.size()));
        if (!known || name != workload) {
            Ref key(checked(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()))));
            known = PyDict_GetItemWithError(known_profiles.get(), key.get());
            registered = PyDict_GetItemWithError(profiles.get(), key.get());
            if (!known || !registered) {
                known = nullptr;
                return false;
            }
            workload = name;
        }
        int found = PySet_Contains(known, job_profile(job));
        checked(found);
        if (found || !is_plain(profile) || !is_open()) return found;
        found = PyDict_Contains(registered, job_profile(job));
        checked(found);
        if (found) return false;
        checked(PyDict_SetItem(registered, job_profile(job), profile));
        checked(PySet_Add(known, job_profile(job)));
        return true;
    }

    // Whether a job may be made known whose profile is, and was not before.
    bool takes(PyObject* job) {
        PyObject* profile = PyDict_GetItemWithError(registered, job_profile(job));
        return profile && Py_TYPE(profile) == homogeneous.type && is_open() &&
               of<Names>(names.get()).take(text_of(job_id(job)));
    }

private:
    // Whether a profile is written down as it is, and nothing can be wrong with it.
    static bool is_plain(PyObject* profile) {
        if (Py_TYPE(profile) != homogeneous.type || slot(profile, homogeneous.extra) != Py_None) return false;
        PyObject *work = slot(profile, homogeneous.work), *spelling = slot(profile, homogeneous.spelling);
        if (!PyFloat_CheckExact(work) || !PyTuple_CheckExact(spelling) || PyTuple_GET_SIZE(spelling)) return false;
        double flops = PyFloat_AS_DOUBLE(work);
        return flops >= 0 && std::isfinite(flops) && flops == std::floor(flops) &&
               !is_true(slot(profile, homogeneous.bytes_sent));
    }
};

// Make a job known, whatever there is to be said about it.
inline void add_job(Desk& desk, PyObject* job) {
    PyObject* arguments[] = {desk.registry.get(), job};
    Ref added(PyObject_VectorcallMethod(name_add_job, arguments, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (added) return;
    if (!PyErr_ExceptionMatches(desk.rule_broken.get())) throw PythonError();
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    Ref owned[] = {Ref(type), Ref(error), Ref(traceback)};
    PyErr_Format(desk.rule_broken.get(), "RegisterJob %U: %S", job_id(job), error);
    throw PythonError();
}

// The job that a submission has registered at a time; nothing if there is more to be said about it.
inline Ref register_job(PyObject* self, PyObject* submission, double now) {
    Desk& desk = of<Desk>(self);
    PyObject* job = slot(submission, submission_slots.job);
    PyObject* walltime = slot(job, job_slots.walltime);
    if (!desk.reuses_profiles || !PyFloat_CheckExact(walltime)) return Ref();
    double seconds = PyFloat_AS_DOUBLE(walltime);
    if (!(seconds > 0) || !(seconds == INFINITY || seconds == std::floor(seconds))) return Ref();
    if (text_of(slot(submission, submission_slots.note)).find('"') != std::string_view::npos) return Ref();
    PyObject* profile = slot(submission, submission_slots.profile);
    bool known = desk.knows(job, profile);
    if (!known) call_method(self, name_meet_profile, job, profile);
    Ref made = call(reinterpret_cast<PyObject*>(job_slots.type), job_id(job), from_double(now).get(),
                    slot(job, job_slots.size), walltime, job_profile(job), slot(job, job_slots.extra));
    if (!known || !desk.takes(made.get())) add_job(desk, made.get());
    if (!of<Ledger>(desk.ledger.get()).submit(made.get())) {
        call_method(desk.ledger.get(), name_submit_job, made.get());
    }
    return made;
}

inline void prepare_desk(PyObject* module) {
    auto name = [](const char* text) { return checked(PyUnicode_InternFromString(text)); };
    name_accepts = name("accepts");
    name_add_job = name("add_job");
    name_meet_profile = name("_meet_profile");
    name_take = name("take");
    name_closing = name("closing");
    name_submit_job = name("submit");
    static PyMemberDef members[] = {MEMBER(Desk, registry, "_registry", T_OBJECT_EX),
                                    MEMBER(Desk, profiles, "_profiles", T_OBJECT_EX),
                                    MEMBER(Desk, rule_broken, "_rule_broken", T_OBJECT_EX),
                                    MEMBER(Desk, reuses_profiles, "_reuses_profiles", T_BOOL),
                                    {}};
    static PyGetSetDef getset[] = {
        TYPED(Desk, broker, Broker, "_broker"), TYPED(Desk, ledger, Ledger, "_ledger"),
        TYPED(Desk, names, Names, "_names"),
        {"_known_profiles", [](PyObject* self, void*) { return Py_XNewRef(of<Desk>(self).known_profiles.get()); },
         [](PyObject* self, PyObject* known, void*) {
             of<Desk>(self).known_profiles = Ref::to(known);
             of<Desk>(self).known = nullptr;
             return 0;
         },
         nullptr, nullptr},
        {}};
    checked(PyModule_AddType(module, &box_type<Desk>("batsched_py._native.SubmissionDesk",
                                                     "The desk at which users hand in their jobs.", nullptr, members,
                                                     getset)));
}
