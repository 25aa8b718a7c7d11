// Which nodes a job gets, as select/cons_tres chooses them (specification: batsched_py/slurm/policy/selection.py).
#pragma once
#include <functional>
#include <optional>
#include <utility>

#include "slurm_nodes.hpp"

namespace batsched::slurm {

// What a job asks of the machine (specification: batsched_py/slurm/policy/job.py).
struct Asked {
    struct Other {
        size_t column;
        int64_t of_node, of_task;
    };

    size_t number = 0;  // what is asked for in the same way has the same number
    int64_t tasks = 1, cpus_per_task = 1, unit = 1, cpus = 1;
    int64_t least_nodes = 1, wanted_nodes = 1, most_nodes = 1;
    NodeSet nodes, partition, required;
    bool exclusive = false;
    int64_t memory_per_cpu = 0, memory_per_node = 0;
    std::vector<Other> others;
    std::vector<int64_t> capacities;
    int64_t tasks_per_node = 0, least_cpus_of_node = 1, cpus_of_node = 1, most_cpus_of_node = 0;
    bool own_cores = false;     // whether each of its tasks has cores of its own
    int64_t cpus_of_core = 1;   // it may use so many processors of a core
    int64_t charged_of_core = 1;  // and gets memory for so many
    bool least_loaded = false, contiguous = false;
    struct OfJob {
        std::vector<size_t> columns;
        int64_t amount;
    };
    std::vector<OfJob> of_job;
    struct Gpus {
        size_t column;
        int64_t most;
    };
    std::vector<Gpus> gpus;

    // How many nodes the job may have: no more than tasks, unless it asks for them.
    int64_t most_useful_nodes() const { return std::min(most_nodes, std::max(tasks, least_nodes)); }

    // How many of some free processors of a node it could use, if so many threads are a core.
    int64_t usable_cpus(int64_t free, int64_t threads) const {
        if (threads == 1 && !own_cores) return free;
        int64_t cores = free / threads, of_core = std::min(threads, cpus_of_core);
        if (!own_cores) return cores * of_core;
        int64_t of_task = ceil_division(cpus_per_task, of_core);
        return cores / of_task * cpus_per_task + cores % of_task * of_core;
    }

    // How many processors are in the cores of so many processors that it uses.
    int64_t held_cpus(int64_t used, int64_t threads) const {
        int64_t of_core = std::min(threads, cpus_of_core);
        if (!own_cores) return ceil_division(used, of_core) * threads;
        int64_t tasks = used / cpus_per_task, left = used % cpus_per_task;
        return (tasks * ceil_division(cpus_per_task, of_core) + ceil_division(left, of_core)) * threads;
    }

    static int64_t ceil_division(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }
};

class Selector {
public:
    Selector(Machine machine, bool consumes_memory)
        : machine_(std::move(machine)), consumes_memory_(consumes_memory), room_(machine_.count()) {
        NodeSet& all = of_any_weight_.emplace_back(machine_.words());
        for (size_t node = 0; node < machine_.count(); ++node) all.add(node);
    }

    const Machine& machine() const { return machine_; }

    // The nodes that a job gets, if only these may be taken.
    std::optional<Share> select(const Asked& asked, const NodeSet& nodes, const Usage& usage) {
        usable_ = nodes;
        usable_ &= asked.nodes;
        if (asked.exclusive) {
            usable_ &= usage.idle;
            return whole(asked, usable_);
        }
        usable_ -= usage.exclusive;
        find_room(asked, usable_, usage);
        if (!choose_any(asked, usage.others, machine_.by_weight)) return std::nullopt;
        return share(asked, usage);
    }

