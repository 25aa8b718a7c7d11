// Orders that are formulas (specification: batsched_py/schedulers/formulas.py). Their steps are those that give the same
// bits as numpy.
#pragma once
#include <map>

#include "simulation.hpp"

namespace batsched {

// Scores of waiting jobs; the lowest goes first, equal ones go in submission order.
class Formula {
public:
    struct Step {
        enum class Kind : uint8_t {
            kNumber, kSize, kWalltime, kWait, kSubmit, kUse, kUsage, kAdd, kSubtract, kMultiply, kDivide, kNegative, kPositive
        } kind;
        double number;
    };

    static Step::Kind kind_of(const std::string& name) {
        using Kind = Step::Kind;
        static const std::map<std::string, Kind> kinds = {
            {"number", Kind::kNumber},     {"size", Kind::kSize},         {"walltime", Kind::kWalltime},
            {"wait", Kind::kWait},         {"submit", Kind::kSubmit},     {"use", Kind::kUse},
            {"usage", Kind::kUsage},       {"add", Kind::kAdd},           {"subtract", Kind::kSubtract},
            {"multiply", Kind::kMultiply}, {"divide", Kind::kDivide},     {"negative", Kind::kNegative},
            {"positive", Kind::kPositive}};
        return kinds.at(name);
    }

    // `use` is what steps of that name are about.
    Formula(std::vector<Step> steps, std::shared_ptr<Use> use) : steps_(std::move(steps)), use_(std::move(use)) {
        size_t height = 0, highest = 0;
        for (const Step& step : steps_) {
            bool is_of_two = step.kind >= Step::Kind::kAdd && step.kind <= Step::Kind::kDivide;
            height += step.kind <= Step::Kind::kUsage;
            height -= is_of_two;
            highest = std::max(highest, height);
        }
        stack_.resize(highest);
    }

    // The scores of some waiting jobs, until they are asked for again.
    const std::vector<double>& scores(const Queue& queue, const Queue::Selected& jobs, double now) {
        using Kind = Step::Kind;
        size_t top = 0, count = jobs.arrivals.size();
        for (const Step& step : steps_) {
            if (step.kind <= Kind::kUsage) {
                stack_[top].resize(count);
                fill(stack_[top++], step, queue, jobs, now);
                continue;
            }
            double *one = stack_[top - 1].data(), *two = one;
            if (step.kind <= Kind::kDivide) one = stack_[--top - 1].data();
            switch (step.kind) {
                case Kind::kAdd: each(count, [=](size_t place) { one[place] += two[place]; }); break;
                case Kind::kSubtract: each(count, [=](size_t place) { one[place] -= two[place]; }); break;
                case Kind::kMultiply: each(count, [=](size_t place) { one[place] *= two[place]; }); break;
                case Kind::kDivide: each(count, [=](size_t place) { one[place] /= two[place]; }); break;
                case Kind::kNegative: each(count, [=](size_t place) { one[place] = -one[place]; }); break;
                default: break;
            }
        }
        double* scores = stack_[0].data();
        each(count, [=](size_t place) { scores[place] = std::isnan(scores[place]) ? INFINITY : scores[place]; });
        return stack_[0];
    }

    // The first of all waiting jobs, of which there are some.
    JobPtr head(const Queue& queue, double now) {
        Queue::Selected jobs = queue.select(0, {INT64_MAX}, SIZE_MAX);
        const std::vector<double>& lowest = scores(queue, jobs, now);
        auto place = static_cast<size_t>(std::min_element(lowest.begin(), lowest.end()) - lowest.begin());
        return queue.at(jobs.arrivals[place]);
    }

    // The arrivals of some waiting jobs in this order.
    std::vector<int64_t> sorted(const Queue& queue, const Queue::Selected& jobs, double now) {
        const std::vector<double>& given = scores(queue, jobs, now);
        std::vector<std::pair<double, int64_t>> entries(given.size());
        for (size_t place = 0; place < given.size(); ++place) entries[place] = {given[place], jobs.arrivals[place]};
        std::sort(entries.begin(), entries.end());
        std::vector<int64_t> arrivals(entries.size());
        std::transform(entries.begin(), entries.end(), arrivals.begin(), [](const auto& entry) { return entry.second; });
        return arrivals;
    }

private:
    std::vector<Step> steps_;
    std::shared_ptr<Use> use_;
    std::vector<std::vector<double>> stack_;  // columns, kept from one time to the next

    template <class Function>
    static void each(size_t count, Function function) {
        for (size_t place = 0; place < count; ++place) function(place);
    }

    void fill(std::vector<double>& column, const Step& step, const Queue& queue, const Queue::Selected& jobs, double now) {
        using Kind = Step::Kind;
        double* values = column.data();
        switch (step.kind) {
            case Kind::kNumber: return std::fill(column.begin(), column.end(), step.number);
            case Kind::kSize: return queue.gather(jobs, values, Queue::SizeAt());
            case Kind::kWalltime: return queue.gather(jobs, values, Queue::EstimateAt());
            case Kind::kSubmit: return queue.gather(jobs, values, Queue::SubmissionAt());
            case Kind::kWait:
                queue.gather(jobs, values, Queue::SubmissionAt());
                return each(column.size(), [=](size_t place) { values[place] = now - values[place]; });
            default: break;
        }
        double weight = use_->weight(now);
        for (size_t place = 0; place < column.size(); ++place) {
            double use = use_->weighted(*Queue::JobAt()(queue, jobs.places[place]), weight);
            values[place] = step.kind == Kind::kUse ? use : use_->seconds(use, weight);
        }
    }
};

}  // namespace batsched
