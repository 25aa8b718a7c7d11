// The running jobs (batsched_py/ledger/running.py is their specification).
#pragma once
#include "hosts.hpp"
#include "jobs.hpp"

inline PyObject* running_job_class;

struct RunningJob {
    Ref job;
    Runs runs;
    Ref hosts;  // the same as a HostSet, from when somebody has asked
    double start = 0, expected_end = 0;
    int64_t nb_hosts = 0, number = 0;
    Ref decision = Ref::to(Py_None);

    // Where its end is planned here: the job with its exact times, when it began, and how it will end.
    Ref executed;
    double begun = 0;
    long long agenda_number = 0;
    bool reaches_walltime = false;

    PyObject* host_set() {
        if (!hosts) hosts = make_host_set(runs);
        return hosts.get();
    }
};

class Running {
public:
    struct Place {
        double end;
        int64_t number;
        PyObject* running;  // owned

        bool operator<(const Place& other) const {
            return end < other.end || (end == other.end && number < other.number);
        }
    };

    std::vector<Place> by_end;

    Running() = default;
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
        for (const Place& place : by_end) Py_DECREF(place.running);
    }

    // The jobs by id, kept from when somebody has asked for one: those who only go through them never do.
    PyObject* by_id() {
        if (!by_id_) {
            Ref jobs(checked(PyDict_New()));
            for (const Place& place : by_end) {
                checked(PyDict_SetItem(jobs.get(), job_id(of<RunningJob>(place.running).job.get()), place.running));
            }
            by_id_ = std::move(jobs);
        }
        return by_id_.get();
    }

    // A job was started; the one who asks owns what comes back.
    Ref add(PyObject* job, Runs runs, double start, double run_time, int64_t nb_hosts) {
        Ref made(checked(make_box<RunningJob>(&Box<RunningJob>::type)));
        RunningJob& running = of<RunningJob>(made.get());
        running.job = Ref::to(job);
        running.runs = std::move(runs);
        running.start = start;
        running.expected_end = start + run_time;
        running.nb_hosts = nb_hosts;
        running.number = ++count_;
        if (by_id_) checked(PyDict_SetItem(by_id_.get(), job_id(job), made.get()));
        insert(Py_NewRef(made.get()));
        return made;
    }

    // A job has ended, if it ran.
    Ref pop(PyObject* id) {
        Ref found = get(id);
        if (found) drop(found.get());
        return found;
    }

    // A job that ran has ended; whoever asks has a reference to it.
    void drop(PyObject* made) {
        const RunningJob& running = of<RunningJob>(made);
        remove(running);
        Py_DECREF(made);
        if (by_id_) checked(PyDict_DelItem(by_id_.get(), job_id(running.job.get())));
    }

    void expect(PyObject* id, double run_time) {
        Ref found = get(id);
        if (!found) {
            PyErr_SetObject(PyExc_KeyError, id);
            throw PythonError();
        }
        RunningJob& running = of<RunningJob>(found.get());
        remove(running);
        running.expected_end = running.start + run_time;
        insert(found.get());
    }

    Ref get(PyObject* id) {
        PyObject* found = PyDict_GetItemWithError(by_id(), id);
        if (!found && PyErr_Occurred()) throw PythonError();
        return Ref::to(found);
    }

private:
    Ref by_id_;
    int64_t count_ = 0;

    void insert(PyObject* made) {
        const RunningJob& running = of<RunningJob>(made);
        Place place{running.expected_end, running.number, made};
        by_end.insert(std::upper_bound(by_end.begin(), by_end.end(), place), place);
    }

    void remove(const RunningJob& running) {
        Place place{running.expected_end, running.number, nullptr};
        by_end.erase(std::lower_bound(by_end.begin(), by_end.end(), place));
    }
};

// The one who may write among the running jobs.
struct RunningBook {
    Ref running;

    template <class Function>
    void each_ref(Function function) {
        function(running);
    }

    Running& book() const { return of<Running>(running.get()); }
};