    // Some of these idle nodes, which are given whole. select/linear takes no notice of weights among the nodes of which
    // it chooses. These are the lightest ones, more and more of them until they are enough.
    std::optional<Share> whole(const Asked& asked, const NodeSet& nodes) {
        if (!machine_.mixes_weights) return whole(asked, nodes, machine_.by_weight);
        NodeSet lightest(machine_.words());
        for (const NodeSet& of_weight : machine_.by_weight) {
            NodeSet more = of_weight;
            more &= nodes;
            lightest |= more;
            bool are_all = lightest == nodes;
            if (are_all || lightest.count() >= asked.wanted_nodes) {
                std::optional<Share> found = whole(asked, lightest, of_any_weight_);
                if (found || are_all) return found;
            }
        }
        return std::nullopt;
    }

private:
    std::optional<Share> whole(const Asked& asked, const NodeSet& nodes, const std::vector<NodeSet>& by_weight) {
        if (nodes.count() < asked.least_nodes) return std::nullopt;
        clear_room();
        if (machine_.is_uniform && asked.cpus <= asked.least_nodes && asked.least_nodes == asked.wanted_nodes &&
            !asked.required.count() && asked.gpus.empty() && !asked.contiguous && !asked.least_loaded) {
            nodes.for_each([&](size_t node) { add_room(node, 1); });
            choose_fewest_sets(asked.least_nodes, by_weight);
        } else {
            nodes.for_each([&](size_t node) { add_room(node, room_of_idle(asked, node)); });
            if (!choose_any(asked, machine_.others, by_weight)) return std::nullopt;
        }
        Share made(machine_.words(), true);
        for (auto& [node, cpus] : chosen_) {
            made.nodes.add(node);
            made.cpus += machine_.cpus[node];
        }
        return made;
    }

    using Chosen = std::pair<size_t, int64_t>;
    using Columns = std::vector<std::vector<int64_t>>;

    // Nodes that follow one another, and how many processors they have together.
    struct Neighbours {
        size_t first, last;
        int64_t cpus;

        int64_t count() const { return static_cast<int64_t>(last - first + 1); }
    };

    // What is still missing while nodes are taken for a job one after another.
    struct Missing {
        int64_t cpus, nodes, least_nodes, most_nodes;
        std::vector<int64_t> gpus;  // of each kind that is asked for by the whole job

        bool has_gpus() const {
            return std::all_of(gpus.begin(), gpus.end(), [](int64_t count) { return count <= 0; });
        }
        bool nothing() const { return nodes <= 0 && cpus <= 0 && has_gpus(); }
    };

    Machine machine_;
    bool consumes_memory_;
    // What a search uses, kept so that no memory is asked for each time.
    NodeSet usable_;
    std::vector<int64_t> room_;     // how many processors a job could use on each node
    std::vector<size_t> has_room_;  // the nodes that have room, in order
    const Columns* free_ = nullptr;  // how much of each other resource is free
    std::vector<Neighbours> sets_;
    std::vector<NodeSet> by_gpus_;
    std::vector<NodeSet> of_any_weight_;  // all nodes as one set
    std::vector<Chosen> chosen_;    // the nodes of a job and its processors on each, in the order of the choice

    static int64_t floor_division(int64_t value, int64_t divisor) {
        return value / divisor - (value % divisor && (value < 0) != (divisor < 0));
    }

    void clear_room() { has_room_.clear(); }
    void add_room(size_t node, int64_t cpus) {
        room_[node] = cpus;
        has_room_.push_back(node);
    }

    // How many processors a job could use on a node that nobody uses.
    int64_t room_of_idle(const Asked& asked, size_t node) const {
        if (asked.unit == asked.cpus_per_task) return asked.capacities[node] * asked.cpus_per_task;
        return asked.usable_cpus(machine_.cpus[node], machine_.threads[node]);
    }

