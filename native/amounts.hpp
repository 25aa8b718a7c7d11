// What is free on nodes, what jobs ask of them, and what they take (specification: batsched_py/ledger/nodes.py and free_nodes.py).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace batsched {

// Amounts of resources in columns: the free cores, how many more jobs a node could have, then all others.
using Amounts = std::vector<int64_t>;
constexpr size_t kCores = 0, kPlaces = 1;

// What a job asks of a machine.
struct Demand {
    int64_t tasks = 0, cores = 1, least_nodes = 1, most_nodes = INT64_MAX, tasks_per_node = INT64_MAX;
    bool exclusive = false;
    Amounts per_task, per_node;
    std::vector<std::vector<size_t>> alternatives;  // of nodes, the preferred one first
    std::vector<std::pair<size_t, int64_t>> licences;
    bool could_be_granted = false;  // by an empty machine
    Amounts least = {};             // what it takes of all nodes together at least
    std::vector<bool> may_use = {};  // of each node, whether it is among the alternatives
};

// The nodes of a job in order, how many tasks each has, and what it takes of each node, a row a node.
struct Placement {
    std::vector<size_t> nodes;
    Amounts tasks, taken;
    const void* owner = nullptr;  // the nodes that it is a place on
};

// What is free: for each resource of each node in turn, and the licences of the machine.
struct FreeAmounts {
    Amounts nodes, licences;
    Amounts by_cores = {};  // how many nodes have so many free cores; empty if nobody has counted
};

// What is free, as several see it until one of them changes it for itself.
class SharedAmounts {
public:
    SharedAmounts() = default;
    explicit SharedAmounts(FreeAmounts amounts) : shared_(std::make_shared<FreeAmounts>(std::move(amounts))) {}

    const FreeAmounts& operator*() const { return *shared_; }
    FreeAmounts& own() {
        if (shared_.use_count() > 1) shared_ = std::make_shared<FreeAmounts>(*shared_);
        return *shared_;
    }

    // Lets a function try something, which leaves all as it was.
    template <class Function>
    auto attempt(Function function) const { return function(*shared_); }

private:
    std::shared_ptr<FreeAmounts> shared_;
};

}  // namespace batsched
