// What happens to every job in the ledger (batsched_py/ledger/ledger.py is the specification).
//
// A submission, a start on the lowest free hosts and an end pass through here. Whatever else there is, and
// every broken rule, is left to the Python class.
#pragma once
#include "queue.hpp"
#include "running.hpp"

struct Ledger {
    Ref queue, queue_book, running, running_book, free;
    Ref unfit;                      // jobs that no state of the machine could run
    Ref registry, for_files_only;   // a set of the registry's
    Ref estimate, plain_estimate;   // what is expected of a job, and what that is where it is the walltime
    long long nb_hosts = 0;
    bool all_available = true, quiet = false, exclusive = false, collects = false;

    template <class Function>
    void each_ref(Function function) {
        for (Ref* ref : {&queue, &queue_book, &running, &running_book, &free, &unfit, &registry, &for_files_only,
                         &estimate, &plain_estimate}) {
            function(*ref);
        }
    }

    int64_t nb_free() const { return of<FreeHosts>(free.get()).count; }

    // Whether the job can be run, and is a job like all others.
    bool submit(PyObject* job) {
        int64_t size = job_size(job);
        if (size <= 0 || size > nb_hosts || collects) return false;
        bool plain = estimate.get() == plain_estimate.get();
        double expected = plain ? job_walltime(job) : as_double(call(estimate.get(), job).get());
        of<JobQueue>(queue.get()).append(job, expected);
        return true;
    }

    // The job on the free hosts with the lowest numbers, or nothing if there is more to be said about it.
    Ref start(PyObject* job, double now) {
        int64_t size = job_size(job);
        if (size <= 0 || size > nb_free() || PySet_GET_SIZE(for_files_only.get())) return Ref();
        JobQueue& waiting = of<JobQueue>(queue.get());
        Py_ssize_t place = waiting.find(job_id(job));
        if (place < 0) return Ref();
        double expected = waiting.discard(job_id(job), place);
        return of<Running>(running.get()).add(job, of<FreeHosts>(free.get()).take_lowest(size), now, expected, size);
    }

    bool is_simple() const { return exclusive && all_available && !collects; }

    // The job that has left its hosts, if it was there; only where `is_simple`.
    Ref release(PyObject* id) {
        Ref ended = of<Running>(running.get()).get(id);
        if (ended) release_running(ended.get());
        return ended;
    }

    // The same for one that is known to run.
    void release_running(PyObject* ended) {
        of<Running>(running.get()).drop(ended);
        quiet = false;
        of<FreeHosts>(free.get()).give(of<RunningJob>(ended).runs);
    }

    void settle() {
        quiet = true;
        of<JobQueue>(queue.get()).nb_new = 0;
    }
};

inline void prepare_ledger(PyObject* module) {
    static PyMethodDef methods[] = {
        {"submit",
         [](PyObject* self, PyObject* job) {
             return guarded([&] {
                 if (of<Ledger>(self).submit(checked_job(job))) return Py_NewRef(Py_None);
                 return call(above(Box<Ledger>::type, self, "submit").get(), job).release();
             });
         },
         METH_O, "A job waits."},
        {"start",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject *job, *hosts, *now;
                 if (!PyArg_ParseTuple(arguments, "OOO", &job, &hosts, &now)) throw PythonError();
                 if (hosts == Py_None) {
                     if (Ref running = of<Ledger>(self).start(checked_job(job), as_double(now))) {
                         return running.release();
                     }
                 }
                 return call(above(Box<Ledger>::type, self, "start").get(), job, hosts, now).release();
             });
         },
         METH_VARARGS, "A waiting job runs, on these hosts or on the free ones with the lowest numbers."},
        {"release",
         [](PyObject* self, PyObject* id) {
             return guarded([&] {
                 Ledger& ledger = of<Ledger>(self);
                 if (!ledger.is_simple()) return call(above(Box<Ledger>::type, self, "release").get(), id).release();
                 Ref ended = ledger.release(id);
                 return ended ? ended.release() : Py_NewRef(Py_None);
             });
         },
         METH_O, "A job has left its hosts."},
        {"settle",
         [](PyObject* self, PyObject*) {
             of<Ledger>(self).settle();
             return Py_NewRef(Py_None);
         },
         METH_NOARGS, "What has happened so far is no news any more."},
        {}};
    static PyGetSetDef getset[] = {TYPED(Ledger, queue, JobQueue, "queue"), TYPED(Ledger, running, Running, "running"),
                                   TYPED(Ledger, queue_book, QueueBook, "queue_book"),
                                   TYPED(Ledger, running_book, RunningBook, "running_book"),
                                   TYPED(Ledger, free, FreeHosts, "free"), {}};
    static PyMemberDef members[] = {MEMBER(Ledger, unfit, "unfit", T_OBJECT_EX),
                                    MEMBER(Ledger, registry, "registry", T_OBJECT_EX),
                                    MEMBER(Ledger, for_files_only, "_for_files_only", T_OBJECT_EX),
                                    MEMBER(Ledger, estimate, "estimate", T_OBJECT_EX),
                                    MEMBER(Ledger, plain_estimate, "_plain_estimate", T_OBJECT_EX),
                                    MEMBER(Ledger, nb_hosts, "nb_hosts", T_LONGLONG),
                                    MEMBER(Ledger, all_available, "all_available", T_BOOL),
                                    MEMBER(Ledger, quiet, "quiet", T_BOOL),
                                    MEMBER(Ledger, exclusive, "_exclusive", T_BOOL),
                                    MEMBER(Ledger, collects, "_collects", T_BOOL),
                                    {}};
    checked(PyModule_AddType(module, &box_type<Ledger>("batsched_py._native.Ledger", "The account of a machine.",
                                                       methods, members, getset)));
}