    // How many processors a job could use on each node.
    void find_room(const Asked& asked, const NodeSet& nodes, const Usage& usage) {
        clear_room();
        nodes.for_each([&](size_t node) {
            int64_t threads = machine_.threads[node], granule = machine_.granules[node];
            int64_t cpus = asked.usable_cpus(usage.cpus[node], threads), of_cpu = asked.memory_per_cpu;
            if (cpus < asked.least_cpus_of_node) return;
            if (of_cpu) {
                int64_t left = usage.memory[node] - asked.memory_per_node;
                if (asked.own_cores && asked.cpus_per_task == 1 && granule > 1) {
                    cpus = std::min(cpus, floor_division(left, of_cpu * threads));
                } else if (cpus * of_cpu > left) {
                    cpus -= Asked::ceil_division(cpus * of_cpu - left, of_cpu * granule) * granule;
                }
            } else if (asked.memory_per_node) {
                if (asked.memory_per_node > usage.memory[node]) return;
            } else if (consumes_memory_ && usage.memory[node] < machine_.memory[node]) {
                return;
            }
            for (const Asked::Other& other : asked.others) {
                int64_t left = usage.others[other.column][node] - other.of_node;
                if (other.of_task) {
                    cpus = std::min(cpus, floor_division(left, other.of_task) * asked.cpus_per_task);
                } else if (left < 0) {
                    cpus = 0;
                }
            }
            for (const Asked::OfJob& gpus : asked.of_job) {
                if (usage.others[gpus.columns[0]][node] <= 0) cpus = 0;
            }
            if (asked.unit > 1) cpus = floor_division(cpus, asked.unit) * asked.unit;
            if (asked.most_cpus_of_node) cpus = std::min(cpus, asked.most_cpus_of_node);
            if (cpus >= asked.least_cpus_of_node) add_room(node, cpus);
        });
    }

    // The nodes with room of each weight, and of each number of free GPUs that count; more of them come first.
    const std::vector<NodeSet>& by_gpus(const Asked& asked, const std::vector<NodeSet>& by_weight) {
        if (asked.gpus.empty()) return by_weight;
        auto near = [&](size_t node) {
            int64_t count = 0;
            for (auto [column, most] : asked.gpus) count += std::min((*free_)[column][node], most);
            return count;
        };
        std::vector<int64_t> counts;
        for (size_t node : has_room_) counts.push_back(near(node));
        std::sort(counts.begin(), counts.end(), std::greater{});
        counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
        by_gpus_.clear();
        for (const NodeSet& of_weight : by_weight) {
            for (int64_t count : counts) {
                NodeSet& made = by_gpus_.emplace_back(machine_.words());
                for (size_t node : has_room_) {
                    if (near(node) == count && of_weight.has(node)) made.add(node);
                }
            }
        }
        return by_gpus_;
    }

    // Choose of all nodes with room, or else leave out the smallest, more and more, until the rest do; whether they do.
    bool choose_any(const Asked& asked, const Columns& free, const std::vector<NodeSet>& of_weights) {
        free_ = &free;
        const std::vector<NodeSet>& by_weight = by_gpus(asked, of_weights);
        if (choose(asked, by_weight)) return true;
        if (asked.most_useful_nodes() >= static_cast<int64_t>(has_room_.size())) return false;
        auto size = [&](size_t node) {
            int64_t sum = room_[node];
            for (auto [column, most] : asked.gpus) sum += free[column][node];
            return sum;
        };
        int64_t largest = 0;
        for (size_t node : has_room_) largest = std::max(largest, size(node));
        for (int64_t smallest = 1; smallest < largest; ++smallest) {
            size_t before = has_room_.size();
            std::erase_if(has_room_, [&](size_t node) { return size(node) <= smallest; });
            if (static_cast<int64_t>(has_room_.size()) < std::max<int64_t>(asked.least_nodes, 1)) return false;
            if (has_room_.size() < before && choose(asked, by_weight)) return true;
        }
        return false;
    }

    // The nodes of one weight that have room and are not taken already, cut into sets of neighbours.
    void cut(const NodeSet& of_weight, const NodeSet& taken) {
        sets_.clear();
        for (size_t node : has_room_) {
            if (!of_weight.has(node) || taken.has(node)) continue;
            if (!sets_.empty() && sets_.back().last + 1 == node) {
                sets_.back().last = node;
                sets_.back().cpus += room_[node];
            } else {
                sets_.push_back({node, node, room_[node]});
            }
        }
    }

