// Users' wishes and their jobs (batsched_py/users/broker.py is the specification).
//
// Withdrawals and remarks, users who fail and times that never come are left to the Python class.
#pragma once
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "agenda.hpp"
#include "jobs.hpp"

inline PyObject *name_next_time, *name_submit, *name_job_started, *name_job_ended, *name_check_own, *name_refuse_idle;

struct SubmissionSlots {
    PyTypeObject* type;
    Py_ssize_t job, profile, note, decided;
};

inline SubmissionSlots submission_slots;

// The class is looked up when the first user acts: a run without users does not load them.
inline PyObject* submission_class() {
    if (!submission_slots.type) {
        Ref base(checked(PyImport_ImportModule("batsched_py.users.base")));
        PyObject* type = attribute(base.get(), "Submission").release();
        submission_slots = {reinterpret_cast<PyTypeObject*>(type), slot_offset(type, "job"),
                            slot_offset(type, "profile"), slot_offset(type, "note"), slot_offset(type, "decided")};
    }
    return reinterpret_cast<PyObject*>(submission_slots.type);
}

inline bool is_submission(PyObject* action) {
    return PyObject_TypeCheck(action, reinterpret_cast<PyTypeObject*>(submission_class()));
}

// A user who may still act.
struct Client {
    Ref user;
    long long number = 0, nb_outstanding = 0;
    bool hears_starts = false;
    double wish = INFINITY, wanted = INFINITY;

    template <class Function>
    void each_ref(Function function) {
        function(user);
    }
};

class Broker {
public:
    Ref outstanding{PyDict_New()};  // pairs of client and job, by id
    Ref withdrawn{PySet_New(nullptr)};
    Ref on_leave = Ref::to(Py_None);
    double next_time = INFINITY;
    bool hears_starts = false;
    long long count = 0;

    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&outstanding, &withdrawn, &on_leave}) function(*ref);
        for (auto& [number, client] : clients_) function(client);
    }

    bool done() const { return next_time == INFINITY && !PyDict_GET_SIZE(outstanding.get()); }

    Ref add(PyObject* user, bool hears) {
        Ref made(checked(make_box<Client>(&Box<Client>::type)));
        Client& client = of<Client>(made.get());
        client.user = Ref::to(user);
        client.number = count++;
        client.hears_starts = hears;
        hears_starts = hears_starts || hears;
        clients_[client.number] = made;
        return made;
    }

    // Whoever wants to act next; somebody does.
    Ref take_next() {
        std::pop_heap(plan_.begin(), plan_.end());
        Ref client = clients_[plan_.back().number];
        plan_.pop_back();
        return client;
    }

    void want(Client& client, double time) {
        client.wanted = time;
        if (time != INFINITY) {
            plan_.push_back({time, client.number});
            std::push_heap(plan_.begin(), plan_.end());
        }
        while (!plan_.empty() && is_stale(plan_[0])) {
            std::pop_heap(plan_.begin(), plan_.end());
            plan_.pop_back();
        }
        next_time = plan_.empty() ? INFINITY : plan_[0].time;
    }

    void leave(const Client& client) { clients_.erase(client.number); }

    // The client and the job of this name, and whether there are any.
    std::pair<Ref, Ref> find(PyObject* id) const {
        PyObject* pair = PyDict_GetItemWithError(outstanding.get(), id);
        if (!pair && PyErr_Occurred()) throw PythonError();
        if (!pair) return {};
        return {Ref::to(PyTuple_GET_ITEM(pair, 0)), Ref::to(PyTuple_GET_ITEM(pair, 1))};
    }

    // When a call is needed that none was asked for yet; nan for never.
    double call_to_ask(double now) {
        auto later = std::greater<double>();
        while (!calls_.empty() && calls_[0] <= now) {
            std::pop_heap(calls_.begin(), calls_.end(), later);
            calls_.pop_back();
        }
        if (next_time == INFINITY || (!calls_.empty() && calls_[0] <= next_time)) return NAN;
        calls_.push_back(next_time);
        std::push_heap(calls_.begin(), calls_.end(), later);
        return next_time;
    }

