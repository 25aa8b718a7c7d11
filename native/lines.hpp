// Lines of output files, which are handed over when they are many.
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "text.hpp"

namespace batsched {

class Lines {
public:
    std::function<void(const std::string&)> write;  // takes the lines; none if nobody wants them

    // Makes room for so many letters besides the numbers of a line, which are then added without looking.
    void make_room(size_t more = 0) {
        more += kNumbers;
        size_t used = static_cast<size_t>(end_ - lines_.data());
        if (used + more <= lines_.size()) return;
        lines_.resize(2 * (used + more));
        end_ = lines_.data() + used;
    }

    void add(std::string_view text) { end_ = std::copy(text.begin(), text.end(), end_); }
    void drop_last() { --end_; }
    void add_integer(int64_t value) { end_ = std::to_chars(end_, end_ + 24, value).ptr; }

    // A name may have commas and quotes.
    void add_name(std::string_view part) {
        if (part.find_first_of("\",\r\n") == part.npos) {
            add(part);
        } else {
            add("\"");
            for (char letter : part) add(letter == '"' ? std::string_view("\"\"") : std::string_view(&letter, 1));
            add("\"");
        }
        add(",");
    }

    // Six decimals, correctly rounded.
    void add_decimal(double value) {
        if (std::abs(value) < 1e15 && value == std::floor(value) && !(value == 0 && std::signbit(value))) {
            add_integer(static_cast<int64_t>(value));
            add(".000000,");
        } else if (value >= 1 && value < 1e12) {
            add_millionths(value);
        } else if (std::isfinite(value)) {
            end_ = std::to_chars(end_, end_ + 400, value, std::chars_format::fixed, 6).ptr;
            add(",");
        } else {
            add(std::isnan(value) ? "nan," : value > 0 ? "inf," : "-inf,");
        }
    }

    void end_line() {
        add("\n");
        if (end_ - lines_.data() > static_cast<std::ptrdiff_t>(kMany)) flush();
    }

    void flush() {
        if (end_ == lines_.data()) return;
        std::string full(lines_.data(), end_);
        end_ = lines_.data();
        write(full);
    }

private:
    static constexpr size_t kMany = 1 << 16;   // letters are written at a time
    static constexpr size_t kNumbers = 4096;   // letters, enough for all numbers of a line
    std::vector<char> lines_;
    char* end_ = nullptr;  // of what was added

    // A number from 1 to 10 ** 12 is an integer over a power of two, so that its decimals can be counted in integers.
    // Halves go to the even neighbour.
    void add_millionths(double value) {
        int exponent;
        auto digits = static_cast<uint64_t>(std::ldexp(std::frexp(value, &exponent), 53));
        int shift = 53 - exponent;  // the value is digits / 2 ** shift
        unsigned __int128 scaled = static_cast<unsigned __int128>(digits) * 1'000'000;
        unsigned __int128 half = static_cast<unsigned __int128>(1) << (shift - 1), rest = scaled & (2 * half - 1);
        auto rounded = static_cast<uint64_t>(scaled >> shift);
        rounded += rest > half || (rest == half && rounded % 2);
        add_integer(static_cast<int64_t>(rounded / 1'000'000));
        char text[8] = {'.', '0', '0', '0', '0', '0', '0', ','};
        for (uint64_t left = rounded % 1'000'000, place = 6; left; left /= 10, --place) {
            text[place] = static_cast<char>('0' + left % 10);
        }
        add({text, sizeof text});
    }
};

}  // namespace batsched
