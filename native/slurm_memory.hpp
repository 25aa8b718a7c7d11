// What a look at a job finds, and what a plan remembers of the looks in the last cycles. The latter makes no difference to
// what is found, so there is no such class in Python.
#pragma once
#include <optional>
#include <unordered_map>

#include "slurm_nodes.hpp"

namespace batsched::slurm {

using SharePointer = std::shared_ptr<Share>;

// When and where a job could start.
struct Found {
    std::optional<int64_t> start;  // nothing if it cannot start
    SharePointer share;            // what it would get if it starts within the window
    int64_t cpus = 0;              // how many processors were found for it last
    bool is_put_off = false;       // whether it was tried later than it could start if nobody else waited
    NodeSet make_way_on;           // the nodes on which jobs have to make way so that it can start now
    bool was_tried = false;        // whether enough nodes were left at some time
};

// Looks at jobs, in the order of the plan: those before the first job that nodes are kept for, those behind it, and so on.
// A look finds the same in another cycle if the plan until then is the same, no job has started or ended that matters,
// and no span has begun or ended meanwhile.
class Memory {
public:
    // Nodes that are kept from one time to another.
    struct Step {
        NodeSet nodes;
        int64_t start, end;

        bool operator==(const Step&) const = default;
    };

    // What a look has found, on which nodes that depends, and from when until when it holds.
    struct Known {
        Found found;
        NodeSet nodes;
        int64_t since, until;
        size_t nb_outlived;  // how many starts and ends of jobs it has outlived
    };

    // A plan of all these nodes begins.
    void begin(const NodeSet& all) {
        if (!(all == all_)) {
            all_ = all;
            steps_.clear();
            looks_.assign(1, {});
        }
        nb_steps_ = 0;
    }

    // The plan goes on in this way. If it went on in another way the last time, all looks behind that are forgotten.
    void keep(const Step& step) {
        if (nb_steps_ == steps_.size() || !(steps_[nb_steps_] == step)) {
            steps_.resize(nb_steps_);
            steps_.push_back(step);
            looks_.resize(nb_steps_ + 1);
            looks_.emplace_back();
        }
        ++nb_steps_;
    }

    // The last look at such a job at this point of the plan, if there was one.
    Known* find(size_t asked, int64_t length) {
        auto known = looks_[nb_steps_].find({asked, length});
        return known == looks_[nb_steps_].end() ? nullptr : &known->second;
    }

    void remember(size_t asked, int64_t length, Known known) {
        Looks& looks = looks_[nb_steps_];
        if (looks.size() >= kMostLooks) looks.clear();
        looks.insert_or_assign({asked, length}, std::move(known));
    }

private:
    static constexpr size_t kMostLooks = 256;

    // What is asked for, and for how long.
    using Job = std::pair<size_t, int64_t>;
    struct Hash {
        size_t operator()(const Job& job) const { return job.first * 0x9E3779B97F4A7C15u ^ static_cast<size_t>(job.second); }
    };
    using Looks = std::unordered_map<Job, Known, Hash>;

    NodeSet all_;
    std::vector<Step> steps_;
    std::vector<Looks> looks_{1};
    size_t nb_steps_ = 0;  // how many of the steps the plan has come to
};

}  // namespace batsched::slurm
