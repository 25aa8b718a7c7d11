// Reads a log in the Standard Workload Format (specification: batsched_py/workload/swf/reader.py and workload.py).
#pragma once
#include <bit>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "log.hpp"

namespace batsched {

class SwfReader {
public:
    static constexpr int kFields = 18;
    using Line = std::array<double, kFields>;

    // Says whether a line that is not in plain digits, or has a fault, can be used, and what its fields are then.
    using Judge = std::function<std::optional<Line>(std::string_view line, size_t number)>;

    std::vector<std::string> comments;
    size_t nb_comment_bytes = 0;
    // Lines so far; records that are in no bad line; and those of them whose number came before or whose run time is
    // unknown. Then those that are left out, without processors or cancelled while they waited.
    size_t nb_lines = 0, nb_records = 0, nb_repeated = 0, nb_unknown = 0, nb_unsized = 0, nb_cancelled = 0;
    std::vector<size_t> first_repeated;  // the lines of the first of them
    // Jobs that requested no time, those that requested less than their walltime, and exactly their run time.
    size_t nb_unrequested = 0, nb_raised = 0, nb_equal = 0;

    // A walltime is what a job requested, but never less than so many times its run time.
    // Jobs wait for their preceding jobs if that is asked for.
    SwfReader(std::string workload, double speed, double factor, bool wait = false) : factor_(factor), wait_(wait) {
        log_.workload = std::move(workload);
        log_.speed = speed;
    }

    // Reads whole lines.
    void read(std::string_view lines, const Judge& judge) {
        const char *text = lines.data(), *end = text + lines.size();
        while (text != end) {
            const char* begin = text;
            ++nb_lines;
            skip_space(text, end);
            if (text != end && *text == ';') {
                text = std::find(text, end, '\n');
                add_comment(begin, text);
            } else if (text != end && *text != '\n') {
                Line line;
                if (read_line(text, end, line) && is_usual(line)) {
                    add(line);
                } else {
                    text = std::find(text, end, '\n');
                    add_comment(begin, text);
                    if (auto found = judge({begin, text}, nb_lines)) add(*found);
                }
            }
            text += text != end;
        }
    }

    // The log in the order of submissions, if there are jobs.
    std::shared_ptr<Log> finish() {
        Log::Records& records = log_.records;
        std::vector<uint32_t> kept(records.size());
        std::iota(kept.begin(), kept.end(), 0U);
        auto earlier = [&](uint32_t one, uint32_t other) { return records.submission[one] < records.submission[other]; };
        bool as_it_is = std::is_sorted(kept.begin(), kept.end(), earlier);
        if (!as_it_is) std::stable_sort(kept.begin(), kept.end(), earlier);
        nb_unsized = std::erase_if(kept, [&](uint32_t place) { return records.hosts[place] == 0; });
        double first = kept.empty() ? 0 : records.submission[kept[0]];
        nb_cancelled = std::erase_if(kept, [&](uint32_t place) { return records.hosts[place] == kNeverStarted; });
        if (kept.empty()) return nullptr;
        if (wait_) add_dependencies(kept);
        if (!as_it_is || kept.size() < records.size()) {
            records.pick(kept);
            std::iota(kept.begin(), kept.end(), 0U);
        }
        records.submission = Column<double>::of(
            kept, [&](uint32_t place) { return since(first, records.submission[place]); });
        records.finish = Column<double>::of(kept, [&](uint32_t place) {
            return records.submission[place] + records.finish[place] + records.run_time[place];
        });
        for (const Log::Extra& extra : log_.extras) {
            log_.users.push_back(extra[0] == -1 ? std::nullopt : std::optional(spelled(extra[0])));
        }
        return std::make_shared<Log>(std::move(log_));
    }

private:
    static constexpr double kLargest = 9007199254740992.0;  // 2 ** 53
    static constexpr size_t kShownRepeated = 3;
    enum Field {
        kNumber, kSubmit, kWait, kRunTime, kAllocated, kCpu, kMemory, kRequested, kRequestedTime, kStatus = 10, kUser, kPreceding = 16, kThinkTime
    };
    static constexpr double kCancelled = 5;       // the status of a job that was cancelled
    static constexpr int64_t kNeverStarted = -1;  // in the place of the size of one that was waiting then
    static constexpr std::array<bool, kFields> kWhole = {true,  false, false, false, true, false, false, true, false,
                                                         false, true,  true,  true,  true, true,  true,  true, false};

    struct Hash {
        size_t operator()(const Log::Extra& values) const {
            size_t hash = 0;
            for (double value : values) {  // the zero makes one number of the two zeros
                hash = hash * 1000003 + ((std::bit_cast<uint64_t>(value + 0.0) * 0x9E3779B97F4A7C15) >> 20);
            }
            return hash;
        }
    };

    Log log_;
    double factor_;
    bool wait_;
    std::vector<std::pair<int64_t, double>> preceding_;  // of each record, the number of a job and the think time
    int64_t last_number_ = INT64_MIN;           // the largest, as long as numbers ascend
    std::vector<int64_t> numbers_of_unknown_;   // of records whose run time is unknown, until then
    std::unordered_set<int64_t> numbers_seen_;  // all of them, from then on
    bool has_fractions_ = false;                // whether a submission is not a whole number
    std::unordered_map<Log::Extra, uint32_t, Hash> numbers_;
    uint32_t last_extra_ = 0;  // many a line is like the one before

    static bool is_space(char letter) { return static_cast<unsigned char>(letter) <= ' '; }
    static void skip_space(const char*& text, const char* end) {
        while (text != end && is_space(*text) && *text != '\n') ++text;
    }
    static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

