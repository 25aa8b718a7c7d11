// What policies ask most (batsched_py/schedulers/cluster.py is the specification).
#pragma once
#include <cmath>

#include "ledger.hpp"

struct SaidSlots {
    PyTypeObject* type;
    Py_ssize_t decisions, broken;
};

inline SaidSlots said_slots;

inline PyObject* checked_said(PyObject* said) {
    if (!said_slots.type) {
        PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(said));
        said_slots = {Py_TYPE(said), slot_offset(type, "decisions"), slot_offset(type, "broken")};
        Py_INCREF(type);
    }
    if (Py_TYPE(said) != said_slots.type) {
        PyErr_Format(PyExc_TypeError, "%R is not what a policy has said", said);
        throw PythonError();
    }
    return said;
}

struct Cluster {
    Ref queue, running, ledger, said, selection, heeded;
    Ref write_down;  // to be called before anybody looks at what was heard
    double now = 0;

    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&queue, &running, &ledger, &said, &selection, &heeded, &write_down}) function(*ref);
    }

    Ledger& account() const { return of<Ledger>(ledger.get()); }
};

inline Ref start_on_lowest(PyObject* self, PyObject* job) {
    Cluster& cluster = of<Cluster>(self);
    if (cluster.selection.is_some()) return Ref();
    Ref running = cluster.account().start(checked_job(job), cluster.now);
    if (running) {
        checked(PyList_Append(slot(cluster.said.get(), said_slots.decisions), running.get()));
    }
    return running;
}

inline Ref reservation(PyObject* self, PyObject* job) {
    Cluster& cluster = of<Cluster>(self);
    Ledger& ledger = cluster.account();
    int64_t free = ledger.nb_free(), needed = job_size(checked_job(job));
    double time = cluster.now;
    if (free < needed) {
        if (!ledger.all_available) return call(above(Box<Cluster>::type, self, "reservation").get(), job);
        time = INFINITY;
        for (const auto& place : of<Running>(ledger.running.get()).by_end) {
            free += of<RunningJob>(place.running).nb_hosts;
            if (free >= needed) {
                time = std::max(place.end, cluster.now);
                break;
            }
        }
    }
    return Ref(checked(Py_BuildValue("dL", time, static_cast<long long>(std::max<int64_t>(free - needed, 0)))));
}

inline void prepare_cluster(PyObject* module) {
    static PyMethodDef methods[] = {
        {"fits",
         [](PyObject* self, PyObject* job) {
             return guarded([&] {
                 bool fits = job_size(checked_job(job)) <= of<Cluster>(self).account().nb_free();
                 return Py_NewRef(fits ? Py_True : Py_False);
             });
         },
         METH_O, "Whether enough hosts are free for the job now."},
        {"start",
         reinterpret_cast<PyCFunction>(+[](PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                                           PyObject* names) {
             return guarded([&] {
                 if (count == 1 && !names) {
                     if (Ref running = start_on_lowest(self, arguments[0])) return running.release();
                 }
                 Ref method = above(Box<Cluster>::type, self, "start");
                 return checked(PyObject_Vectorcall(method.get(), arguments, count, names));
             });
         }),
         METH_FASTCALL | METH_KEYWORDS,
         "Run a waiting job now, on the given hosts or on free ones that the selection chooses."},
        {"reservation",
         [](PyObject* self, PyObject* job) { return guarded([&] { return reservation(self, job).release(); }); },
         METH_O, "When the job can start at the latest, and how many hosts it will leave free then."},
        {"fitting",
         reinterpret_cast<PyCFunction>(+[](PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                                           PyObject* names) {
             return guarded([&] {
                 Cluster& cluster = of<Cluster>(self);
                 if (names || (count > 1 && arguments[1] != Py_None)) {
                     Ref method = above(Box<Cluster>::type, self, "fitting");
                     return checked(PyObject_Vectorcall(method.get(), arguments, count, names));
                 }
                 return where(cluster.account().queue_book.get(), cluster.account().free.get(),
                              count > 0 ? arguments[0] : Py_None, Py_None, count > 2 && is_true(arguments[2]))
                     .release();
             });
         }),
         METH_FASTCALL | METH_KEYWORDS,
         "The waiting jobs for which enough hosts are free, and that meet a condition, one after another."},
        {}};
    static PyMemberDef members[] = {MEMBER(Cluster, now, "now", T_DOUBLE),
                                    MEMBER(Cluster, queue, "queue", T_OBJECT_EX),
                                    MEMBER(Cluster, running, "running", T_OBJECT_EX),
                                    MEMBER(Cluster, heeded, "heeded", T_OBJECT_EX),
                                    MEMBER(Cluster, selection, "_selection", T_OBJECT_EX),
                                    {}};
    static PyGetSetDef getset[] = {
        TYPED(Cluster, ledger, Ledger, "_ledger"),
        {"_said", [](PyObject* self, void*) { return Py_XNewRef(of<Cluster>(self).said.get()); },
         [](PyObject* self, PyObject* said, void*) {
             return guarded<int>(-1, [&] {
                 of<Cluster>(self).said = Ref::to(checked_said(said));
                 return 0;
             });
         },
         nullptr, nullptr},
        {"events",
         [](PyObject* self, void*) {
             return guarded([&] {
                 if (PyObject* write_down = of<Cluster>(self).write_down.get()) call(write_down);
                 return above(Box<Cluster>::type, self, "events").release();
             });
         },
         nullptr, "What was told since the policy was last asked.", nullptr},
        {"nb_free",
         [](PyObject* self, void*) {
             return PyLong_FromLongLong(of<Cluster>(self).account().nb_free());
         },
         nullptr, "How many hosts can be given to a job now.", nullptr},
        {"quiet",
         [](PyObject* self, void*) {
             return Py_NewRef(of<Cluster>(self).account().quiet ? Py_True : Py_False);
         },
         nullptr, "Whether nothing but submissions has happened since the policy was last asked.", nullptr},
        {}};
    checked(PyModule_AddType(module, &box_type<Cluster>("batsched_py._native.Cluster", "What a policy sees.", methods,
                                                        members, getset)));
}
