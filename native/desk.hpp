// The desk at which users hand in their jobs (batsched_py/decision/desk.py is the specification).
//
// A job with usual times is registered here. New profiles, all other things that users do, and every broken
// rule are left to the Python class.
#pragma once
#include "broker.hpp"
#include "ledger.hpp"
#include "outputs.hpp"

inline PyObject *name_add_job, *name_meet_profile, *name_take, *name_closing, *name_submit_job;

struct Desk {
    Ref broker, ledger, registry;
    Ref known_profiles;          // sets of names, by workload
    Ref rule_broken;             // the class
    bool reuses_profiles = false;  // and neither acknowledges jobs nor plays workloads itself
    std::string workload;        // the last one that was looked up
    PyObject* known = nullptr;   // its set

    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&broker, &ledger, &registry, &known_profiles, &rule_broken}) function(*ref);
    }

    Broker& users() const { return of<Broker>(broker.get()); }

    bool knows(PyObject* job) {
        std::string_view id = text_of(job_id(job));
        std::string_view name = id.substr(0, std::min(id.find('!'), id.size()));
        if (!known || name != workload) {
            Ref key(checked(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()))));
            known = PyDict_GetItemWithError(known_profiles.get(), key.get());
            if (!known) return false;
            workload = name;
        }
        int found = PySet_Contains(known, job_profile(job));
        checked(found);
        return found;
    }
};

// The job that a submission has registered at a time; nothing if there is more to be said about it.
inline Ref register_job(PyObject* self, PyObject* submission, double now) {
    Desk& desk = of<Desk>(self);
    PyObject* job = slot(submission, submission_slots.job);
    PyObject* walltime = slot(job, job_slots.walltime);
    if (!desk.reuses_profiles || !PyFloat_CheckExact(walltime)) return Ref();
    double seconds = PyFloat_AS_DOUBLE(walltime);
    if (!(seconds > 0) || !(seconds == INFINITY || seconds == std::floor(seconds))) return Ref();
    if (text_of(slot(submission, submission_slots.note)).find('"') != std::string_view::npos) return Ref();
    if (!desk.knows(job)) call_method(self, name_meet_profile, job, slot(submission, submission_slots.profile));
    Ref made = call(reinterpret_cast<PyObject*>(job_slots.type), job_id(job), from_double(now).get(),
                    slot(job, job_slots.size), walltime, job_profile(job), slot(job, job_slots.extra));
    PyObject* arguments[] = {desk.registry.get(), made.get()};
    Ref added(PyObject_VectorcallMethod(name_add_job, arguments, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!added) {
        if (!PyErr_ExceptionMatches(desk.rule_broken.get())) throw PythonError();
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        PyErr_NormalizeException(&type, &error, &traceback);
        Ref owned[] = {Ref(type), Ref(error), Ref(traceback)};
        PyErr_Format(desk.rule_broken.get(), "RegisterJob %U: %S", job_id(job), error);
        throw PythonError();
    }
    if (!of<Ledger>(desk.ledger.get()).submit(made.get())) {
        call_method(desk.ledger.get(), name_submit_job, made.get());
    }
    return made;
}

inline void prepare_desk(PyObject* module) {
    auto name = [](const char* text) { return checked(PyUnicode_InternFromString(text)); };
    name_add_job = name("add_job");
    name_meet_profile = name("_meet_profile");
    name_take = name("take");
    name_closing = name("closing");
    name_submit_job = name("submit");
    static PyMemberDef members[] = {MEMBER(Desk, registry, "_registry", T_OBJECT_EX),
                                    MEMBER(Desk, rule_broken, "_rule_broken", T_OBJECT_EX),
                                    MEMBER(Desk, reuses_profiles, "_reuses_profiles", T_BOOL),
                                    {}};
    static PyGetSetDef getset[] = {
        TYPED(Desk, broker, Broker, "_broker"), TYPED(Desk, ledger, Ledger, "_ledger"),
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
