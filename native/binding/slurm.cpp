// The nodes, selection and plans of the twin of Slurm for Python: the same classes as in batsched_py/slurm/policy,
// with what its loops use of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include "slurm_plan.hpp"

namespace nb = nanobind;
using namespace batsched::slurm;

namespace batsched {
void bind_slurm(nb::module_ module);
}

namespace {

// Amounts and times beyond this are the same as infinite ones: no machine has them, no simulation lasts so long.
constexpr int64_t kMost = int64_t{1} << 48;

int64_t whole_number(nb::handle value) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (number == -1 && PyErr_Occurred()) throw nb::python_error();
    if (overflow) return overflow * kMost;
    return std::clamp<int64_t>(number, -kMost, kMost);
}

int64_t whole_number(nb::handle object, const char* name) { return whole_number(nb::getattr(object, name)); }

size_t index(nb::handle value) { return nb::cast<size_t>(value); }

// A set of nodes is a whole number in Python.
NodeSet node_set(nb::handle value, size_t words) {
    NodeSet set(words);
    auto* bytes = reinterpret_cast<unsigned char*>(set.data());
    size_t size = words * sizeof(uint64_t);
    if (!PyLong_Check(value.ptr())) throw nb::type_error("a set of nodes is a whole number");
#if PY_VERSION_HEX >= 0x030D0000
    constexpr int flags = Py_ASNATIVEBYTES_LITTLE_ENDIAN | Py_ASNATIVEBYTES_UNSIGNED_BUFFER | Py_ASNATIVEBYTES_REJECT_NEGATIVE;
    Py_ssize_t needed = PyLong_AsNativeBytes(value.ptr(), bytes, static_cast<Py_ssize_t>(size), flags);
    if (needed < 0) throw nb::python_error();
    if (needed > static_cast<Py_ssize_t>(size)) throw nb::value_error("a set has nodes that the machine has not");
#else
    auto* number = reinterpret_cast<PyLongObject*>(value.ptr());
    if (_PyLong_AsByteArray(number, bytes, size, 1, 0)) throw nb::python_error();
#endif
    return set;
}

nb::object from_node_set(const NodeSet& set) {
    auto* bytes = reinterpret_cast<const unsigned char*>(set.data());
    size_t size = set.size() * sizeof(uint64_t);
#if PY_VERSION_HEX >= 0x030D0000
    return nb::steal(PyLong_FromUnsignedNativeBytes(bytes, size, Py_ASNATIVEBYTES_LITTLE_ENDIAN));
#else
    return nb::steal(_PyLong_FromByteArray(bytes, size, 1, 0));
#endif
}

std::vector<int64_t> column(nb::handle numbers) {
    std::vector<int64_t> made;
    for (nb::handle number : numbers) made.push_back(whole_number(number));
    return made;
}

Machine machine(nb::handle given) {
    Machine made;
    made.cpus = column(given.attr("cpus"));
    made.memory = column(given.attr("memory"));
    made.threads = column(given.attr("threads"));
    made.granules = column(given.attr("granules"));
    for (nb::handle other : given.attr("others")) made.others.push_back(column(other));
    for (nb::handle nodes : given.attr("by_weight")) made.by_weight.push_back(node_set(nodes, made.words()));
    made.mixes_weights = nb::cast<bool>(given.attr("mixes_weights"));
    made.is_uniform = nb::cast<bool>(given.attr("is_uniform"));
    return made;
}

Asked asked(nb::handle given, size_t words) {
    Asked made;
    made.tasks = whole_number(given, "tasks");
    made.cpus_per_task = whole_number(given, "cpus_per_task");
    made.unit = whole_number(given, "unit");
    made.cpus = whole_number(given, "cpus");
    made.least_nodes = whole_number(given, "least_nodes");
    made.wanted_nodes = whole_number(given, "wanted_nodes");
    made.most_nodes = whole_number(given, "most_nodes");
    made.nodes = node_set(given.attr("nodes"), words);
    made.partition = node_set(given.attr("partition"), words);
    made.required = node_set(given.attr("required"), words);
    made.exclusive = nb::cast<bool>(given.attr("exclusive"));
    made.memory_per_cpu = whole_number(given, "memory_per_cpu");
    made.memory_per_node = whole_number(given, "memory_per_node");
    for (nb::handle other : given.attr("others")) {
        made.others.push_back({index(other[0]), whole_number(other[1]), whole_number(other[2])});
    }
    made.capacities = column(given.attr("capacities"));
    made.tasks_per_node = whole_number(given, "tasks_per_node");
    made.cpus_of_node = whole_number(given, "cpus_of_node");
    for (nb::handle gpus : given.attr("of_job")) {
        std::vector<size_t> columns;
        for (nb::handle column : gpus[0]) columns.push_back(index(column));
        made.of_job.push_back({std::move(columns), whole_number(gpus[1])});
    }
    for (nb::handle gpus : given.attr("gpus")) made.gpus.push_back({index(gpus[0]), whole_number(gpus[1])});
    made.least_cpus_of_node = whole_number(given, "least_cpus_of_node");
    made.most_cpus_of_node = whole_number(given, "most_cpus_of_node");
    made.own_cores = nb::cast<bool>(given.attr("own_cores"));
    made.cpus_of_core = whole_number(given, "cpus_of_core");
    made.charged_of_core = whole_number(given, "charged_of_core");
    made.least_loaded = nb::cast<bool>(given.attr("least_loaded"));
    made.contiguous = nb::cast<bool>(given.attr("contiguous"));
    return made;
}

