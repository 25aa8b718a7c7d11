// When and where a job could start (specification: batsched_py/slurm/policy/plan.py).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "slurm_nodes.hpp"

namespace batsched::slurm {

using SharePointer = std::shared_ptr<Share>;

struct Found {
    std::optional<int64_t> start;  // nothing if it cannot start
    SharePointer share;            // what it would get if it starts within the window
    int64_t cpus = 0;              // how many processors were found for it last
    bool is_put_off = false;       // whether it was tried later than it could start if nobody else waited
    NodeSet make_way_on;           // the nodes on which jobs have to make way so that it can start now
    bool was_tried = false;        // whether enough nodes were left at some time
};

}  // namespace batsched::slurm
