// What time it is, and what is going to happen (batsched_py/simulator/agenda.py is the specification).
#pragma once
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "python.hpp"

inline PyObject *name_round, *six;

// The time that is told when it is `time`, as `to_tick` of batsched_py/protocol/clock.py has it.
inline double to_tick(double time) {
    if (std::isfinite(time) && time == std::floor(time)) return time;
    return as_double(call_method(from_double(time).get(), name_round, six).get());
}

class Agenda {
public:
    double clock = 0, now = 0;
    long long count = 0;

    struct Entry {
        double time;
        int notice;
        long long number;
        Ref action, argument;

        // Whether it comes after the other one.
        bool operator<(const Entry& other) const {
            if (time != other.time) return time > other.time;
            if (notice != other.notice) return notice > other.notice;
            return number > other.number;
        }
    };

    template <class Function>
    void each_ref(Function function) {
        for (Entry& entry : heap_) {
            function(entry.action);
            function(entry.argument);
        }
    }

    bool empty() const { return heap_.empty(); }
    size_t size() const { return heap_.size(); }

    long long put(double time, int notice, PyObject* action, PyObject* argument) {
        heap_.push_back({time, notice, ++count, Ref::to(action), Ref::to(argument)});
        std::push_heap(heap_.begin(), heap_.end());
        return count;
    }

    void cancel(long long number) {
        cancelled_.insert(number);
        drop_cancelled();
    }

    bool instant_is_over() const { return empty() || heap_[0].time > clock || heap_[0].notice; }

    void give_notices() {
        while (!empty() && heap_[0].time <= clock && heap_[0].notice) happen();
    }

    void happen() {
        if (empty()) {
            PyErr_SetString(PyExc_IndexError, "nothing is going to happen");
            throw PythonError();
        }
        Entry next = pop();
        if (!cancelled_.empty()) drop_cancelled();
        if (next.time != clock) {
            clock = next.time;
            now = to_tick(clock);
        }
        call(next.action.get(), next.argument.get());
    }

    // Each pair of an action that is `old` and its argument becomes what a function makes of the argument.
    template <class Function>
    void replace(PyObject* old, Function function) {
        for (Entry& entry : heap_) {
            if (entry.action.get() == old) std::tie(entry.action, entry.argument) = function(entry.argument.get());
        }
    }

private:
    std::vector<Entry> heap_;
    std::unordered_set<long long> cancelled_;

    Entry pop() {
        std::pop_heap(heap_.begin(), heap_.end());
        Entry last = std::move(heap_.back());
        heap_.pop_back();
        return last;
    }

    void drop_cancelled() {
        while (!empty() && cancelled_.erase(heap_[0].number)) pop();
    }
};

template <int notice>
PyObject* put_down(PyObject* self, PyObject* arguments) {
    return guarded([&] {
        double time;
        PyObject *action, *argument = Py_None;
        if (!PyArg_ParseTuple(arguments, "dO|O", &time, &action, &argument)) throw PythonError();
        return PyLong_FromLongLong(of<Agenda>(self).put(time, notice, action, argument));
    });
}

inline void prepare_agenda(PyObject* module) {
    name_round = checked(PyUnicode_InternFromString("__round__"));
    six = checked(PyLong_FromLong(6));
    static PyMethodDef methods[] = {
        {"at", put_down<0>, METH_VARARGS, "Put an action down; the number it gets is what `cancel` wants."},
        {"notice", put_down<1>, METH_VARARGS, "Put down an action that comes after all others of its instant."},
        {"cancel",
         [](PyObject* self, PyObject* number) {
             return guarded([&] {
                 of<Agenda>(self).cancel(as_int(number));
                 return Py_NewRef(Py_None);
             });
         },
         METH_O, "Strike an action out, as if it had never been put down."},
        {"instant_is_over",
         [](PyObject* self, PyObject*) {
             return Py_NewRef(of<Agenda>(self).instant_is_over() ? Py_True : Py_False);
         },
         METH_NOARGS, "Whether nothing but notices is left to happen now."},
        {"give_notices",
         [](PyObject* self, PyObject*) {
             return guarded([&] {
                 of<Agenda>(self).give_notices();
                 return Py_NewRef(Py_None);
             });
         },
         METH_NOARGS, "Let the notices of this instant happen, when nothing else is left of it."},
        {"happen",
         [](PyObject* self, PyObject*) {
             return guarded([&] {
                 of<Agenda>(self).happen();
                 return Py_NewRef(Py_None);
             });
         },
         METH_NOARGS, "Go to the next action's time and let it happen."},
        {}};
    static PyMemberDef members[] = {MEMBER(Agenda, clock, "clock", T_DOUBLE),
                                    MEMBER(Agenda, now, "now", T_DOUBLE),
                                    MEMBER(Agenda, count, "count", T_LONGLONG),
                                    {}};
    static PySequenceMethods sequence = {};
    sequence.sq_length = [](PyObject* self) { return static_cast<Py_ssize_t>(of<Agenda>(self).size()); };
    PyTypeObject& type = box_type<Agenda>("batsched_py._native.Agenda", "The clock and the future actions.", methods,
                                          members);
    type.tp_as_sequence = &sequence;
    checked(PyModule_AddType(module, &type));
}
