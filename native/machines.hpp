// What the hosts are doing (batsched_py/simulator/machines.py is the specification).
#pragma once
#include "hosts.hpp"

class Machines {
public:
    long long count = 0, computing = 0;
    double since = 0, host_seconds = 0;
    bool unavailable = false;
    Ref earlier{PyList_New(0)};  // the changes that Python has seen: those that follow are in `changes_`

    void occupy(int64_t hosts, double now) {
        pass(now);
        computing += hosts;
    }

    void vacate(const Runs& hosts, int64_t number, double now) {
        pass(now);
        computing -= number;
        add(now, hosts);
        if (changes_.size() > many_) forget();
    }

    // All changes in a list of pairs.
    PyObject* as_python() {
        for (const Change& change : changes_) {
            Ref pair(checked(Py_BuildValue("dN", change.time, make_host_set(hosts_of(change)).release())));
            checked(PyList_Append(earlier.get(), pair.get()));
        }
        clear();
        return earlier.get();
    }

    void from_python(PyObject* list) {
        earlier = Ref::to(list);
        clear();
    }

private:
    struct Change {
        double time;
        size_t begin, end;  // of its hosts among all
    };

    static constexpr size_t kMany = 4096;
    std::vector<Change> changes_;
    Runs hosts_;
    size_t many_ = kMany;

    Runs hosts_of(const Change& change) const {
        return {hosts_.data() + change.begin, hosts_.data() + change.end};
    }

    void add(double time, const Runs& hosts) {
        size_t begin = hosts_.size();
        hosts_.insert(hosts_.end(), hosts.begin(), hosts.end());
        changes_.push_back({time, begin, hosts_.size()});
    }

    void clear() {
        changes_.clear();
        hosts_.clear();
    }

    void pass(double now) {
        host_seconds += static_cast<double>(computing) * (now - since);
        since = now;
    }

    // Keep of each host the last change only.
    void forget() {
        FreeHosts unseen;
        unseen.fill({{0, count - 1}});
        std::vector<std::pair<double, Runs>> kept;
        for (auto change = changes_.rbegin(); change != changes_.rend() && unseen.count; ++change) {
            Runs fresh = unseen.overlap(hosts_of(*change));
            if (fresh.empty()) continue;
            unseen.take(fresh);
            kept.push_back({change->time, std::move(fresh)});
        }
        clear();
        for (auto change = kept.rbegin(); change != kept.rend(); ++change) add(change->first, change->second);
        many_ = 2 * changes_.size() + kMany;
    }
};

inline void prepare_machines(PyObject* module) {
    static PyMethodDef methods[] = {
        {"occupy",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject* hosts;
                 long long count;
                 double now;
                 if (!PyArg_ParseTuple(arguments, "OLd", &hosts, &count, &now)) throw PythonError();
                 of<Machines>(self).occupy(count, now);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "A job begins on so many hosts, which were idle."},
        {"vacate",
         [](PyObject* self, PyObject* arguments) {
             return guarded([&] {
                 PyObject* hosts;
                 long long count;
                 double now;
                 if (!PyArg_ParseTuple(arguments, "OLd", &hosts, &count, &now)) throw PythonError();
                 Machines& machines = of<Machines>(self);
                 if (machines.unavailable) {
                     Ref method = above(Box<Machines>::type, self, "vacate");
                     return checked(PyObject_CallObject(method.get(), arguments));
                 }
                 machines.vacate(runs_of(hosts), count, now);
                 return Py_NewRef(Py_None);
             });
         },
         METH_VARARGS, "A job leaves so many hosts."},
        {}};
    static PyMemberDef members[] = {MEMBER(Machines, count, "count", T_LONGLONG),
                                    MEMBER(Machines, computing, "computing", T_LONGLONG),
                                    MEMBER(Machines, since, "_since", T_DOUBLE),
                                    MEMBER(Machines, host_seconds, "_host_seconds", T_DOUBLE),
                                    MEMBER(Machines, unavailable, "_unavailable", T_BOOL),
                                    {}};
    static PyGetSetDef getset[] = {
        {"_changes",
         [](PyObject* self, void*) {
             return guarded([&] { return Py_NewRef(of<Machines>(self).as_python()); });
         },
         [](PyObject* self, PyObject* list, void*) {
             of<Machines>(self).from_python(list);
             return 0;
         },
         "Which hosts changed last and when.", nullptr},
        {}};
    checked(PyModule_AddType(module, &box_type<Machines>("batsched_py._native.Machines", "What the hosts are doing.",
                                                         methods, members, getset)));
}
