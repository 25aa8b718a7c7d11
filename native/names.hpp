// Names that are taken for good (batsched_py/ledger/names.py is the specification).
#pragma once
#include <bitset>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "jobs.hpp"

class Names {
public:
    // Whether the name was free; it is taken from now on.
    bool take(std::string_view name) {
        int number = ending_of(name);
        if (number < 0) return others_.emplace(name).second;
        std::bitset<1000>& page = pages_[std::string(name.substr(0, name.size() - 3))];
        bool was_taken = page[number];
        page[number] = true;
        return !was_taken;
    }

    bool has(std::string_view name) const {
        int number = ending_of(name);
        if (number < 0) return others_.count(std::string(name)) > 0;
        auto page = pages_.find(std::string(name.substr(0, name.size() - 3)));
        return page != pages_.end() && page->second[number];
    }

private:
    std::unordered_map<std::string, std::bitset<1000>> pages_;
    std::unordered_set<std::string> others_;

    // The last three digits, or -1 if those are none.
    static int ending_of(std::string_view name) {
        if (name.size() < 3) return -1;
        int number = 0;
        for (char digit : name.substr(name.size() - 3)) {
            if (digit < '0' || digit > '9') return -1;
            number = 10 * number + (digit - '0');
        }
        return number;
    }
};

inline void prepare_names(PyObject* module) {
    static PyMethodDef methods[] = {
        {"take",
         [](PyObject* self, PyObject* name) {
             return guarded([&] { return PyBool_FromLong(of<Names>(self).take(text_of(name))); });
         },
         METH_O, "Take a name; whether it was free."},
        {}};
    static PySequenceMethods sequence = {};
    sequence.sq_contains = [](PyObject* self, PyObject* name) {
        return guarded<int>(-1, [&] { return of<Names>(self).has(text_of(name)); });
    };
    PyTypeObject& type = box_type<Names>("batsched_py._native.Names", "Names that are taken for good.", methods);
    type.tp_as_sequence = &sequence;
    checked(PyModule_AddType(module, &type));
}