    // Reads the word that a text begins with, if it is a number in plain digits.
    static bool read_number(const char*& text, const char* end, double& number) {
        const char* word = text;
        bool negative = text != end && *text == '-';
        const char* digits = text += negative;
        if (text == end || !is_digit(*text)) return false;
        int64_t whole = 0;
        for (; text != end && is_digit(*text) && text - digits < 16; ++text) whole = 10 * whole + (*text - '0');
        if (text == end || is_space(*text)) {
            number = static_cast<double>(negative ? -whole : whole);
            return true;
        }
        while (text != end && !is_space(*text)) ++text;
        auto [stop, error] = std::from_chars(word, text, number, std::chars_format::fixed);
        return stop == text && error == std::errc();
    }

    // Reads a line to its end, if it has as many numbers in plain digits as there are fields.
    static bool read_line(const char*& text, const char* end, Line& line) {
        for (double& field : line) {
            skip_space(text, end);
            if (!read_number(text, end, field)) return false;
        }
        skip_space(text, end);
        return text == end || *text == '\n';
    }

    static bool is_usual(const Line& line) {
        for (size_t field = 0; field < line.size(); ++field) {
            if (std::abs(line[field]) > kLargest) return false;
            if (kWhole[field] && line[field] != static_cast<double>(static_cast<int64_t>(line[field]))) return false;
        }
        return line[kSubmit] >= 0 && (line[kRunTime] >= 0 || line[kRunTime] == -1);
    }

    uint32_t number_of(const Log::Extra& extra) {
        if (!log_.extras.empty() && log_.extras[last_extra_] == extra) return last_extra_;
        auto [place, is_new] = numbers_.try_emplace(extra, static_cast<uint32_t>(log_.extras.size()));
        if (is_new) log_.extras.push_back(extra);
        return last_extra_ = place->second;
    }

    // What is behind a semicolon, even in a line that is a bad one.
    void add_comment(const char* begin, const char* end) {
        begin = std::find(begin, end, ';');
        if (begin == end) return;
        comments.emplace_back(begin, end);
        nb_comment_bytes += comments.back().size();
    }

    // Next to a Unix time, a double has no room for more than microseconds; the rest is noise.
    double since(double first, double time) const {
        constexpr double kUnixTime = 1e8, kTicks = 1e6;
        double passed = time - first;
        return has_fractions_ && first > kUnixTime ? std::nearbyint(passed * kTicks) / kTicks : passed;
    }

    // Whether a job with this number came before.
    bool is_repeated(int64_t number) {
        if (numbers_seen_.empty()) {
            if (number > last_number_) {
                last_number_ = number;
                return false;
            }
            const auto& kept = log_.records.number;
            for (size_t place = 0; place < kept.size(); ++place) numbers_seen_.insert(kept[place]);
            numbers_seen_.insert(numbers_of_unknown_.begin(), numbers_of_unknown_.end());
        }
        return !numbers_seen_.insert(number).second;
    }

    // Lets the jobs in these places wait for their preceding jobs, where those were submitted before, and for their
    // think times.
    void add_dependencies(const std::vector<uint32_t>& kept) {
        Log::Records& records = log_.records;
        std::unordered_set<int64_t> seen;
        log_.after.resize(log_.extras.size());
        for (uint32_t place : kept) {
            auto [before, think_time] = preceding_[place];
            if (seen.contains(before)) {
                log_.awaited.insert(before);
                log_.extras.push_back(Log::Extra(log_.extras[records.extra[place]]));
                std::string delay = think_time > 0 ? "+" + spelled(to_tick(think_time)) + "s" : "";
                log_.after.push_back("afterany:" + std::to_string(before) + delay);
                records.extra[place] = static_cast<uint32_t>(log_.extras.size()) - 1;
            }
            seen.insert(records.number[place]);
        }
        if (log_.awaited.empty()) return;
        for (const std::string& text : log_.after) log_.waits.push_back(!text.empty());
    }

    void add(Line line) {
        ++nb_records;
        has_fractions_ = has_fractions_ || !is_whole(line[kSubmit]);
        auto number = static_cast<int64_t>(line[kNumber]);
        if (is_repeated(number)) {
            ++nb_repeated;
            if (first_repeated.size() < kShownRepeated) first_repeated.push_back(nb_lines);
            return;
        }
        bool never_started = line[kStatus] == kCancelled &&
                             (line[kRunTime] == -1 || (line[kRunTime] == 0 && line[kAllocated] <= 0));
        if (never_started) {
            line[kRunTime] = 0;
            if (!(line[kRequested] > 0)) line[kRequested] = line[kAllocated];
            line[kAllocated] = 0;
        }
        if (line[kRunTime] == -1) {
            ++nb_unknown;
            if (numbers_seen_.empty()) numbers_of_unknown_.push_back(number);
            return;
        }
        double processors = line[kAllocated] > 0 ? line[kAllocated] : line[kRequested];
        auto size = static_cast<int64_t>(std::max(processors, 0.0));
        if (never_started && size > 0) size = kNeverStarted;
        double requested = std::max(line[kRequestedTime], 0.0), walltime = std::max(requested, factor_ * line[kRunTime]);
        if (size > 0) {
            nb_unrequested += !(requested > 0);
            nb_raised += requested > 0 && walltime > requested;
            nb_equal += requested > 0 && requested == line[kRunTime];
        }
        if (walltime == 0) walltime = INFINITY;
        Log::Extra extra;
        std::copy_n(line.begin() + kUser, extra.size(), extra.begin());
        if (wait_) preceding_.emplace_back(static_cast<int64_t>(line[kPreceding]), line[kThinkTime]);
        log_.records.push_back(
            {line[kSubmit], walltime, std::max(line[kWait], 0.0), line[kRunTime], number, size, number_of(extra)});
    }
};

}  // namespace batsched
