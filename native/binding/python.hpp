// Between Python and the library: text, hosts, jobs and what a policy hands over. Python objects of jobs are made when
// somebody looks at them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "simulation.hpp"

namespace nb = nanobind;

namespace batsched {

// The Python classes that are needed here, as `prepare` was given them; they live as long as the module.
inline struct Types {
    nb::handle job, read_only, host_set, submission, withdrawal, computation, delay, states, rule_broken, policy_error, event_broken;
    nb::handle running_job, reservation, availability_profile;
    nb::handle without_dependencies;
    nb::handle blame, next_time, actions, user_name;
    nb::handle check_job, check_name, check_function, expected, number, count, misused, refuse_copy, pause;
} types;

// Asks Python, with its lock, which the library may have let go of.
template <class Function>
auto locked(Function function) {
    return [function = std::move(function)](auto&&... given) {
        nb::gil_scoped_acquire lock;
        return function(std::forward<decltype(given)>(given)...);
    };
}

// --- what a policy hands over: anything unusual is checked by Python, so that both engines say the same of it -----

inline void check_job(nb::handle job) {
    if (!job.type().is(types.job)) types.check_job(job);
}

[[noreturn]] inline void throw_expected(const char* kind, nb::handle given) {
    nb::object error = types.expected(kind, given);
    PyErr_SetObject(PyExc_TypeError, error.ptr());
    throw nb::python_error();
}

inline double number_from(nb::handle value) {
    if (PyFloat_CheckExact(value.ptr()) && !std::isnan(PyFloat_AS_DOUBLE(value.ptr()))) {
        return PyFloat_AS_DOUBLE(value.ptr());
    }
    return nb::cast<double>(types.number(value));
}

inline int64_t count_from(nb::handle value) { return nb::cast<int64_t>(types.count(value)); }

inline bool is_true(nb::handle value) {
    int truth = PyObject_IsTrue(value.ptr());
    if (truth < 0) throw nb::python_error();
    return truth;
}

// Binds a method whose arguments may be of any kind. If their number or names are wrong, Python says so: `kind` is the
// class of the Python engine that has the same method.
template <class Class, class Function, class... Arguments>
void method(Class& bound, const char* kind, const char* name, Function function, const Arguments&... arguments) {
    bound.def(name, function, arguments...);
    bound.def(name, [kind, name](nb::handle, nb::args given, nb::kwargs named) -> nb::object {
        return types.misused(kind, name, given, named);
    });
}

// An argument of this name that may be anything.
inline auto any(const char* name) { return nb::arg(name).none(); }

// Calls a class as the Python engine does, and lets its properties know their names, for the sake of messages.
template <class Class>
void name_as(Class& bound, const char* kind) {
    bound.attr("__name__") = kind;
    for (auto [name, member] : nb::cast<nb::dict>(bound.attr("__dict__").attr("copy")())) {
        if (PyObject_TypeCheck(member.ptr(), &PyProperty_Type)) member.attr("__set_name__")(bound, name);
    }
}

// Binds what shows a simulation that goes on, so that there is no second one of it.
template <class Class>
void refuse_copies(Class& bound, const char* kind) {
    name_as(bound, kind);
    bound.def("__reduce__", [kind](nb::handle) { return nb::object(types.refuse_copy(kind)); });
}

// --- text, hosts and jobs ----------------------------------------------------------------------------------

// Half a pair of surrogates may stand in a name; Python writes it as it is.
inline std::string to_utf8(nb::handle text) {
    if (!PyUnicode_Check(text.ptr())) types.check_name(text);
    Py_ssize_t length;
    if (const char* letters = PyUnicode_AsUTF8AndSize(text.ptr(), &length)) return {letters, static_cast<size_t>(length)};
    PyErr_Clear();
    nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    if (!bytes) throw nb::python_error();
    return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

inline nb::object from_utf8(std::string_view text) {
    PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass");
    if (!made) throw nb::python_error();
    return nb::steal(made);
}

inline nb::object host_set(const Runs& runs) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(runs.size()));
    for (size_t place = 0; place < runs.size(); ++place) {
        PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(place),
                         Py_BuildValue("(LL)", static_cast<long long>(runs[place].first),
                                       static_cast<long long>(runs[place].last)));
    }
    return types.host_set(nb::none(), nb::steal(tuple));
}

inline Runs runs_of(nb::handle hosts) {
    Runs runs;
    for (nb::handle run : hosts.attr("runs")()) {
        Run added{nb::cast<int64_t>(run[0]), nb::cast<int64_t>(run[1])};
        if (added.last < added.first || added.first < (runs.empty() ? 0 : runs.back().last + 1)) {
            throw nb::value_error("the intervals of hosts are not in order");
        }
        runs.push_back(added);
    }
    return runs;
}

inline Handle handle_of(nb::object object) { return Handle(object.release().ptr()); }
inline nb::object object_of(const Handle& handle) { return nb::borrow(static_cast<PyObject*>(handle.get())); }

