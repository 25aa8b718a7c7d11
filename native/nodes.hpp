// The nodes of a machine: what jobs ask of them, and where jobs go (specification: batsched_py/ledger/nodes.py).
#pragma once
#include <deque>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "amounts.hpp"
#include "job.hpp"

namespace batsched {

class Nodes {
public:
    enum class Choice { kFirstFit, kBestFit, kWorstFit, kConsolidate, kSpread, kDominantResource, kFewestSwitches };

    FreeAmounts has;         // if no job runs
    const bool are_hosts;    // whether they are equal, with one core each and nothing else: any of them will do

    Nodes(size_t columns, FreeAmounts amounts, std::vector<int64_t> firsts, std::vector<size_t> switches, Choice choice,
          bool are_hosts)
        : has(std::move(amounts)), are_hosts(are_hosts), columns_(columns), count_(firsts.size()),
          firsts_(std::move(firsts)), switches_(std::move(switches)), choice_(choice) {
        int64_t most = *std::max_element(has.nodes.begin(), has.nodes.begin() + static_cast<ptrdiff_t>(count_));
        has.by_cores.resize(static_cast<size_t>(most) + 1);
        for (size_t node = 0; node < count_; ++node) ++has.by_cores[static_cast<size_t>(has.nodes[node])];
    }

    int32_t add(Demand demand) {
        demand.could_be_granted = fits(demand, has);
        for (size_t column = 0; column < columns_; ++column) {
            demand.least.push_back(demand.tasks * demand.per_task[column] + demand.least_nodes * demand.per_node[column]);
        }
        demand.may_use.resize(count_, false);
        for (const auto& nodes : demand.alternatives) {
            for (size_t node : nodes) demand.may_use[node] = true;
        }
        demands_.push_back(std::move(demand));
        return static_cast<int32_t>(demands_.size() - 1);
    }

    size_t count() const { return count_; }
    size_t columns() const { return columns_; }
    const Demand& demand(const Request& request) const { return demands_[static_cast<size_t>(request.demand)]; }

    // Whether all that a job asks for is free.
    bool fits(const Demand& demand, const FreeAmounts& amounts) const {
        if (!has_licences(demand, amounts) || !has_cores(demand, amounts)) return false;
        for (const auto& nodes : demand.alternatives) {
            if (holds(demand, nodes, amounts)) return true;
        }
        return false;
    }

    static bool has_licences(const Demand& demand, const FreeAmounts& amounts) {
        return has_licences(demand, amounts.licences.data());
    }
    static bool has_licences(const Demand& demand, const int64_t* licences) {
        return std::all_of(demand.licences.begin(), demand.licences.end(),
                           [&](const auto& one) { return licences[one.first] >= one.second; });
    }

    // How many tasks a node could take, of which so much is free: each amount is so far behind the one before.
    int64_t capacity(const Demand& demand, const int64_t* amounts, size_t distance) const {
        int64_t cores = amounts[kCores];
        if (cores < demand.cores) return 0;
        int64_t most = std::min(demand.tasks_per_node, demand.tasks);
        if (most > cores || most * demand.cores > cores) most = cores / demand.cores;
        for (size_t column = kPlaces; column < columns_ && most; ++column) {
            int64_t left = amounts[column * distance] - demand.per_node[column], each = demand.per_task[column];
            if (left < 0) return 0;
            if (most * each > left) most = left / each;
        }
        return most;
    }

    // The sum of so many of the largest numbers, which are reordered.
    static int64_t largest(Amounts::iterator begin, Amounts::iterator end, int64_t count) {
        if (count <= 0) return 0;
        if (count < end - begin) {
            std::nth_element(begin, begin + count, end, std::greater<>());
            end = begin + count;
        }
        return std::accumulate(begin, end, int64_t{0});
    }

    // Where a job goes if so much is free.
    std::optional<Placement> place(const Demand& demand, const FreeAmounts& amounts) const {
        if (!has_licences(demand, amounts) || !has_cores(demand, amounts)) return std::nullopt;
        for (const auto& nodes : demand.alternatives) {
            if (!holds(demand, nodes, amounts)) continue;
            if (choice_ == Choice::kFirstFit) return placed(demand, nodes, amounts);
            return placed(demand, ranked(demand, nodes, amounts), amounts);
        }
        return std::nullopt;
    }

    // A place on these nodes, if it is free.
    bool is_free(const Placement& placement, const FreeAmounts& amounts) const {
        for (size_t row = 0; row < placement.nodes.size(); ++row) {
            for (size_t column = 0; column < columns_; ++column) {
                int64_t taken = placement.taken[row * columns_ + column];
                if (at(amounts.nodes, placement.nodes[row], column) < taken) return false;
            }
        }
        return true;
    }

