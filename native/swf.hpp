// Reads a log in the Standard Workload Format in which nothing is unusual (specification: batsched_py/workload/swf).
#pragma once
#include <bit>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "log.hpp"

namespace batsched {

class SwfReader {
public:
    std::vector<std::string> comments;
    // All records; and those that are left out, without processors or cancelled while they waited.
    size_t nb_records = 0, nb_unsized = 0, nb_cancelled = 0;

    // A walltime is what a job requested, but never less than so many times its run time.
    SwfReader(std::string workload, double speed, double factor) : factor_(factor) {
        log_.workload = std::move(workload);
        log_.speed = speed;
    }

    // Reads whole lines; whether all of them are usual. Of one that is not, the complete reader has to tell.
    bool read(std::string_view lines) {
        const char *text = lines.data(), *end = text + lines.size();
        while (text != end) {
            while (text != end && is_space(*text)) ++text;
            if (text == end) break;
            if (*text == ';') {
                const char* stop = std::find(text, end, '\n');
                comments.emplace_back(text, stop);
                text = stop;
                continue;
            }
            std::array<double, kFields> line;
            for (int field = 0; field < kFields; ++field) {
                while (text != end && is_space(*text) && *text != '\n') ++text;
                if (!read_number(text, end, line[static_cast<size_t>(field)])) return false;
            }
            while (text != end && is_space(*text) && *text != '\n') ++text;
            if ((text != end && *text != '\n') || !is_usual(line)) return false;
            add(line);
        }
        return true;
    }

    // The log, if there are jobs and no two of them have the same number.
    std::shared_ptr<Log> finish() {
        if (log_.records.empty() || has_twins()) return nullptr;
        auto earlier = [](const Log::Record& one, const Log::Record& other) { return one.submission < other.submission; };
        if (!std::is_sorted(log_.records.begin(), log_.records.end(), earlier)) {
            std::stable_sort(log_.records.begin(), log_.records.end(), earlier);
        }
        nb_records = log_.records.size();
        nb_unsized = std::erase_if(log_.records, [](const Log::Record& record) { return record.size == 0; });
        if (log_.records.empty()) return nullptr;
        double first = log_.records[0].submission;
        nb_cancelled =
            std::erase_if(log_.records, [](const Log::Record& record) { return record.size == kNeverStarted; });
        if (log_.records.empty()) return nullptr;
        for (Log::Record& record : log_.records) {
            record.submission -= first;
            record.finish += record.submission;
            record.finish += record.run_time;
        }
        for (const Log::Extra& extra : log_.extras) {
            log_.users.push_back(extra[0] == -1 ? std::nullopt : std::optional(spelled(extra[0])));
        }
        return std::make_shared<Log>(std::move(log_));
    }

private:
    static constexpr int kFields = 18;
    static constexpr double kLargest = 9007199254740992.0;  // 2 ** 53
    enum Field {
        kNumber, kSubmit, kWait, kRunTime, kAllocated, kCpu, kMemory, kRequested, kRequestedTime, kStatus = 10, kUser
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
    std::unordered_map<Log::Extra, uint32_t, Hash> numbers_;
    uint32_t last_extra_ = 0;  // many a line is like the one before

    static bool is_space(char letter) { return static_cast<unsigned char>(letter) <= ' '; }
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

    static bool is_usual(const std::array<double, kFields>& line) {
        for (size_t field = 0; field < line.size(); ++field) {
            if (std::abs(line[field]) > kLargest) return false;
            if (kWhole[field] && line[field] != static_cast<double>(static_cast<int64_t>(line[field]))) return false;
        }
        return line[kSubmit] >= 0 && line[kRunTime] >= 0;
    }

    uint32_t number_of(const Log::Extra& extra) {
        if (!log_.extras.empty() && log_.extras[last_extra_] == extra) return last_extra_;
        auto [place, is_new] = numbers_.try_emplace(extra, static_cast<uint32_t>(log_.extras.size()));
        if (is_new) log_.extras.push_back(extra);
        return last_extra_ = place->second;
    }

    void add(const std::array<double, kFields>& line) {
        Log::Extra extra;
        std::copy_n(line.begin() + kUser, extra.size(), extra.begin());
        double processors = line[kAllocated] > 0 ? line[kAllocated] : line[kRequested];
        auto size = static_cast<int64_t>(std::max(processors, 0.0));
        bool never_started = line[kStatus] == kCancelled && line[kRunTime] == 0 && line[kAllocated] <= 0;
        if (never_started && size > 0) size = kNeverStarted;
        double walltime = std::max({line[kRequestedTime], factor_ * line[kRunTime], 0.0});
        if (walltime == 0) walltime = INFINITY;
        log_.records.push_back({line[kSubmit], walltime, std::max(line[kWait], 0.0), line[kRunTime],
                                static_cast<int64_t>(line[kNumber]), size, number_of(extra), 0});
    }

    bool has_twins() const {
        bool ascend = true;
        for (size_t place = 1; place < log_.records.size(); ++place) {
            ascend &= log_.records[place - 1].number < log_.records[place].number;
        }
        if (ascend) return false;
        std::unordered_set<int64_t> seen;
        return !std::all_of(log_.records.begin(), log_.records.end(),
                            [&](const Log::Record& record) { return seen.insert(record.number).second; });
    }
};

}  // namespace batsched