// What a log says about a job besides, as a dictionary.
inline nb::object extra_of(const Log& log, uint32_t extra) {
    if (log.extra_objects.empty()) log.extra_objects.resize(log.users.size());
    Handle& known = log.extra_objects[extra];
    if (!known.get()) {
        constexpr const char* names[] = {"user", "group", "executable", "queue", "partition"};
        nb::dict made;
        for (size_t place = 0; place < log.extras[extra].size(); ++place) {
            double value = log.extras[extra][place];
            if (value != -1) made[names[place]] = static_cast<int64_t>(value);
        }
        if (extra < log.after.size() && !log.after[extra].empty()) made["after"] = from_utf8(log.after[extra]);
        known = handle_of(types.read_only(made));
    }
    return object_of(known);
}

inline nb::object new_job(const std::string& id, double submission, int64_t size, double walltime,
                          const std::string& profile, nb::handle extra) {
    nb::object fields[] = {from_utf8(id), nb::float_(submission), nb::int_(size), nb::float_(walltime),
                           from_utf8(profile)};
    PyObject* arguments[] = {fields[0].ptr(), fields[1].ptr(), fields[2].ptr(), fields[3].ptr(), fields[4].ptr(),
                             extra.ptr()};
    if (!types.job.is_valid()) throw std::runtime_error("the class of jobs was not given to `prepare`");
    PyObject* made = PyObject_Vectorcall(types.job.ptr(), arguments, 6, nullptr);
    if (!made) throw nb::python_error();
    return nb::steal(made);
}

// The object by which a policy knows a job.
inline nb::object view_of(Job& job) {
    if (!job.view.get()) {
        const Handle& source = job.as_submitted().source;
        nb::object extra = job.log ? extra_of(*job.log, job.extra)
                                   : source.get() ? object_of(source).attr("extra") : nb::dict();
        nb::object made = new_job(job.id, job.told_submission, job.request.hosts, job.told_walltime,
                                  job.profile.name, extra);
        job.view = handle_of(job.as_submitted().waits && !job.waits ? types.without_dependencies(made) : made);
    }
    return object_of(job.view);
}

// A job on its hosts, as Python sees it.
struct RunningJob {
    JobPtr job;

    explicit RunningJob(JobPtr shown) : job(std::move(shown)) {}
    RunningJob(RunningJob&&) = default;
    ~RunningJob() {
        if (job) job->running_view = nullptr;
    }
};

// The object by which a policy knows a job on its hosts; it is one object as long as somebody holds it.
inline nb::object running_view_of(const JobPtr& job) {
    if (job->running_view) return nb::borrow(static_cast<PyObject*>(job->running_view));
    nb::object view = nb::cast(RunningJob(job));
    job->running_view = view.ptr();
    return view;
}

inline const Job& running_from(nb::handle object) {
    RunningJob* running;
    if (!nb::try_cast(object, running) || !running) throw_expected("a RunningJob", object);
    return *running->job;
}

inline nb::object decision_of(const Job& job) { return job.decision.get() ? object_of(job.decision) : nb::none(); }

// The arguments of the Python engine's class.
inline nb::tuple fields_of(const RunningJob& one) {
    const Job& job = *one.job;
    return nb::make_tuple(view_of(*one.job), host_set(job.hosts), job.start, job.expected_end, job.nb_hosts, job.number,
                          decision_of(job));
}

// A reservation with the job that it is for.
struct HeldReservation {
    Reservation reservation;
    nb::object job;
};

inline nb::tuple fields_of(const HeldReservation& one) {
    const Reservation& made = one.reservation;
    return nb::make_tuple(one.job, made.now, made.shadow_time, made.extra.hosts);
}

inline nb::object state_of(const Job& job) { return nb::borrow(types.states[static_cast<size_t>(job.state)]); }

// A profile as Python describes it, rounded as Batsim rounds those that it is sent.
inline Profile profile_of(nb::handle profile, std::string name, bool in_ticks) {
    bool delay = profile.type().is(types.delay);
    if (!delay && !profile.type().is(types.computation)) {
        nb::object kind = profile.attr("kind");
        nb::raise_type_error("the native engine runs no profile of type %s; set BATSCHED_PY_PURE=1",
                             nb::str(kind).c_str());
    }
    double amount = nb::cast<double>(profile.attr(delay ? "seconds" : "work"));
    return {std::move(name), in_ticks ? to_tick(amount) : amount, nb::cast<int64_t>(profile.attr("return_code")),
            delay ? Profile::Kind::kDelay : Profile::Kind::kComputation};
}

// Whether a job waits for others, or is a task of an array (specification: batsched_py/protocol/dependencies.py).
inline bool says_dependencies(nb::handle extra) {
    if (!PyDict_Check(extra.ptr())) return false;
    nb::dict fields = nb::borrow<nb::dict>(extra);
    return fields.contains("after") || fields.contains("array");
}

inline JobPtr job_from(nb::handle object) {
    JobPtr job(new Job);
    job->id = to_utf8(object.attr("id"));
    job->submission = nb::cast<double>(object.attr("submission_time"));
    job->request = {nb::cast<int64_t>(object.attr("size"))};
    job->walltime = nb::cast<double>(object.attr("walltime"));
    job->waits = says_dependencies(object.attr("extra"));
    job->source = handle_of(nb::borrow(object));
    return job;
}

}  // namespace batsched