// A selector that remembers what jobs have asked for: many ask for the same, and each request is one object in Python.
class KnowingSelector : public Selector {
public:
    using Selector::Selector;

    const Asked& known(nb::handle given) {
        auto [entry, is_new] = known_.try_emplace(given.ptr());
        if (is_new) {
            entry->second.asked = asked(given, machine().words());
            entry->second.asked.number = known_.size();
            entry->second.given = nb::borrow(given);
        }
        return entry->second.asked;
    }

private:
    struct Entry {
        Asked asked;
        nb::object given;  // kept, so that no other object has its address
    };
    std::unordered_map<PyObject*, Entry> known_;
};

// What reservations leave to a job, as a function of Python says; there are none if it is None.
Reservations reservations(nb::handle allowed, size_t words) {
    if (allowed.is_none()) return nullptr;
    return [allowed, words](int64_t later) -> std::optional<Allowed> {
        nb::object answer = allowed(later);
        if (answer.is_none()) return std::nullopt;
        return Allowed{node_set(answer[0], words), whole_number(answer[1]), whole_number(answer[2])};
    };
}

nb::object parts_of(const Share& share) {
    nb::list made;
    for (const Part& part : share.parts) made.append(nb::make_tuple(part.node, part.cpus, part.memory));
    return nb::tuple(made);
}

nb::object others_of(const Share& share) {
    nb::list made;
    for (const OtherPart& part : share.others) made.append(nb::make_tuple(part.column, part.node, part.amount));
    return nb::tuple(made);
}

// A share as the classes in Python tell it.
std::shared_ptr<Share> share_of(nb::handle told, size_t nodes) {
    auto made = std::make_shared<Share>((nodes + 63) / 64, nb::cast<bool>(told.attr("exclusive")));
    made->nodes = node_set(nb::object(told.attr("nodes")), made->nodes.size());
    for (nb::handle part : nb::object(told.attr("parts"))) {
        made->parts.push_back({index(part[0]), whole_number(part[1]), whole_number(part[2])});
        made->cpus += made->parts.back().cpus;
    }
    for (nb::handle part : nb::object(told.attr("others")))
        made->others.push_back({index(part[0]), index(part[1]), whole_number(part[2])});
    return made;
}

Ending ending(nb::handle running) {
    static nb::handle share = PyUnicode_InternFromString("share"), end = PyUnicode_InternFromString("end");
    return {nb::cast<SharePointer>(nb::getattr(running, share)), whole_number(nb::getattr(running, end))};
}

nb::tuple as_tuple(const Found& found) {
    nb::object start = found.start ? nb::object(nb::int_(*found.start)) : nb::none();
    nb::object make_way_on = found.make_way_on.size() ? from_node_set(found.make_way_on) : nb::int_(0);
    return nb::make_tuple(start, found.share, found.cpus, found.is_put_off, make_way_on, found.was_tried);
}