private:
    struct Wish {
        double time;
        long long number;

        // Whether it comes after the other one.
        bool operator<(const Wish& other) const {
            return time > other.time || (time == other.time && number > other.number);
        }
    };

    std::unordered_map<long long, Ref> clients_;
    std::vector<Wish> plan_;
    std::vector<double> calls_;

    bool is_stale(const Wish& wish) const {
        auto found = clients_.find(wish.number);
        return found == clients_.end() || of<Client>(found->second.get()).wanted != wish.time;
    }
};

// What a user raised is told as its fault.
inline void blame(PyObject* user, double now) {
    if (!PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_SystemExit)) throw PythonError();
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback) PyException_SetTraceback(error, traceback);
    Ref owned[] = {Ref(type), Ref(error), Ref(traceback)};
    Ref module(checked(PyImport_ImportModule("batsched_py.users.broker")));
    call(attribute(module.get(), "blame").get(), user, error, from_double(now).get());
}

// Asks a user for its next time, and puts that down if it is new.
inline void ask_user(PyObject* self, PyObject* asked, double now) {
    Broker& broker = of<Broker>(self);
    Client& client = of<Client>(asked);
    PyObject* user[] = {client.user.get()};
    Ref answer(PyObject_VectorcallMethod(name_next_time, user, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!answer) blame(client.user.get(), now);
    if (!PyFloat_CheckExact(answer.get())) answer = Ref(PyNumber_Float(answer.get()));
    double time = answer ? PyFloat_AS_DOUBLE(answer.get()) : NAN;
    if (std::isnan(time) || time == -INFINITY) {
        PyErr_Clear();
        call(above(Box<Broker>::type, self, "_ask").get(), asked, from_double(now).get());
    }
    client.wish = time;
    if (time != INFINITY) time = to_tick(time);
    if (time != client.wanted) broker.want(client, time);
    if (time == INFINITY && !client.nb_outstanding) {
        broker.leave(client);
        if (broker.on_leave.is_some()) call(broker.on_leave.get(), client.user.get());
    }
}

// What all users do now, in a list.
inline Ref actions(PyObject* self, double now) {
    Broker& broker = of<Broker>(self);
    Ref others(checked(PyList_New(0)));
    std::vector<std::pair<double, Ref>> submissions;
    while (broker.next_time <= now) {
        Ref acts = broker.take_next();
        Client& client = of<Client>(acts.get());
        Ref time = from_double(std::max(now, client.wish));
        PyObject* arguments[] = {client.user.get(), time.get()};
        Ref done(PyObject_VectorcallMethod(name_submit, arguments, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
        if (!done) blame(client.user.get(), now);
        Ref fast(checked(PySequence_Fast(done.get(), "what a user does is a sequence")));
        for (Py_ssize_t place = 0; place < PySequence_Fast_GET_SIZE(fast.get()); ++place) {
            Ref action = Ref::to(PySequence_Fast_GET_ITEM(fast.get(), place));
            if (is_submission(action.get())) {
                PyObject* job = checked_job(slot(action.get(), submission_slots.job));
                Ref pair(checked(PyTuple_Pack(2, acts.get(), job)));
                checked(PyDict_SetItem(broker.outstanding.get(), job_id(job), pair.get()));
                ++client.nb_outstanding;
                submissions.emplace_back(as_double(slot(action.get(), submission_slots.decided)), action);
            } else {
                call_method(self, name_check_own, acts.get(), action.get(), from_double(now).get());
                checked(PyList_Append(others.get(), action.get()));
            }
        }
        client.wanted = -INFINITY;
        ask_user(self, acts.get(), now);
        if (!PySequence_Fast_GET_SIZE(fast.get()) && client.wanted <= now) {
            call_method(self, name_refuse_idle, acts.get(), from_double(now).get());
        }
    }
    std::stable_sort(submissions.begin(), submissions.end(),
                     [](const auto& one, const auto& other) { return one.first < other.first; });
    Ref all(checked(PyList_New(0)));
    for (const auto& [decided, submission] : submissions) checked(PyList_Append(all.get(), submission.get()));
    checked(PyList_SetSlice(all.get(), PY_SSIZE_T_MAX, PY_SSIZE_T_MAX, others.get()));
    return all;
}

inline void job_started(PyObject* self, PyObject* id, double now) {
    auto [found, job] = of<Broker>(self).find(id);
    if (!found || !of<Client>(found.get()).hears_starts) return;
    Client& client = of<Client>(found.get());
    Ref time = from_double(now);
    PyObject* arguments[] = {client.user.get(), job.get(), time.get()};
    Ref heard(PyObject_VectorcallMethod(name_job_started, arguments, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!heard) blame(client.user.get(), now);
    ask_user(self, found.get(), now);
}

inline void job_ended(PyObject* self, PyObject* id, PyObject* state, double now) {
    Broker& broker = of<Broker>(self);
    auto [found, job] = broker.find(id);
    if (!found) return;
    checked(PyDict_DelItem(broker.outstanding.get(), id));
    if (PySet_GET_SIZE(broker.withdrawn.get())) checked(PySet_Discard(broker.withdrawn.get(), id));
    Client& client = of<Client>(found.get());
    --client.nb_outstanding;
    Ref time = from_double(now);
    PyObject* arguments[] = {client.user.get(), job.get(), state, time.get()};
    Ref heard(PyObject_VectorcallMethod(name_job_ended, arguments, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!heard) blame(client.user.get(), now);
    ask_user(self, found.get(), now);
}

inline void prepare_broker(PyObject* module) {
    auto name = [](const char* text) { return checked(PyUnicode_InternFromString(text)); };
    name_next_time = name("next_time");
    name_submit = name("submit");
    name_job_started = name("job_started");
    name_job_ended = name("job_ended");
    name_check_own = name("_check_own");
    name_refuse_idle = name("_refuse_idle");

    static PyMemberDef client_members[] = {MEMBER(Client, user, "user", T_OBJECT_EX), {}};
    checked(PyType_Ready(&box_type<Client>("batsched_py._native.Client", "A user who may still act.", nullptr,
                                           client_members)));

    static PyMethodDef methods[] = {
        {"_add",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject* user;
                 int hears_starts;
                 double now;
                 if (!PyArg_ParseTuple(arguments, "Opd", &user, &hears_starts, &now)) throw PythonError();
                 ask_user(self, of<Broker>(self).add(user, hears_starts).get(), now);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "One more user from now on."},
        {"actions",
         [](PyObject* self, PyObject* now) {
             return guarded([&] { return actions(self, as_double(now)).release(); });
         },
         METH_O, "What all users do now."},
        {"job_started",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject* id;
                 double now;
                 if (!PyArg_ParseTuple(arguments, "Od", &id, &now)) throw PythonError();
                 job_started(self, id, now);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "Tell the user whose job it is."},
        {"job_ended",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject *id, *state;
                 double now;
                 if (!PyArg_ParseTuple(arguments, "OOd", &id, &state, &now)) throw PythonError();
                 job_ended(self, id, state, now);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "Tell the user whose job it was."},
        {"call_to_ask",
         [](PyObject* self, PyObject* now) {
             return guarded([&] {
                 double time = of<Broker>(self).call_to_ask(as_double(now));
                 return std::isnan(time) ? Py_NewRef(Py_None) : PyFloat_FromDouble(time);
             });
         },
         METH_O, "When a call is needed that none was asked for yet."},
        {}};
    static PyMemberDef members[] = {MEMBER(Broker, outstanding, "_outstanding", T_OBJECT_EX),
                                    MEMBER(Broker, withdrawn, "_withdrawn", T_OBJECT_EX),
                                    MEMBER(Broker, on_leave, "_on_leave", T_OBJECT_EX),
                                    MEMBER(Broker, next_time, "next_time", T_DOUBLE),
                                    MEMBER(Broker, hears_starts, "hears_starts", T_BOOL),
                                    {}};
    checked(PyModule_AddType(module, &box_type<Broker>("batsched_py._native.Broker", "Speaks for all users.", methods,
                                                       members)));
}
