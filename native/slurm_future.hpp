// When a job could run if running jobs last until their time limits (specification:
// batsched_py/slurm/policy/future.py).
#pragma once
#include <cmath>
#include <memory>
#include <unordered_map>

#include "slurm_memory.hpp"
#include "slurm_selection.hpp"

namespace batsched::slurm {

// A running job: what it has, and when its time limit is over.
struct Ending {
    SharePointer share;
    int64_t end;
};

// When a job could start, and what it would get, which the future knows; without a share, it cannot.
struct Start {
    int64_t time = 0;
    const SharePointer* share = nullptr;
};

// After how many running jobs a start on some nodes is tried, and the last of them that is on the nodes.
class Tries {
public:
    static constexpr int64_t kFirstWindow = 30;

    size_t place = 0;
    const Ending* last = nullptr;

    Tries(const std::vector<Ending>& running, const std::vector<NodeSet>& held, const NodeSet& nodes, int64_t step,
          bool one_by_one, int64_t origin)
        : running_(running), held_(held), nodes_(nodes), step_(step), one_by_one_(one_by_one), origin_(origin) {}

    bool next() {
        last = nullptr;
        bool is_followed = false;
        while (place < running_.size() && !is_followed) {
            if (!held_[place++].meets(nodes_)) continue;
            const Ending& ending = running_[place - 1];
            last = &ending;
            if (one_by_one_) return true;
            if (!base_) base_ = ending.end + window_ - (ending.end + origin_) % window_;
            is_followed = place < running_.size() && running_[place].end > base_ + window_;
        }
        if (!last) return false;
        grow();
        while (is_followed && running_[place].end > base_ + window_) grow();
        return true;
    }

private:
    const std::vector<Ending>& running_;
    const std::vector<NodeSet>& held_;  // the nodes of each
    const NodeSet& nodes_;
    int64_t step_;
    bool one_by_one_;
    int64_t origin_;  // windows begin at multiples of the first one since so long before time 0
    int64_t window_ = kFirstWindow, base_ = 0;

    void grow() { window_ += step_ ? step_ : window_; }
};

// The running jobs in the order of their ends, and what is free after each. Answers are kept as long as no job starts or
// ends that they depend on: many jobs ask for the same, and the same is asked for in each cycle.
class Future {
public:
    Future(Usage usage, std::vector<Ending> running, std::shared_ptr<Selector> selector, int64_t window_step,
           bool is_linear, int64_t kill_wait, int64_t origin)
        : usage_(std::move(usage)), after_(usage_), running_(std::move(running)), selector_(std::move(selector)),
          window_step_(window_step), is_linear_(is_linear), kill_wait_(kill_wait), origin_(origin) {
        for (const Ending& ending : running_) held_.push_back(ending.share->nodes);
        find_idle();
    }

    Selector& selector() const { return *selector_; }
    const Machine& machine() const { return selector_->machine(); }

    // When the first time limit is over.
    double first_end() const { return running_.empty() ? HUGE_VAL : static_cast<double>(running_[0].end); }

    // What plans remember of it.
    Memory memory;

    // How many jobs have started or ended until now.
    size_t nb_changes() const { return nb_forgotten_ + changes_.size(); }

    // Whether what is found on these nodes has outlived all of them, if it has outlived so many.
    bool outlives(const NodeSet& nodes, size_t& nb_outlived) const {
        if (nb_outlived < nb_forgotten_) return false;
        for (; nb_outlived < nb_changes(); ++nb_outlived) {
            if (changes_[nb_outlived - nb_forgotten_].meets(nodes)) return false;
        }
        return true;
    }

    // A job runs from now on, with this place among the running jobs.
    void started(size_t place, Ending ending) {
        usage_.take(*ending.share);
        held_.insert(held_.begin() + static_cast<ptrdiff_t>(place), ending.share->nodes);
        running_.insert(running_.begin() + static_cast<ptrdiff_t>(place), std::move(ending));
        changed(place);
        find_idle();
    }

    // The job at this place among the running jobs runs no longer.
    void ended(size_t place) {
        changed(place);
        usage_.give(*running_[place].share);
        running_.erase(running_.begin() + static_cast<ptrdiff_t>(place));
        held_.erase(held_.begin() + static_cast<ptrdiff_t>(place));
        find_idle();
    }

    // When a job could start on some of these nodes if nobody else waited, and its share of them; none if it cannot.
    Start earliest(const Asked& asked, const NodeSet& nodes, int64_t now, bool only_now) {
        if (!nodes.has_at_least(asked.least_nodes)) return {};
        Answer& answer = answer_to({asked.number, nodes});
        if (const SharePointer& share = at_once(answer, asked, nodes)) return {now, &share};
        if (only_now) return {};
        const Ending& last = later(answer, asked, nodes);
        if (!last.share) return {};
        return {last.end > now ? last.end : std::max(last.end + kill_wait_, now + 1), &last.share};
    }

private:
    // What was asked for, and of which nodes; as a view, so that it can be looked up without a copy of the nodes.
    struct Question {
        size_t asked;
        NodeSet nodes;
    };
    struct QuestionView {
        size_t asked;
        const NodeSet& nodes;
    };
    struct Hash {
        using is_transparent = void;
        size_t operator()(const auto& question) const { return question.nodes.hash() ^ question.asked * 31; }
    };
    struct Equal {
        using is_transparent = void;
        bool operator()(const auto& one, const auto& other) const {
            return one.asked == other.asked && one.nodes == other.nodes;
        }
    };
    struct Answer {
        size_t nb_outlived = 0;  // how many starts and ends of jobs it has outlived
        bool has_now = false, has_later = false;
        SharePointer now;
        Ending later{nullptr, 0};
    };

