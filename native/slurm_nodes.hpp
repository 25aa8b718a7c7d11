// The nodes of a Slurm cluster, and what of them is free (specification: batsched_py/slurm/policy/nodes.py).
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace batsched::slurm {

// A set of nodes, one bit for each of them, the first node being the lowest bit of the first word. All sets of a
// machine have the same number of words. The first few are always there, and are kept without asking for memory; loops
// over them have no end to look for.
class NodeSet {
public:
    static constexpr size_t kFew = 4;

    NodeSet() = default;
    explicit NodeSet(size_t words) : size_(std::max(words, kFew)), many_(words > kFew ? words : 0) {}

    // How many words there are for so many nodes.
    static size_t words_for(size_t nodes) { return std::max((nodes + 63) / 64, kFew); }

    uint64_t* data() { return size_ > kFew ? many_.data() : few_.data(); }
    const uint64_t* data() const { return size_ > kFew ? many_.data() : few_.data(); }
    size_t size() const { return size_; }

    bool has(size_t node) const { return data()[node / 64] >> node % 64 & 1; }
    void add(size_t node) { data()[node / 64] |= uint64_t{1} << node % 64; }

    NodeSet& operator&=(const NodeSet& other) {
        return change(other, [](uint64_t mine, uint64_t its) { return mine & its; });
    }
    NodeSet& operator|=(const NodeSet& other) {
        return change(other, [](uint64_t mine, uint64_t its) { return mine | its; });
    }
    NodeSet& operator-=(const NodeSet& other) {
        return change(other, [](uint64_t mine, uint64_t its) { return mine & ~its; });
    }
    bool operator==(const NodeSet& other) const {
        return size_ == other.size_ && !any(other, [](uint64_t mine, uint64_t its) { return mine ^ its; });
    }

    bool meets(const NodeSet& other) const {
        return any(other, [](uint64_t mine, uint64_t its) { return mine & its; });
    }

    bool has_all(const NodeSet& other) const {
        return !any(other, [](uint64_t mine, uint64_t its) { return its & ~mine; });
    }

    bool is_empty() const {
        return !any(*this, [](uint64_t mine, uint64_t) { return mine; });
    }

    int64_t count() const {
        int64_t count = 0;
        for (size_t word = 0; word < size_; ++word) count += std::popcount(data()[word]);
        return count;
    }

    bool has_at_least(int64_t least) const { return least == 1 ? !is_empty() : count() >= least; }

    template <class Function>
    void for_each(Function function) const {
        for (size_t word = 0; word < size_; ++word) {
            for (uint64_t bits = data()[word]; bits; bits &= bits - 1) {
                function(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
            }
        }
    }

    size_t hash() const {
        uint64_t mixed = 0;
        for (size_t word = 0; word < size_; ++word) {
            mixed = (std::rotl(mixed, 29) ^ data()[word]) * 0x9E3779B97F4A7C15u;
        }
        return static_cast<size_t>(mixed ^ mixed >> 32);
    }

private:
    size_t size_ = 0;
    std::array<uint64_t, kFew> few_{};
    std::vector<uint64_t> many_;

    template <class Function>
    NodeSet& change(const NodeSet& other, Function function) {
        if (size_ == kFew) {
            for (size_t word = 0; word < kFew; ++word) few_[word] = function(few_[word], other.few_[word]);
        } else {
            for (size_t word = 0; word < size_; ++word) many_[word] = function(many_[word], other.many_[word]);
        }
        return *this;
    }

    // Whether there is anything in what a function makes of the words of both.
    template <class Function>
    bool any(const NodeSet& other, Function function) const {
        uint64_t found = 0;
        if (size_ == kFew) {
            for (size_t word = 0; word < kFew; ++word) found |= function(few_[word], other.few_[word]);
        } else {
            for (size_t word = 0; word < size_; ++word) found |= function(many_[word], other.many_[word]);
        }
        return found;
    }
};

// All nodes of a machine, in columns.
struct Machine {
    std::vector<int64_t> cpus, memory;
    std::vector<int64_t> threads;              // how many processors are one core
    std::vector<int64_t> granules;             // in multiples of how many processors a node is given out
    std::vector<std::vector<int64_t>> others;  // a column for each other resource
    std::vector<NodeSet> by_weight;            // the nodes of each weight, those that are taken first being first
    bool mixes_weights = false;                // whether a job may get heavier nodes than others that are free
    bool is_uniform = false;                   // whether all nodes have the same number of processors

    size_t count() const { return cpus.size(); }
    size_t words() const { return NodeSet::words_for(cpus.size()); }
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