    // How many processors a job gets on which nodes, those of the first weight being taken first; whether there are enough.
    bool choose(const Asked& asked, const std::vector<NodeSet>& by_weight) {
        int64_t sum = 0;
        for (size_t node : has_room_) sum += room_[node];
        if (static_cast<int64_t>(has_room_.size()) < asked.least_nodes || sum < asked.cpus) return false;
        Missing missing{asked.cpus, asked.wanted_nodes, asked.least_nodes, asked.most_useful_nodes(), {}};
        for (const Asked::OfJob& gpus : asked.of_job) missing.gpus.push_back(gpus.amount);
        chosen_.clear();
        if (!take_required(asked, missing, by_weight)) return false;
        NodeSet lighter(machine_.words());
        for (const NodeSet& of_weight : by_weight) {
            if (asked.least_loaded) {
                take_least_loaded(asked, of_weight, missing);
            } else if (asked.contiguous) {
                lighter |= of_weight;
                if (take_one_set(asked, lighter, missing)) break;
            } else {
                take_neighbours(asked, of_weight, missing);
            }
            if (missing.nothing()) break;
        }
        return missing.cpus <= 0 && missing.least_nodes <= 0 && missing.has_gpus();
    }

    // Take nodes that follow one another, as long as something is missing.
    void take_neighbours(const Asked& asked, const NodeSet& nodes, Missing& missing) {
        cut(nodes, asked.required.is_empty() ? asked.required : taken());
        while (!sets_.empty() && missing.most_nodes && !missing.nothing()) {
            auto best = best_set_for(asked, missing);
            Neighbours set = *best;
            sets_.erase(best);
            take_set(asked, set, missing);
        }
    }

    // Take nodes that follow one another, if one set of them is enough; whether it is.
    bool take_one_set(const Asked& asked, const NodeSet& nodes, Missing& missing) {
        cut(nodes, asked.required.is_empty() ? asked.required : taken());
        if (sets_.empty() || !missing.most_nodes || missing.nothing()) return false;
        Neighbours set = *best_set_for(asked, missing);
        if (set.cpus < missing.cpus || set.count() < missing.least_nodes || !have_gpus(asked, missing, set.first, set.last)) {
            return false;
        }
        take_set(asked, set, missing);
        return true;
    }

    std::vector<Neighbours>::iterator best_set_for(const Asked& asked, const Missing& missing) {
        return best_set(missing.cpus, missing.least_nodes, [&](size_t first, size_t last) {
            return have_gpus(asked, missing, first, last);
        });
    }

    void take_set(const Asked& asked, Neighbours set, Missing& missing) {
        if (missing.nodes <= 1) {
            size_t fitting = set.last + 1;
            for (size_t node = set.first; node <= set.last; ++node) {
                bool is_enough = room_[node] >= missing.cpus && have_gpus(asked, missing, node, node);
                if (is_enough && (fitting > set.last || room_[node] < room_[fitting])) fitting = node;
            }
            if (fitting <= set.last) set.first = set.last = fitting;
        }
        for (size_t node = set.first; node <= set.last && missing.most_nodes && !missing.nothing(); ++node) {
            if (missing.most_nodes > 1 || room_[node] >= missing.cpus) take(asked, node, missing);
        }
    }

    // Take the nodes of which the largest part is free, as long as something is missing. Slurm looks no further when it
    // comes to a node with as many free processors as the last one had.
    void take_least_loaded(const Asked& asked, const NodeSet& of_weight, Missing& missing) {
        NodeSet before = taken();
        std::vector<size_t> left;
        for (size_t node : has_room_) {
            if (of_weight.has(node) && !before.has(node)) left.push_back(node);
        }
        int64_t room_of_last = -1;
        while (!left.empty() && missing.most_nodes && !missing.nothing()) {
            auto best = left.begin();
            for (auto node = left.begin(); node != left.end(); ++node) {
                if (node != best && room_[*best] * machine_.cpus[*node] >= room_[*node] * machine_.cpus[*best]) continue;
                best = node;
                if (room_[*node] == room_of_last) break;
            }
            room_of_last = room_[*best];
            take(asked, *best, missing);
            left.erase(best);
        }
    }

    // Whether the nodes from one to another have the GPUs of the whole job that are missing.
    bool have_gpus(const Asked& asked, const Missing& missing, size_t first, size_t last) const {
        for (size_t kind = 0; kind < missing.gpus.size(); ++kind) {
            const std::vector<int64_t>& free = (*free_)[asked.of_job[kind].columns[0]];
            int64_t left = missing.gpus[kind];
            for (size_t node = first; node <= last; ++node) left -= free[node];
            if (left > 0) return false;
        }
        return true;
    }

