// Tables of jobs as columns that numpy can look at.
#include "engine.hpp"
#include "job_table.hpp"

namespace batsched {
namespace {

template <class Number>
nb::bytes taken(std::vector<Number>& column) {
    nb::bytes copy(column.data(), column.size() * sizeof(Number));
    column.clear();
    return copy;
}

nb::dict take(JobTable& table) {
    nb::dict columns;
    for (size_t place = 0; place < table.names.size(); ++place) {
        columns[nb::cast(table.names[place])] = taken(table.numbers[place]);
    }
    columns["state"] = taken(table.states);
    columns["held"] = taken(table.held);
    columns["highest"] = taken(table.highest);
    return columns;
}

}  // namespace

void bind_tables(nb::module_& module) {
    nb::class_<JobTable>(module, "JobTable", "The rows of a table of jobs, read into columns of numbers.")
        .def(nb::init<std::vector<std::string>, std::vector<std::string>, std::vector<std::string>>())
        .def("read",
             [](JobTable& table, nb::bytes text, bool is_last) {
                 nb::gil_scoped_release others_go_on;
                 return table.read({text.c_str(), text.size()}, is_last);
             },
             "Reads whole lines, and returns how many bytes these have; -1 if a row is unusual.")
        .def("take", &take, "The columns of what was read since the last call, by their names.")
        .def_ro("has_notes", &JobTable::has_notes);
}

}  // namespace batsched
