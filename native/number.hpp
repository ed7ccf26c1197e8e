// Numbers: from their decimal text straight to integers.
#pragma once

#include <cstdint>

namespace torchdiag {

// Stands for "no value" in an integer column; the number itself counts as out of range.
constexpr std::int64_t kMissing = INT64_MIN;

enum class Reading : std::uint8_t {
    exact,      // the value
    out_of_range,
    no_number,  // the text is something else, or holds a fraction where an integer was asked for
};

// The end of the JSON number at p, `bad()` or `starved()`.
const char* number_end(const char* p, const char* end);

// Decimal microseconds in [p, end) to nanoseconds, rounded to the nearest with halves away from zero. Accepts what
// JSON accepts and, for numbers that arrive as strings, leading zeros, a plus sign and a bare point.
Reading nanoseconds(const char* p, const char* end, std::int64_t& value);

// An integer in [p, end): decimal (1.50e2 is one too) or hexadecimal with 0x. `wide` admits values up to 2^64 - 1 and
// keeps their bits.
Reading integer(const char* p, const char* end, bool wide, std::int64_t& value);

Reading real(const char* p, const char* end, double& value);

// Blanks around a number that arrives as a string.
inline void trim(const char*& p, const char*& end) {
    while (p < end && *p == ' ') ++p;
    while (p < end && end[-1] == ' ') --end;
}

// The common layouts, read in one go: digits, or digits with a point. Returns the end, or null when the text is
// anything else (which the functions above then decide). May read kPadding bytes past the number.
const char* quick_nanoseconds(const char* p, std::int64_t& value);
const char* quick_integer(const char* p, std::int64_t& value);

}  // namespace torchdiag
