// The nodes of a Slurm cluster, and what of them is free (specification: batsched_py/schedulers/slurm/nodes.py).
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace batsched::slurm {

// A set of nodes, one bit for each of them, the first node being the lowest bit of the first word. All sets of a
// machine have the same number of words.
class NodeSet {
public:
    NodeSet() = default;
    explicit NodeSet(size_t words) : words_(words) {}

    uint64_t* data() { return words_.data(); }
    const uint64_t* data() const { return words_.data(); }
    size_t size() const { return words_.size(); }

    bool has(size_t node) const { return words_[node / 64] >> node % 64 & 1; }
    void add(size_t node) { words_[node / 64] |= uint64_t{1} << node % 64; }

    NodeSet& operator&=(const NodeSet& other) {
        for (size_t word = 0; word < words_.size(); ++word) words_[word] &= other.words_[word];
        return *this;
    }
    NodeSet& operator|=(const NodeSet& other) {
        for (size_t word = 0; word < words_.size(); ++word) words_[word] |= other.words_[word];
        return *this;
    }
    NodeSet& operator-=(const NodeSet& other) {
        for (size_t word = 0; word < words_.size(); ++word) words_[word] &= ~other.words_[word];
        return *this;
    }
    bool operator==(const NodeSet&) const = default;

    bool meets(const NodeSet& other) const {
        uint64_t both = 0;
        for (size_t word = 0; word < words_.size(); ++word) both |= words_[word] & other.words_[word];
        return both;
    }

    bool has_all(const NodeSet& other) const {
        uint64_t missing = 0;
        for (size_t word = 0; word < words_.size(); ++word) missing |= other.words_[word] & ~words_[word];
        return !missing;
    }

    bool is_empty() const {
        return std::all_of(words_.begin(), words_.end(), [](uint64_t word) { return !word; });
    }

    int64_t count() const {
        int64_t count = 0;
        for (uint64_t word : words_) count += std::popcount(word);
        return count;
    }

    template <class Function>
    void for_each(Function function) const {
        for (size_t word = 0; word < words_.size(); ++word) {
            for (uint64_t bits = words_[word]; bits; bits &= bits - 1) {
                function(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
            }
        }
    }

    size_t hash() const {
        uint64_t mixed = 0;
        for (uint64_t word : words_) mixed = (std::rotl(mixed, 29) ^ word) * 0x9E3779B97F4A7C15u;
        return static_cast<size_t>(mixed ^ mixed >> 32);
    }

private:
    std::vector<uint64_t> words_;
};

// All nodes of a machine, in columns.
struct Machine {
    std::vector<int64_t> cpus, memory;
    std::vector<std::vector<int64_t>> others;  // a column for each other resource
    std::vector<NodeSet> by_weight;            // the nodes of each weight, those that are taken first being first
    bool is_uniform = false;                   // whether all nodes have the same number of processors

    size_t count() const { return cpus.size(); }
    size_t words() const { return (cpus.size() + 63) / 64; }
};

// What a job has of a node that it shares.
struct Part {
    size_t node;
    int64_t cpus, memory;
};

// How much a job has of another resource of a node that it shares.
struct OtherPart {
    size_t column, node;
    int64_t amount;
};

// What a job has: its nodes, and what it has of each of them if it shares them.
struct Share : std::enable_shared_from_this<Share> {
    NodeSet nodes;
    bool exclusive;
    std::vector<Part> parts;
    std::vector<OtherPart> others;
    int64_t cpus = 0;  // how many processors it has

    Share(size_t words, bool exclusive) : nodes(words), exclusive(exclusive) {}
};

// What is free on each node, now or at some time in the future.
struct Usage {
    NodeSet idle;       // the nodes without a job
    NodeSet exclusive;  // the nodes of jobs that share them with nobody
    std::vector<int64_t> cpus, memory;
    std::vector<std::vector<int64_t>> others;
    std::vector<int64_t> jobs;  // how many jobs share each node

    explicit Usage(const Machine& machine)
        : idle(machine.words()), exclusive(machine.words()), cpus(machine.cpus), memory(machine.memory),
          others(machine.others), jobs(machine.count()) {
        for (size_t node = 0; node < machine.count(); ++node) idle.add(node);
    }

    void take(const Share& share) {
        idle -= share.nodes;
        if (share.exclusive) exclusive |= share.nodes;
        for (const Part& part : share.parts) {
            cpus[part.node] -= part.cpus;
            memory[part.node] -= part.memory;
            ++jobs[part.node];
        }
        for (const OtherPart& part : share.others) others[part.column][part.node] -= part.amount;
    }

    void give(const Share& share) {
        if (share.exclusive) {
            exclusive -= share.nodes;
            idle |= share.nodes;
        }
        for (const Part& part : share.parts) {
            cpus[part.node] += part.cpus;
            memory[part.node] += part.memory;
            if (!--jobs[part.node]) idle.add(part.node);
        }
        for (const OtherPart& part : share.others) others[part.column][part.node] += part.amount;
    }
};

}  // namespace batsched::slurm