    static constexpr size_t kMostChanges = 64;

    Usage usage_, after_;
    std::vector<Ending> running_;
    std::vector<NodeSet> held_;  // the nodes of each
    std::shared_ptr<Selector> selector_;
    int64_t window_step_;
    bool is_linear_;
    int64_t kill_wait_;  // how long a job may last that is beyond its time limit
    int64_t origin_;
    std::vector<NodeSet> idle_;  // the nodes without jobs when so many jobs have ended
    std::unordered_map<Question, Answer, Hash, Equal> answers_;
    std::vector<NodeSet> changes_;  // for each of the last starts and ends, the nodes for which it may make a difference
    size_t nb_forgotten_ = 0;       // how many there were before these
    NodeSet usable_;

    // Note that a job starts or ends. Answers for nodes that it does not touch stay as they are, but for one thing: where
    // a try follows depends on the next job that ends, be it on the nodes or not. So the job before it matters, too.
    void changed(size_t place) {
        if (changes_.size() == kMostChanges) forget();
        NodeSet& touched = changes_.emplace_back(held_[place]);
        if (place) touched |= held_[place - 1];
    }

    // Forget the changes, and the answers that nobody has asked for since the last of them.
    void forget() {
        std::erase_if(answers_, [this](const auto& each) { return each.second.nb_outlived < nb_changes(); });
        nb_forgotten_ += changes_.size();
        changes_.clear();
    }

    // The answer to a question, as far as it is known.
    Answer& answer_to(const QuestionView& question) {
        auto known = answers_.find(question);
        if (known == answers_.end()) known = answers_.try_emplace({question.asked, question.nodes}).first;
        Answer& answer = known->second;
        if (!outlives(question.nodes, answer.nb_outlived)) answer = {nb_changes()};
        return answer;
    }

    // What a job would get of these nodes now.
    const SharePointer& at_once(Answer& answer, const Asked& asked, const NodeSet& nodes) {
        if (!answer.has_now) {
            answer.has_now = true;
            answer.now = pointer(selector_->select(asked, nodes, usage_));
        }
        return answer.now;
    }

    // After which running job a job could start, and what it would get of these nodes.
    const Ending& later(Answer& answer, const Asked& asked, const NodeSet& nodes) {
        if (!answer.has_later) {
            answer.has_later = true;
            usable_ = nodes;
            usable_ &= asked.nodes;
            if (usable_.has_at_least(asked.least_nodes)) {
                answer.later = asked.exclusive ? whole(asked, nodes) : shared(asked, nodes);
            }
        }
        return answer.later;
    }

    static SharePointer pointer(std::optional<Share> share) {
        return share ? std::make_shared<Share>(std::move(*share)) : nullptr;
    }

    void find_idle() {
        std::vector<int64_t> left = usage_.jobs;
        NodeSet idle = usage_.idle;
        idle_.clear();
        idle_.reserve(running_.size() + 1);
        for (const Ending& ending : running_) {
            idle_.push_back(idle);
            if (ending.share->exclusive) idle |= ending.share->nodes;
            for (const Part& part : ending.share->parts) {
                if (!--left[part.node]) idle.add(part.node);
            }
        }
        idle_.push_back(idle);
    }

    // For a job that shares its nodes with nobody.
    Ending whole(const Asked& asked, const NodeSet& nodes) {
        Tries tries(running_, held_, nodes, window_step_, is_linear_, origin_);
        NodeSet idle;
        while (tries.next()) {
            idle = idle_[tries.place];
            idle &= usable_;
            if (SharePointer share = pointer(selector_->whole(asked, idle))) return {share, tries.last->end};
        }
        return {nullptr, 0};
    }

    // For a job that may share its nodes; it is tried only if enough processors are free at all.
    Ending shared(const Asked& asked, const NodeSet& nodes) {
        after_ = usage_;
        int64_t free = 0;
        usable_.for_each([&](size_t node) {
            if (!usage_.exclusive.has(node)) free += usage_.cpus[node];
        });
        size_t done = 0;
        Tries tries(running_, held_, nodes, window_step_, is_linear_, origin_);
        while (tries.next()) {
            bool touched = false;
            for (; done < tries.place; ++done) {
                if (!held_[done].meets(usable_)) continue;
                const Share& share = *running_[done].share;
                after_.give(share);
                if (share.exclusive) {
                    share.nodes.for_each([&](size_t node) {
                        if (usable_.has(node)) free += machine().cpus[node];
                    });
                    touched = true;
                }
                for (const Part& part : share.parts) {
                    if (!usable_.has(part.node)) continue;
                    free += part.cpus;
                    touched = touched || asked.tasks != 1 || after_.cpus[part.node] >= asked.least_cpus_of_node;
                }
            }
            if (!touched || free < asked.cpus) continue;
            if (SharePointer share = pointer(selector_->select(asked, nodes, after_))) return {share, tries.last->end};
        }
        return {nullptr, 0};
    }
};

}  // namespace batsched::slurm