inline void prepare_running(PyObject* module) {
    Ref python(checked(PyImport_ImportModule("batsched_py.ledger.running")));
    running_job_class = attribute(python.get(), "RunningJob").release();
    static PyMemberDef job_members[] = {
        MEMBER(RunningJob, job, "job", T_OBJECT_EX),
        MEMBER(RunningJob, start, "start", T_DOUBLE),
        MEMBER(RunningJob, expected_end, "expected_end", T_DOUBLE),
        MEMBER(RunningJob, nb_hosts, "nb_hosts", T_LONGLONG),
        MEMBER(RunningJob, number, "number", T_LONGLONG),
        MEMBER(RunningJob, decision, "decision", T_OBJECT_EX),
        MEMBER(RunningJob, executed, "executed", T_OBJECT_EX),
        MEMBER(RunningJob, begun, "begun", T_DOUBLE),
        MEMBER(RunningJob, agenda_number, "agenda_number", T_LONGLONG),
        MEMBER(RunningJob, reaches_walltime, "reaches_walltime", T_BOOL),
        {}};
    static PyGetSetDef job_getset[] = {
        {"__class__", [](PyObject*, void*) { return Py_NewRef(running_job_class); }, nullptr,
         "The Python class that it stands for.", nullptr},
        {"hosts",
         [](PyObject* self, void*) {
             return guarded([&] { return Py_NewRef(of<RunningJob>(self).host_set()); });
         },
         nullptr, "The hosts it is on.", nullptr},
        {}};
    checked(PyModule_AddType(module, &box_type<RunningJob>("batsched_py._native.RunningJob",
                                                           "A job on its hosts.", nullptr, job_members,
                                                           job_getset)));

    static PyMethodDef methods[] = {
        {"get",
         [](PyObject* self, PyObject* id) {
             return guarded([&] {
                 Ref running = of<Running>(self).get(id);
                 return running ? running.release() : Py_NewRef(Py_None);
             });
         },
         METH_O, "The running job of this name, if there is one."},
        {}};
    static PySequenceMethods sequence = {};
    sequence.sq_length = [](PyObject* self) {
        return static_cast<Py_ssize_t>(of<Running>(self).by_end.size());
    };
    sequence.sq_contains = [](PyObject* self, PyObject* id) {
        return guarded<int>(-1, [&] { return PyDict_Contains(of<Running>(self).by_id(), id); });
    };
    PyTypeObject& type = box_type<Running>("batsched_py._native.Running",
                                           "The running jobs, ordered by expected end.", methods);
    type.tp_as_sequence = &sequence;
    type.tp_iter = [](PyObject* self) {
        return guarded([&] {
            Ref list(checked(PyList_New(0)));
            for (const auto& place : of<Running>(self).by_end) {
                checked(PyList_Append(list.get(), place.running));
            }
            return PyObject_GetIter(list.get());
        });
    };
    checked(PyModule_AddType(module, &type));

    static PyMethodDef book_methods[] = {
        {"add",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject *job, *hosts;
                 double start, run_time;
                 long long nb_hosts;
                 if (!PyArg_ParseTuple(arguments, "OOddL", &job, &hosts, &start, &run_time, &nb_hosts)) {
                     throw PythonError();
                 }
                 Ref made = of<RunningBook>(self).book().add(checked_job(job), runs_of(hosts), start, run_time, nb_hosts);
                 of<RunningJob>(made.get()).hosts = Ref::to(hosts);
                 return made.release();
             });
         },
         METH_VARARGS, "A job was started, and is expected to run for so long."},
        {"pop",
         [](PyObject* self, PyObject* id) {
             return guarded([&] {
                 Ref running = of<RunningBook>(self).book().pop(id);
                 return running ? running.release() : Py_NewRef(Py_None);
             });
         },
         METH_O, "A job has ended; it is returned if it was running."},
        {"expect",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject* id;
                 double run_time;
                 if (!PyArg_ParseTuple(arguments, "Od", &id, &run_time)) throw PythonError();
                 of<RunningBook>(self).book().expect(id, run_time);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "A job is now expected to run for so long in all."},
        {}};
    static PyGetSetDef book_getset[] = {
        TYPED(RunningBook, running, Running, "_running"),
        {"by_end",
         [](PyObject* self, void*) {
             return guarded([&] {
                 Ref list(checked(PyList_New(0)));
                 for (const auto& [end, number, running] : of<RunningBook>(self).book().by_end) {
                     Ref entry(checked(Py_BuildValue("dLO", end, static_cast<long long>(number), running)));
                     checked(PyList_Append(list.get(), entry.get()));
                 }
                 return list.release();
             });
         },
         nullptr, "Expected end, number and job.", nullptr},
        {}};
    checked(PyModule_AddType(module, &box_type<RunningBook>("batsched_py._native.RunningBook",
                                                            "Which jobs begin to run and which have ended.",
                                                            book_methods, nullptr, book_getset)));
}