// Keep nodes for jobs in turn, until one can start now, enough were tried, or the plan is full.
nb::tuple plan_starts(Plan& plan, Future& future, nb::handle records, nb::list seen, int64_t now, nb::handle completing) {
    static nb::handle limit = PyUnicode_InternFromString("least_limit"), request = PyUnicode_InternFromString("asked"),
                      size = PyUnicode_InternFromString("cpus");
    auto& selector = static_cast<KnowingSelector&>(future.selector());
    NodeSet unclean = node_set(completing, plan.words()), kept(plan.words());
    nb::object last = nb::none();
    const Found* found = nullptr;
    bool is_full = false;
    plan.remind(future);
    while (!plan.has_tried_enough()) {
        nb::object record = nb::steal(PyIter_Next(records.ptr()));
        if (!record.is_valid()) {
            if (PyErr_Occurred()) throw nb::python_error();
            break;
        }
        seen.append(record);
        int64_t length = whole_number(nb::getattr(record, limit)) * 60;
        const Asked& asked = selector.known(nb::getattr(record, request));
        found = &plan.remembered_start(future, asked, {now, length, false, unclean});
        if (found->cpus) nb::setattr(record, size, nb::int_(found->cpus));
        last = std::move(record);
        if (!found->start || !found->share) continue;
        if (*found->start <= now) break;
        kept |= found->share->nodes;
        is_full = plan.is_full();
        if (is_full) break;
        plan.keep(future, found->share, *found->start, *found->start + length);
    }
    nb::object of_last = found ? nb::object(as_tuple(*found)) : nb::none();
    return nb::make_tuple(last, of_last, from_node_set(kept), is_full);
}

}  // namespace

void batsched::bind_slurm(nb::module_ module) {
    nb::class_<Share>(module, "Share")
        .def_static("of", &share_of)
        .def_prop_ro("nodes", [](const Share& share) { return from_node_set(share.nodes); })
        .def_ro("exclusive", &Share::exclusive)
        .def_prop_ro("parts", &parts_of)
        .def_prop_ro("others", &others_of);

    nb::class_<Usage>(module, "Usage")
        .def("__init__", [](Usage* usage, nb::handle given) { new (usage) Usage(machine(given)); })
        .def_prop_ro("idle", [](const Usage& usage) { return from_node_set(usage.idle); })
        .def_prop_ro("exclusive", [](const Usage& usage) { return from_node_set(usage.exclusive); })
        .def("copy", [](const Usage& usage) { return Usage(usage); })
        .def("take", &Usage::take)
        .def("give", &Usage::give);

    nb::class_<KnowingSelector>(module, "Selector")
        .def("__init__", [](KnowingSelector* selector, nb::handle given, bool consumes_memory) {
            new (selector) KnowingSelector(machine(given), consumes_memory);
        })
        .def("select", [](KnowingSelector& selector, nb::handle given, nb::handle nodes, const Usage& usage) {
            NodeSet among = node_set(nodes, selector.machine().words());
            std::optional<Share> found = selector.select(selector.known(given), among, usage);
            return found ? std::make_shared<Share>(std::move(*found)) : nullptr;
        });

    nb::class_<Future>(module, "Future")
        .def("__init__", [](Future* made, const Usage& usage, nb::handle running,
                            std::shared_ptr<KnowingSelector> selector, int64_t window_step, bool is_linear,
                            int64_t kill_wait, int64_t origin) {
            std::vector<Ending> endings;
            for (nb::handle each : running) endings.push_back(ending(each));
            new (made) Future(usage, std::move(endings), selector, window_step, is_linear, kill_wait, origin);
        })
        .def("started", [](Future& future, size_t place, nb::handle running) { future.started(place, ending(running)); })
        .def("ended", &Future::ended)
        .def_prop_ro("first_end", &Future::first_end);

    nb::class_<Plan>(module, "Plan")
        .def("__init__", [](Plan* plan, nb::handle machine, int64_t now, int64_t window, int64_t resolution,
                            nb::handle nodes, int64_t most_jobs, int64_t origin) {
            NodeSet free = node_set(nodes, NodeSet::words_for(nb::len(nb::object(machine.attr("nodes")))));
            new (plan) Plan(now, window, resolution, free, most_jobs, origin);
        })
        .def_prop_ro("begins", [](const Plan& plan) {
            nb::list begins;
            for (int64_t begin : plan.begins()) begins.append(begin);
            return begins;
        })
        .def_prop_ro("is_full", &Plan::is_full)
        .def_prop_ro("has_tried_enough", &Plan::has_tried_enough)
        .def_prop_ro("puts_off", &Plan::puts_off)
        .def("go_back", &Plan::go_back)
        .def("next_change", &Plan::next_change)
        .def("keep", [](Plan& plan, SharePointer share, nb::handle start, nb::handle end) {
            plan.keep(share, whole_number(start), whole_number(end));
        })
        .def("plan_starts", &plan_starts)
        .def("find_start", [](Plan& plan, Future& future, Future* without, nb::handle given, nb::handle length,
                              int64_t now, bool only_now, nb::handle completing, nb::handle allowed) {
            const Asked& asked = static_cast<KnowingSelector&>(future.selector()).known(given);
            NodeSet unclean = node_set(completing, plan.words());
            Look look{now, whole_number(length), only_now, unclean};
            return as_tuple(plan.find_start(future, without, asked, look, reservations(allowed, plan.words())));
        }, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
}