    // The place that hosts mean, if it suits a job and is free; else a rule is broken.
    Placement placed_on(const Runs& hosts, const Demand& asked, const FreeAmounts& amounts) const {
        std::string text;
        append_hosts(text, hosts);
        Placement placement;
        count_tasks(hosts, placement);
        for (int64_t& tasks : placement.tasks) {
            if (tasks % asked.cores) {
                throw RuleBroken("tasks of " + std::to_string(asked.cores) + " cores do not fill their hosts " + text +
                                 ", node by node");
            }
            tasks /= asked.cores;
        }
        if (std::none_of(asked.alternatives.begin(), asked.alternatives.end(), [&](const auto& nodes) {
                return std::includes(nodes.begin(), nodes.end(), placement.nodes.begin(), placement.nodes.end());
            })) {
            throw RuleBroken("hosts " + text + " are not all on nodes that the job may run on");
        }
        auto count = static_cast<int64_t>(placement.nodes.size());
        if (count < asked.least_nodes || count > asked.most_nodes) {
            throw RuleBroken("hosts " + text + " are on " + std::to_string(count) + " nodes, which the job does not ask for");
        }
        Demand any_number = asked;  // with a mapping, a job may have more hosts than executors
        any_number.tasks = INT64_MAX;
        for (size_t row = 0; row < placement.nodes.size(); ++row) {
            if (placement.tasks[row] > capacity(any_number, placement.nodes[row], amounts)) {
                throw RuleBroken("the nodes of hosts " + text + " do not have free what the job asks for");
            }
        }
        if (!has_licences(asked, amounts)) throw RuleBroken("the licences that the job asks for are not free");
        fill_rows(asked, placement, amounts);
        return placement;
    }

    // To be kept by jobs.
    std::shared_ptr<const Placement> made(Placement placement) const {
        placement.owner = this;
        return std::make_shared<Placement>(std::move(placement));
    }

    // Whether a job, which may be of another simulation, has a place here.
    bool has_placed(const Job& job) const { return job.placement && job.placement->owner == this; }

    // So many cores of each node as these hosts are.
    Placement cores_of(const Runs& hosts) const {
        Placement placement;
        count_tasks(hosts, placement);
        placement.taken.assign(placement.nodes.size() * columns_, 0);
        for (size_t row = 0; row < placement.nodes.size(); ++row) {
            placement.taken[row * columns_ + kCores] = placement.tasks[row];
        }
        return placement;
    }

    // A place of which no other cores than these hosts are left.
    Placement left_of(const Placement& placement, const Runs& hosts) const {
        Placement left = placement, cores = cores_of(hosts);
        for (size_t row = 0, next = 0; row < left.nodes.size(); ++row) {
            bool has_some = next < cores.nodes.size() && cores.nodes[next] == left.nodes[row];
            left.taken[row * columns_ + kCores] = has_some ? cores.tasks[next++] : 0;
        }
        return left;
    }

    Run hosts_of(size_t node) const { return {firsts_[node], firsts_[node] + at(has.nodes, node, kCores) - 1}; }

    int64_t nb_cores(const FreeAmounts& amounts) const {
        return std::accumulate(amounts.nodes.begin(), amounts.nodes.begin() + static_cast<ptrdiff_t>(count_), int64_t{0});
    }

    void give(FreeAmounts& amounts, const Placement& placement, const Demand& demand) const { change(amounts, placement, demand, 1); }
    void take(FreeAmounts& amounts, const Placement& placement, const Demand& demand) const { change(amounts, placement, demand, -1); }

private:
    size_t columns_, count_;
    std::vector<int64_t> firsts_;   // the first host of each node
    std::vector<size_t> switches_;  // the number of the switch of each node
    Choice choice_;
    std::deque<Demand> demands_;

    int64_t at(const Amounts& amounts, size_t node, size_t column) const { return amounts[column * count_ + node]; }

