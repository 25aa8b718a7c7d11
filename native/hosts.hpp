// Sets of hosts as intervals, and the free hosts (batsched_py/ledger/free.py is their specification).
#pragma once
#include <algorithm>

#include "python.hpp"

// The first and the last host of an interval.
struct Run {
    int64_t first, last;
};

using Runs = std::vector<Run>;

inline PyObject* host_set_type;
inline Py_ssize_t known_runs_offset;
inline PyObject* name_runs;

inline Ref make_host_set(const Runs& runs) {
    Ref tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(runs.size()))));
    for (size_t place = 0; place < runs.size(); ++place) {
        Ref first = from_int(runs[place].first), last = from_int(runs[place].last);
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(place),
                         checked(PyTuple_Pack(2, first.get(), last.get())));
    }
    return call(host_set_type, Py_None, tuple.get());
}

inline Runs runs_of(PyObject* host_set) {
    Ref tuple;
    if (PyObject_TypeCheck(host_set, reinterpret_cast<PyTypeObject*>(host_set_type))) {
        tuple = Ref::to(slot(host_set, known_runs_offset));
    }
    if (!tuple.is_some()) tuple = call_method(host_set, name_runs);
    Runs runs;
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(tuple.get()); ++place) {
        PyObject* run = PyTuple_GET_ITEM(tuple.get(), place);
        runs.push_back({as_int(PyTuple_GET_ITEM(run, 0)), as_int(PyTuple_GET_ITEM(run, 1))});
    }
    return runs;
}

class FreeHosts {
public:
    int64_t count = 0;

    void fill(Runs runs) {
        runs_ = std::move(runs);
        count = 0;
        for (const Run& run : runs_) count += run.last + 1 - run.first;
    }

    const Runs& runs() const { return runs_; }

    bool contains(const Runs& hosts) const {
        return std::all_of(hosts.begin(), hosts.end(), [this](const Run& run) {
            auto next = after(run.first);
            return next != runs_.begin() && std::prev(next)->last >= run.last;
        });
    }

    Runs overlap(const Runs& hosts) const {
        Runs found;
        for (const Run& run : hosts) {
            auto place = after(run.first);
            if (place != runs_.begin()) --place;
            for (; place != runs_.end() && place->first <= run.last; ++place) {
                if (place->last >= run.first) {
                    found.push_back({std::max(run.first, place->first), std::min(run.last, place->last)});
                }
            }
        }
        return found;
    }

    Runs take_lowest(int64_t wanted) {
        Runs taken;
        count -= wanted;
        auto place = runs_.begin();
        for (; wanted; ++place) {
            int64_t end = place->first + wanted;
            if (end <= place->last) {
                taken.push_back({place->first, end - 1});
                place->first = end;
                break;
            }
            taken.push_back(*place);
            wanted = end - place->last - 1;
        }
        runs_.erase(runs_.begin(), place);
        return taken;
    }

    void take(const Runs& hosts) {
        for (const Run& run : hosts) {
            auto place = std::prev(after(run.first));
            count -= run.last + 1 - run.first;
            int64_t high = place->last;
            if (place->first == run.first) {
                if (high == run.last) {
                    runs_.erase(place);
                } else {
                    place->first = run.last + 1;
                }
            } else {
                place->last = run.first - 1;
                if (high != run.last) runs_.insert(place + 1, {run.last + 1, high});
            }
        }
    }

    void give(const Runs& hosts) {
        for (const Run& run : hosts) {
            auto place = after(run.first);
            count += run.last + 1 - run.first;
            bool joins_next = place != runs_.end() && place->first == run.last + 1;
            if (place != runs_.begin() && std::prev(place)->last == run.first - 1) {
                std::prev(place)->last = joins_next ? place->last : run.last;
                if (joins_next) runs_.erase(place);
            } else if (joins_next) {
                place->first = run.first;
            } else {
                runs_.insert(place, run);
            }
        }
    }

private:
    Runs runs_;

    Runs::const_iterator after(int64_t host) const {
        return std::upper_bound(runs_.begin(), runs_.end(), host,
                                [](int64_t one, const Run& run) { return one < run.first; });
    }
    Runs::iterator after(int64_t host) {
        return runs_.begin() + (std::as_const(*this).after(host) - runs_.cbegin());
    }
};

inline void prepare_hosts(PyObject* module) {
    Ref hosts(checked(PyImport_ImportModule("batsched_py.protocol.hosts")));
    host_set_type = attribute(hosts.get(), "HostSet").release();
    known_runs_offset = slot_offset(host_set_type, "known_runs");
    name_runs = checked(PyUnicode_InternFromString("runs"));

    static PyMethodDef methods[] = {
        {"hosts",
         [](PyObject* self, PyObject*) {
             return guarded([&] { return make_host_set(of<FreeHosts>(self).runs()).release(); });
         },
         METH_NOARGS, "Which they are now."},
        {"overlap",
         [](PyObject* self, PyObject* hosts) {
             return guarded([&] {
                 return make_host_set(of<FreeHosts>(self).overlap(runs_of(hosts))).release();
             });
         },
         METH_O, "Those of the hosts that are free."},
        {"take_lowest",
         [](PyObject* self, PyObject* count) {
             return guarded([&] {
                 return make_host_set(of<FreeHosts>(self).take_lowest(as_int(count))).release();
             });
         },
         METH_O, "Take the ones with the lowest numbers; there must be so many."},
        {"take",
         [](PyObject* self, PyObject* hosts) {
             return guarded([&] {
                 of<FreeHosts>(self).take(runs_of(hosts));
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "Take these, all of which must be free."},
        {"give",
         [](PyObject* self, PyObject* hosts) {
             return guarded([&] {
                 of<FreeHosts>(self).give(runs_of(hosts));
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "Give these back, none of which is free."},
        {}};
    static PyMemberDef members[] = {MEMBER(FreeHosts, count, "count", T_LONGLONG), {}};
    static PySequenceMethods sequence = {};
    sequence.sq_contains = [](PyObject* self, PyObject* hosts) {
        return guarded<int>(-1, [&] { return of<FreeHosts>(self).contains(runs_of(hosts)); });
    };
    PyTypeObject& type =
        box_type<FreeHosts>("batsched_py._native.FreeHosts", "The free hosts.", methods, members);
    type.tp_as_sequence = &sequence;
    type.tp_init = [](PyObject* self, PyObject* arguments, PyObject*) {
        return guarded<int>(-1, [&] {
            PyObject* hosts;
            if (!PyArg_ParseTuple(arguments, "O", &hosts)) throw PythonError();
            of<FreeHosts>(self).fill(runs_of(hosts));
            return 0;
        });
    };
    checked(PyModule_AddType(module, &type));
}