    // Take the nodes that a job must have, and their neighbours if more are needed; whether they all have room.
    bool take_required(const Asked& asked, Missing& missing, const std::vector<NodeSet>& by_weight) {
        if (asked.required.is_empty()) return true;
        int64_t with_room = 0;
        for (size_t node : has_room_) with_room += asked.required.has(node);
        if (with_room < asked.required.count()) return false;
        asked.required.for_each([&](size_t node) { take(asked, node, missing); });
        for (const NodeSet& of_weight : by_weight) {
            cut(of_weight, NodeSet(machine_.words()));
            for (auto [first, last, cpus] : sets_) take_around(asked, first, last, missing);
        }
        return true;
    }

    // Of a set of neighbours, take those after the first node that a job must have, then those before it.
    void take_around(const Asked& asked, size_t first, size_t last, Missing& missing) {
        size_t required = first;
        while (required <= last && !asked.required.has(required)) ++required;
        if (required > last) return;
        for (size_t node = required + 1; node <= last; ++node) take_if_needed(asked, node, missing);
        for (size_t node = required; node-- > first;) take_if_needed(asked, node, missing);
    }

    // Take a node if something is missing, and if it is enough where no other may follow.
    void take_if_needed(const Asked& asked, size_t node, Missing& missing) {
        if (asked.required.has(node) || !missing.most_nodes || missing.nothing()) return;
        if (missing.most_nodes > 1 || room_[node] >= missing.cpus) take(asked, node, missing);
    }

    // The nodes that were chosen until now.
    NodeSet taken() const {
        NodeSet nodes(machine_.words());
        for (auto& [node, cpus] : chosen_) nodes.add(node);
        return nodes;
    }

    // Take a node: all processors of use there, but for a core or socket of each node that must follow.
    void take(const Asked& asked, size_t node, Missing& missing) {
        int64_t cpus = room_[node];
        if (!asked.exclusive) {
            int64_t threads = machine_.threads[node], granule = machine_.granules[node];
            int64_t of_following =
                granule == 1 ? std::min(threads, asked.cpus_of_core)
                             : std::min(threads, asked.cpus_of_core) * std::max<int64_t>(granule / threads, 1);
            int64_t kept = missing.cpus - std::max<int64_t>(missing.least_nodes - 1, 0) * of_following;
            if (cpus > kept) cpus = std::max(kept, asked.cpus_of_node);
        }
        chosen_.emplace_back(node, cpus);
        missing.cpus -= cpus;
        for (size_t kind = 0; kind < missing.gpus.size(); ++kind) {
            missing.gpus[kind] -= (*free_)[asked.of_job[kind].columns[0]][node];
        }
        --missing.nodes;
        --missing.least_nodes;
        --missing.most_nodes;
    }

    // The smallest set of neighbours that is enough, or else the largest; of equal ones the first.
    template <typename HaveGpus>
    std::vector<Neighbours>::iterator best_set(int64_t cpus, int64_t nodes, HaveGpus have_gpus) {
        auto is_enough = [&](const Neighbours& set) {
            return set.cpus >= cpus && set.count() >= nodes && have_gpus(set.first, set.last);
        };
        auto best = sets_.begin();
        bool best_is_enough = is_enough(*best);
        for (auto set = best + 1; set != sets_.end(); ++set) {
            bool enough = is_enough(*set);
            if ((enough && !best_is_enough) || (enough && set->cpus < best->cpus) || (!enough && set->cpus > best->cpus)) {
                best = set;
                best_is_enough = enough;
            }
        }
        return best;
    }

    // So many of the nodes with room, which all have the same number of processors; there are enough.
    void choose_fewest_sets(int64_t count, const std::vector<NodeSet>& by_weight) {
        chosen_.clear();
        for (const NodeSet& of_weight : by_weight) {
            cut(of_weight, NodeSet(machine_.words()));
            while (!sets_.empty() && count) {
                auto best = best_set(count, 0, [](size_t, size_t) { return true; });
                for (size_t node = best->first; node <= best->last && count; ++node, --count) chosen_.emplace_back(node, 1);
                sets_.erase(best);
            }
            if (!count) break;
        }
    }

