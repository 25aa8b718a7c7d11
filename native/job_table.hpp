// A table of jobs as it was written (batsched_py/simulator/outputs.py), read back into columns of numbers.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace batsched {

// Reads rows in the plain form in which they are written. Of any others it only says that they are unusual: whoever
// calls it reads those in another way, and tells what is wrong with them.
class JobTable {
public:
    std::vector<std::string> names;            // of the wanted columns of numbers
    std::vector<std::vector<double>> numbers;  // these columns; what is empty is no number
    std::vector<uint8_t> states;               // how jobs ended, as places among the given states
    std::vector<int32_t> held, highest;        // how many hosts jobs had, and the number of the last one
    bool has_notes = false;

    JobTable(const std::vector<std::string>& header, std::vector<std::string> wanted, std::vector<std::string> states)
        : names(std::move(wanted)), numbers(names.size()), state_names_(std::move(states)) {
        for (const std::string& name : header) {
            Field field{kind_of(name), nullptr};
            for (size_t place = 0; place < names.size(); ++place) {
                if (names[place] == name) field.column = &numbers[place];
            }
            fields_.push_back(field);
        }
    }
    JobTable(const JobTable&) = delete;

    // Reads whole lines. Returns how many letters these have, or -1 if a row is unusual.
    int64_t read(std::string_view text, bool is_last) {
        const char* at = text.data();
        const char* end = at + text.size();
        while (at != end) {
            const char* stop = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
            if (!stop && !is_last) break;
            if (!row(at, stop ? stop : end)) return -1;
            at = stop ? stop + 1 : end;
        }
        return at - text.data();
    }

private:
    enum class Kind { kText, kNotes, kNumber, kRequest, kExecution, kCount, kState, kHosts };
    struct Field {
        Kind kind;
        std::vector<double>* column;
    };
    static constexpr int kExactDigits = 15;  // so many always fit into a double
    static constexpr int64_t kMostHosts = 1 << 24;
    std::vector<Field> fields_;
    std::vector<std::string> state_names_;

    static Kind kind_of(std::string_view name) {
        constexpr std::string_view execution[] = {"starting_time", "execution_time",  "finish_time",
                                                  "waiting_time",  "turnaround_time", "stretch"};
        for (std::string_view each : execution) {
            if (name == each) return Kind::kExecution;
        }
        if (name == "submission_time" || name == "requested_time") return Kind::kRequest;
        if (name == "requested_number_of_resources" || name == "success") return Kind::kCount;
        if (name == "consumed_energy") return Kind::kNumber;
        if (name == "final_state") return Kind::kState;
        if (name == "allocated_resources") return Kind::kHosts;
        return name == "metadata" ? Kind::kNotes : Kind::kText;
    }

    bool row(const char* at, const char* end) {
        bool lacks_times = false, is_rejected = false;
        for (size_t place = 0; place < fields_.size(); ++place) {
            const Field& field = fields_[place];
            std::string_view text;
            if (!cell(at, end, text) || (at == end) != (place + 1 == fields_.size())) return false;
            if (at != end) ++at;
            if (field.kind == Kind::kNotes) {
                has_notes |= !text.empty();
            } else if (field.kind == Kind::kState) {
                if (!state(text)) return false;
                is_rejected = text == "REJECTED";
            } else if (field.kind == Kind::kHosts) {
                if (!hosts(text)) return false;
            } else if (field.kind == Kind::kCount) {
                if (!count(text)) return false;
            } else if (field.kind != Kind::kText) {
                double value = std::numeric_limits<double>::quiet_NaN();
                if (text.empty()) {
                    if (field.kind == Kind::kRequest) return false;
                    lacks_times |= field.kind == Kind::kExecution;
                } else if (!number(text, value)) {
                    return false;
                }
                if (field.column) field.column->push_back(value);
            }
        }
        return is_rejected || !lacks_times;
    }

    // The next cell, without its quotes; `at` is then at the comma after it, or at the end of a line.
    static bool cell(const char*& at, const char* end, std::string_view& text) {
        bool quoted = at != end && *at == '"';
        const char* begin = at += quoted;
        for (; at != end && *at != '"' && (quoted || *at != ','); ++at) {
            if (static_cast<unsigned char>(*at) > 126 || *at < ' ') return false;
        }
        text = {begin, static_cast<size_t>(at - begin)};
        if ((at != end && *at == '"') != quoted) return false;
        at += quoted;
        return at == end || *at == ',';
    }

    bool state(std::string_view text) {
        for (size_t place = 0; place < state_names_.size(); ++place) {
            if (state_names_[place] == text) {
                states.push_back(static_cast<uint8_t>(place));
                return true;
            }
        }
        return false;
    }

    // Sets of hosts are intervals in growing order with gaps between them.
    bool hosts(std::string_view text) {
        int64_t sum = 0, last = -1;
        const char* at = text.data();
        const char* end = at + text.size();
        while (at != end) {
            int64_t low, high;
            if (!host(at, end, low)) return false;
            high = low;
            if (at != end && *at == '-' && !host(++at, end, high)) return false;
            if (high < low || (last >= 0 && low <= last + 1) || high >= kMostHosts) return false;
            sum += high - low + 1;
            last = high;
            if (at != end && (*at != ' ' || ++at == end)) return false;
        }
        held.push_back(static_cast<int32_t>(sum));
        highest.push_back(static_cast<int32_t>(last));
        return true;
    }

    static bool host(const char*& at, const char* end, int64_t& value) {
        const char* begin = at;
        for (value = 0; at != end && is_digit(*at) && at - begin < 9; ++at) value = value * 10 + (*at - '0');
        return at != begin;
    }

    static bool count(std::string_view text) {
        text.remove_prefix(!text.empty() && text.front() == '-');
        if (text.empty() || text.size() > size_t{kExactDigits}) return false;
        for (char letter : text) {
            if (!is_digit(letter)) return false;
        }
        return true;
    }

    // Correctly rounded: few digits are an integer over a power of ten, and both fit into a double.
    static bool number(std::string_view text, double& value) {
        static constexpr double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                            1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
        const char* at = text.data();
        const char* end = at + text.size();
        bool is_negative = *at == '-';
        bool has_point = false;
        uint64_t exact = 0;
        int digits = 0, decimals = 0;
        for (at += is_negative; at != end; ++at) {
            if (*at == '.' && !has_point && digits) {
                has_point = true;
            } else if (is_digit(*at)) {
                exact = exact * 10 + static_cast<uint64_t>(*at - '0');
                ++digits;
                decimals += has_point;
            } else {
                return false;
            }
        }
        if (digits > kExactDigits) return std::from_chars(text.data(), end, value).ec == std::errc();
        value = static_cast<double>(exact) / powers[decimals];
        if (is_negative) value = -value;
        return digits > 0;
    }

    static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
};

}  // namespace batsched
