// How often numbers occur, in little memory (specification: batsched_py/simulator/distribution.py).
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace batsched {

class Distribution {
public:
    void add(double value) {
        uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(std::max(0.0, value)));
        uint32_t key = (bits + kHalf) >> kDropped;
        Chapter& chapter = chapters_[key / kPage / kPage];
        if (chapter.empty()) chapter.resize(kPage);
        Page& page = chapter[key / kPage % kPage];
        if (page.empty()) page.resize(kPage);
        ++page[key % kPage];
        ++count_;
    }

    int64_t count() const { return count_; }

    double quantile(double share) const {
        double place = static_cast<double>(count_ - 1) * share;
        auto low = static_cast<int64_t>(place);
        double first = 0, second = 0;
        int64_t seen = 0;
        each([&](double value, int64_t number) {
            if (seen <= low) first = value;
            if (seen <= std::min(low + 1, count_ - 1)) second = value;
            seen += number;
        });
        return first + (second - first) * (place - static_cast<double>(low));
    }

    double part_of_top(double share) const {
        auto others = count_ - static_cast<int64_t>(std::ceil(static_cast<double>(count_) * share));
        double sum = 0, top = 0;
        int64_t seen = 0;
        each([&](double value, int64_t number) {
            sum += value * static_cast<double>(number);
            seen += number;
            top += value * static_cast<double>(std::clamp<int64_t>(seen - others, 0, number));
        });
        return top / sum;
    }

private:
    static constexpr uint32_t kDropped = 7, kHalf = 64, kPage = 256;
    using Page = std::vector<uint32_t>;
    using Chapter = std::vector<Page>;
    std::array<Chapter, kPage> chapters_;  // those in which nothing was counted are empty, and so are their pages
    int64_t count_ = 0;

    template <class Visit>
    void each(Visit visit) const {
        for (uint32_t first = 0; first < kPage; ++first) {
            for (uint32_t second = 0; second < chapters_[first].size(); ++second) {
                const Page& page = chapters_[first][second];
                for (uint32_t place = 0; place < page.size(); ++place) {
                    uint32_t key = (first * kPage + second) * kPage + place;
                    if (page[place]) visit(std::bit_cast<float>(key << kDropped), page[place]);
                }
            }
        }
    }
};

}  // namespace batsched