    // What a job takes of the nodes that it shares.
    Share share(const Asked& asked, const Usage& usage) {
        Share made(machine_.words(), false);
        int64_t sum = 0;
        for (auto& [node, cpus] : chosen_) sum += cpus;
        if (asked.cpus_per_task > 1 || sum > asked.cpus) deal(asked);
        for (auto& [node, cpus] : chosen_) {
            int64_t held = held_of(asked, node, cpus, usage.cpus[node]);
            int64_t threads = machine_.threads[node];
            int64_t charged =
                machine_.granules[node] > 1 ? held / threads * std::min(threads, asked.charged_of_core) : cpus;
            int64_t memory = asked.memory_per_cpu * charged + asked.memory_per_node;
            if (consumes_memory_ && !memory) memory = machine_.memory[node];
            made.parts.push_back({node, held, memory});
            for (const Asked::Other& other : asked.others) {
                made.others.push_back(
                    {other.column, node, other.of_node + other.of_task * (cpus / asked.cpus_per_task)});
            }
            made.nodes.add(node);
            made.cpus += held;
        }
        for (const Asked::OfJob& gpus : asked.of_job) share_out(gpus, usage.others[gpus.columns[0]], made);
        return made;
    }

    // How many processors of a node are taken for so many that a job uses: whole cores, or whole sockets.
    int64_t held_of(const Asked& asked, size_t node, int64_t cpus, int64_t free) const {
        int64_t threads = machine_.threads[node], granule = machine_.granules[node];
        if (threads == 1 && granule == 1 && !asked.own_cores) return cpus;
        int64_t count = Asked::ceil_division(asked.held_cpus(cpus, threads), granule);
        if (granule > threads) {
            count = std::max(count, std::min(Asked::ceil_division(cpus, asked.cpus_per_task), free / granule));
        }
        return count * granule;
    }

    // GPUs of the whole job: each node gives what it has, but for one for each node that follows.
    static void share_out(const Asked::OfJob& gpus, const std::vector<int64_t>& free, Share& made) {
        int64_t left = gpus.amount, following = made.nodes.count();
        made.nodes.for_each([&](size_t node) {
            int64_t given = std::max<int64_t>(std::min(free[node], left - --following), 0);
            left -= given;
            for (size_t column : gpus.columns) made.others.push_back({column, node, given});
        });
    }

    // How many processors a job gets of its nodes, of which so many are set aside for it.
    void deal(const Asked& asked) {
        std::sort(chosen_.begin(), chosen_.end());
        std::vector<int64_t> room, tasks(chosen_.size(), 1);
        int64_t count = static_cast<int64_t>(chosen_.size()), of_task = asked.cpus_per_task;
        bool is_full = true;
        for (auto& [node, cpus] : chosen_) {
            room.push_back(cpus);
            cpus = std::min(of_task, cpus);
            is_full = is_full && cpus >= room.back();
        }
        int64_t left = std::max(count * asked.cpus_of_node, asked.cpus) / of_task - count;
        auto fits = [&](size_t place) {
            return room[place] - chosen_[place].second >= of_task && tasks[place] != asked.tasks_per_node;
        };
        auto give = [&](size_t place) {
            ++tasks[place];
            chosen_[place].second = std::min(chosen_[place].second + of_task, room[place]);
            --left;
        };
        for (size_t place = 0; place < chosen_.size(); ++place) {
            int64_t more = chosen_[place].second % machine_.threads[chosen_[place].first] / of_task;
            for (; more > 0 && left > 0 && fits(place); --more) give(place);
        }
        while (left > 0) {
            bool has_space = false;
            for (size_t place = 0; place < chosen_.size(); ++place) {
                int64_t of_core = std::max<int64_t>(machine_.threads[chosen_[place].first] / of_task, 1);
                for (int64_t more = of_core; more > 0 && left && (is_full || fits(place)); --more) {
                    give(place);
                    has_space = has_space || room[place] - chosen_[place].second >= of_task;
                }
            }
            is_full = !has_space;
        }
    }
};

}  // namespace batsched::slurm