    size_t node_of(int64_t host) const {
        return static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), host) - firsts_.begin()) - 1;
    }

    // The nodes of hosts, and how many hosts are on each.
    void count_tasks(const Runs& hosts, Placement& placement) const {
        for (const Run& run : hosts) {
            for (int64_t host = run.first; host <= run.last;) {
                size_t node = node_of(host);
                int64_t last = std::min(run.last, hosts_of(node).last);
                if (placement.nodes.empty() || placement.nodes.back() != node) {
                    placement.nodes.push_back(node);
                    placement.tasks.push_back(0);
                }
                placement.tasks.back() += last + 1 - host;
                host = last + 1;
            }
        }
    }

    void change(FreeAmounts& amounts, const Placement& placement, const Demand& demand, int64_t sign) const {
        for (size_t row = 0; row < placement.nodes.size(); ++row) {
            int64_t& cores = amounts.nodes[placement.nodes[row]];
            int64_t before = cores;
            for (size_t column = 0; column < columns_; ++column) {
                amounts.nodes[column * count_ + placement.nodes[row]] += sign * placement.taken[row * columns_ + column];
            }
            auto [least, most] = std::minmax(before, cores);
            if (least < 0 || most >= static_cast<int64_t>(amounts.by_cores.size())) {
                amounts.by_cores.clear();
            } else {
                --amounts.by_cores[static_cast<size_t>(before)];
                ++amounts.by_cores[static_cast<size_t>(cores)];
            }
        }
        for (const auto& [licence, count] : demand.licences) amounts.licences[licence] += sign * count;
    }

    int64_t capacity(const Demand& demand, size_t node, const FreeAmounts& amounts) const {
        return capacity(demand, &amounts.nodes[node], count_);
    }

    // Whether there could be enough cores, as far as counting them tells; that is quicker than going through the nodes.
    static bool has_cores(const Demand& demand, const FreeAmounts& amounts) {
        if (amounts.by_cores.empty()) return true;
        int64_t tasks = 0, most = std::min(demand.tasks_per_node, demand.tasks);
        for (auto cores = static_cast<int64_t>(amounts.by_cores.size()) - 1; cores >= demand.cores; --cores) {
            int64_t nodes = amounts.by_cores[static_cast<size_t>(cores)];
            if (nodes) tasks += nodes * std::min(cores / demand.cores, most);
            if (tasks >= demand.tasks) return true;
        }
        return false;
    }

    bool holds(const Demand& demand, const std::vector<size_t>& nodes, const FreeAmounts& amounts) const {
        int64_t used = 0, tasks = 0;
        if (demand.most_nodes >= static_cast<int64_t>(nodes.size())) {
            for (size_t node : nodes) {
                int64_t capacity = this->capacity(demand, node, amounts);
                used += capacity > 0;
                tasks += capacity;
                if (tasks >= demand.tasks && used >= demand.least_nodes) return true;
            }
            return false;
        }
        Amounts capacities;
        for (size_t node : nodes) {
            if (int64_t capacity = this->capacity(demand, node, amounts)) capacities.push_back(capacity);
        }
        if (static_cast<int64_t>(capacities.size()) < demand.least_nodes) return false;
        return largest(capacities.begin(), capacities.end(), demand.most_nodes) >= demand.tasks;
    }

    // The place of a job on nodes that hold it, if they are filled in this order. Unless the job asks for few nodes or is
    // spread over all, those behind the first that hold it get nothing.
    Placement placed(const Demand& demand, const std::vector<size_t>& order, const FreeAmounts& amounts) const {
        bool first_will_do = choice_ != Choice::kSpread && demand.most_nodes >= static_cast<int64_t>(order.size());
        std::vector<size_t> useful;
        Amounts capacities;
        int64_t room = 0;
        for (size_t node : order) {
            int64_t capacity = this->capacity(demand, node, amounts);
            if (!capacity) continue;
            useful.push_back(node);
            capacities.push_back(capacity);
            room += capacity;
            if (first_will_do && room >= demand.tasks && static_cast<int64_t>(useful.size()) >= demand.least_nodes) break;
        }
        Amounts tasks = choice_ == Choice::kSpread ? in_turn(demand, capacities) : fill(demand, capacities);
        std::vector<size_t> used;
        for (size_t place = 0; place < tasks.size(); ++place) {
            if (tasks[place]) used.push_back(place);
        }
        std::sort(used.begin(), used.end(), [&](size_t one, size_t other) { return useful[one] < useful[other]; });
        Placement made;
        for (size_t place : used) {
            made.nodes.push_back(useful[place]);
            made.tasks.push_back(tasks[place]);
        }
        fill_rows(demand, made, amounts);
        return made;
    }

    void fill_rows(const Demand& demand, Placement& placement, const FreeAmounts& amounts) const {
        for (size_t row = 0; row < placement.nodes.size(); ++row) {
            for (size_t column = 0; column < columns_; ++column) {
                placement.taken.push_back(placement.tasks[row] * demand.per_task[column] + demand.per_node[column]);
            }
            if (demand.exclusive) {
                placement.taken[row * columns_ + kCores] = at(amounts.nodes, placement.nodes[row], kCores);
            }
        }
    }

    // How many tasks each node gets if each takes as many as it can.
    static Amounts fill(const Demand& demand, const Amounts& capacities) {
        Amounts tasks(capacities.size(), 0);
        int64_t left = demand.tasks, used = 0;
        for (size_t place = 0; place < capacities.size() && left; ++place) {
            int64_t capacity = capacities[place], more = demand.most_nodes - used - 1;
            if (!capacity) continue;
            if (more < static_cast<int64_t>(capacities.size())) {
                Amounts rest(capacities.begin() + static_cast<ptrdiff_t>(place) + 1, capacities.end());
                if (capacity + largest(rest.begin(), rest.end(), more) < left) continue;
            }
            tasks[place] = std::min(capacity, left - std::max<int64_t>(demand.least_nodes - used - 1, 0));
            left -= tasks[place];
            ++used;
        }
        return tasks;
    }

    // How many tasks each node gets if they are dealt out one by one.
    static Amounts in_turn(const Demand& demand, Amounts capacities) {
        if (demand.most_nodes < std::min<int64_t>(static_cast<int64_t>(capacities.size()), demand.tasks)) {
            Amounts kept(capacities.size(), 0);
            int64_t used = 0, sum = 0;
            for (size_t place = 0; place < capacities.size() && used < demand.most_nodes; ++place) {
                kept[place] = capacities[place];
                used += capacities[place] > 0;
                sum += capacities[place];
            }
            if (sum < demand.tasks) {
                kept = fill(demand, capacities);
                for (size_t place = 0; place < kept.size(); ++place) {
                    if (kept[place]) kept[place] = capacities[place];
                }
            }
            capacities = kept;
        }
        Amounts tasks(capacities.size(), 0);
        int64_t left = demand.tasks;
        while (left) {
            for (size_t place = 0; place < capacities.size() && left; ++place) {
                if (capacities[place] > tasks[place]) {
                    ++tasks[place];
                    --left;
                }
            }
        }
        return tasks;
    }

    // --- the choice of nodes (specification: batsched_py/schedulers/node_choice.py) -------------------------------

    std::vector<size_t> ranked(const Demand& demand, const std::vector<size_t>& nodes, const FreeAmounts& amounts) const {
        auto by = [&](auto score) {
            std::vector<std::pair<decltype(score(size_t{})), size_t>> scored;
            for (size_t node : nodes) scored.push_back({score(node), node});
            std::stable_sort(scored.begin(), scored.end(), [](const auto& one, const auto& other) { return one.first < other.first; });
            std::vector<size_t> order;
            for (const auto& one : scored) order.push_back(one.second);
            return order;
        };
        switch (choice_) {
            case Choice::kFirstFit: break;
            case Choice::kBestFit: return by([&](size_t node) { return free_share(node, amounts); });
            case Choice::kWorstFit:
            case Choice::kSpread: return by([&](size_t node) { return -free_share(node, amounts); });
            case Choice::kConsolidate:
                return by([&](size_t node) { return std::pair(-capacity(demand, node, amounts), free_share(node, amounts)); });
            case Choice::kDominantResource: return by([&](size_t node) { return dominant_share(demand, node, amounts); });
            case Choice::kFewestSwitches: {
                std::unordered_map<size_t, int64_t> holds;
                for (size_t node : nodes) holds[switches_[node]] += capacity(demand, node, amounts);
                return by([&](size_t node) {
                    int64_t held = holds[switches_[node]];
                    bool enough = held >= demand.tasks;
                    return std::tuple(!enough, enough ? held : -held, switches_[node]);
                });
            }
        }
        return nodes;
    }

    double free_share(size_t node, const FreeAmounts& amounts) const {
        double share = 0;
        for (size_t column = 0; column < columns_; ++column) {
            if (column != kPlaces) share += share_of(at(amounts.nodes, node, column), node, column);
        }
        return share;
    }

    double dominant_share(const Demand& demand, size_t node, const FreeAmounts& amounts) const {
        size_t dominant = 0;
        double largest = -1;
        for (size_t column = 0; column < columns_; ++column) {
            double share = column == kPlaces ? 0.0 : share_of(demand.per_task[column], node, column);
            if (share > largest) {
                largest = share;
                dominant = column;
            }
        }
        return share_of(at(amounts.nodes, node, dominant), node, dominant);
    }

    double share_of(int64_t amount, size_t node, size_t column) const {
        return static_cast<double>(amount) / static_cast<double>(std::max<int64_t>(at(has.nodes, node, column), 1));
    }
};

}  // namespace batsched
