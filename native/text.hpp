// Numbers and names as text, spelled as Python spells them.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace batsched {

inline bool is_whole(double value) { return std::isfinite(value) && value == std::floor(value); }

// The time that is told when it is `time`: the nearest millionth of a second (batsched_py/protocol/jobs.py).
inline double to_tick(double time) {
    if (!std::isfinite(time) || time == std::floor(time)) return time;
    char digits[512];
    char* end = std::to_chars(digits, digits + sizeof digits, time, std::chars_format::fixed, 6).ptr;
    double rounded = time;
    std::from_chars(digits, end, rounded);
    return rounded;
}

constexpr double kTick = 1e-6;  // the least time that is told apart

// The first tick that is not before a time.
inline double first_tick_from(double time) {
    double tick = to_tick(time);
    return tick >= time ? tick : to_tick(time + kTick);
}

inline void append_integer(std::string& text, int64_t value) {
    char digits[24];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

// A number as names and notes spell it: without decimals if it is whole, else with as few digits as tell it.
inline std::string spelled(double value) {
    char digits[512];
    auto form = std::chars_format::fixed;
    if (is_whole(value)) {
        return {digits, std::to_chars(digits, digits + sizeof digits, value, form, 0).ptr};
    }
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (std::abs(value) < 1e-4) form = std::chars_format::scientific;
    return {digits, std::to_chars(digits, digits + sizeof digits, value, form).ptr};
}

// A number as Python's format "g" has it.
inline std::string general(double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

// The workload in a job's identifier "WORKLOAD!NAME".
inline std::string_view workload_in(std::string_view id) { return id.substr(0, std::min(id.find('!'), id.size())); }

// The name of a job inside its workload.
inline std::string_view name_in(std::string_view id) {
    size_t mark = id.find('!');
    return mark == id.npos ? std::string_view() : id.substr(mark + 1);
}

}  // namespace batsched
