#include "number.hpp"

#include <charconv>
#include <cstring>

#include "cursor.hpp"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "digits are read eight at a time, lowest byte first");

namespace torchdiag {

namespace {

const char* skip_digits(const char* p, const char* end) {
    while (p < end && is_digit(*p)) ++p;
    return p;
}

// A decimal number times 10^shift, cut to an integer.
struct Scaled {
    bool valid = false;
    bool negative = false;
    bool overflow = false;
    bool remainder = false;   // something other than zeros was cut off
    bool round_up = false;    // what was cut off is at least a half
    std::uint64_t magnitude = 0;
};

Scaled scale(const char* p, const char* end, int shift) {
    Scaled result;
    if (p < end && (*p == '-' || *p == '+')) result.negative = *p++ == '-';
    const char* whole = p;
    const char* point = p = skip_digits(p, end);
    if (p < end && *p == '.') p = skip_digits(p + 1, end);
    const char* digits_end = p;
    const long whole_count = point - whole;
    if (digits_end - whole - (digits_end > point ? 1 : 0) == 0) return result;
    long exponent = 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        ++p;
        const bool down = p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) ++p;
        const char* first = p;
        for (; p < end && is_digit(*p); ++p) {
            if (exponent < 100000000) exponent = exponent * 10 + (*p - '0');
        }
        if (p == first) return result;
        if (down) exponent = -exponent;
    }
    if (p != end) return result;
    result.valid = true;

    long power = whole_count - 1 + exponent + shift;  // the power of ten of the next digit
    for (const char* digit = whole; digit < digits_end; ++digit) {
        if (digit == point) continue;
        const unsigned value = static_cast<unsigned>(*digit - '0');
        if (power >= 0) {
            if (__builtin_mul_overflow(result.magnitude, std::uint64_t{10}, &result.magnitude) ||
                __builtin_add_overflow(result.magnitude, std::uint64_t{value}, &result.magnitude)) {
                result.overflow = true;
                return result;
            }
        } else {
            if (power == -1) result.round_up = value >= 5;
            if (value != 0) result.remainder = true;
        }
        --power;
    }
    if (result.magnitude != 0) {
        for (; power >= 0; --power) {
            if (__builtin_mul_overflow(result.magnitude, std::uint64_t{10}, &result.magnitude)) {
                result.overflow = true;
                return result;
            }
        }
    }
    return result;
}

Reading with_sign(std::uint64_t magnitude, bool negative, bool wide, std::int64_t& value) {
    const std::uint64_t bits = negative ? 0 - magnitude : magnitude;
    const std::uint64_t most = negative ? std::uint64_t{1} << 63 : wide ? UINT64_MAX : INT64_MAX;
    std::memcpy(&value, &bits, sizeof value);
    return magnitude <= most ? Reading::exact : Reading::out_of_range;
}

Reading hexadecimal(const char* p, const char* end, bool negative, bool wide, std::int64_t& value) {
    if (p == end) return Reading::no_number;
    std::uint64_t magnitude = 0;
    for (; p < end; ++p) {
        const char lower = static_cast<char>(*p | 0x20);
        unsigned digit;
        if (is_digit(*p)) {
            digit = static_cast<unsigned>(*p - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            digit = static_cast<unsigned>(lower - 'a') + 10;
        } else {
            return Reading::no_number;
        }
        if (magnitude >> 60 != 0) return Reading::out_of_range;
        magnitude = magnitude << 4 | digit;
    }
    return with_sign(magnitude, negative, wide, value);
}

std::uint64_t load8(const char* p) {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

// How many of the eight bytes are digits, counted from the first.
int leading_digits(std::uint64_t word) {
    const std::uint64_t zeroed = word ^ 0x3030303030303030U;
    const std::uint64_t above = (zeroed + 0x7676767676767676U) | zeroed;
    const std::uint64_t wrong = above & 0x8080808080808080U;
    return wrong == 0 ? 8 : __builtin_ctzll(wrong) >> 3;
}

// The value of eight digits, lowest byte the most significant digit.
std::uint64_t eight_digits(std::uint64_t word) {
    word = (word & 0x0F0F0F0F0F0F0F0FU) * 2561 >> 8;
    word = (word & 0x00FF00FF00FF00FFU) * 6553601 >> 16;
    return (word & 0x0000FFFF0000FFFFU) * 42949672960001U >> 32;
}

constexpr std::uint64_t kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Up to 16 digits. Returns how many were there (17 when there are more), and their value.
int read_digits(const char* p, std::uint64_t& value) {
    const std::uint64_t first = load8(p);
    const int count = leading_digits(first);
    if (count < 8) {
        value = count == 0 ? 0 : eight_digits(first << (8 * (8 - count)));
        return count;
    }
    const std::uint64_t second = load8(p + 8);
    const int more = leading_digits(second);
    const std::uint64_t low = more == 0 ? 0 : eight_digits(more == 8 ? second : second << (8 * (8 - more)));
    value = eight_digits(first) * kPowers[more] + low;
    return more == 8 && is_digit(p[16]) ? 17 : 8 + more;
}

bool continues_number(char c) { return c == '.' || c == 'e' || c == 'E'; }

}  // namespace

const char* number_end(const char* p, const char* end) {
    if (p < end && *p == '-') ++p;
    if (p >= end) return starved();
    if (!is_digit(*p)) return bad();
    if (*p == '0') {
        ++p;
        if (p < end && is_digit(*p)) return bad();
    } else {
        p = skip_digits(p, end);
    }
    if (p < end && *p == '.') {
        const char* first = ++p;
        p = skip_digits(p, end);
        if (p < end && p == first) return bad();
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        ++p;
        if (p < end && (*p == '-' || *p == '+')) ++p;
        const char* first = p;
        p = skip_digits(p, end);
        if (p < end && p == first) return bad();
    }
    return p >= end ? starved() : p;
}

Reading nanoseconds(const char* p, const char* end, std::int64_t& value) {
    Scaled scaled = scale(p, end, 3);
    if (!scaled.valid) return Reading::no_number;
    if (scaled.overflow) return Reading::out_of_range;
    if (scaled.round_up && ++scaled.magnitude == 0) return Reading::out_of_range;
    return with_sign(scaled.magnitude, scaled.negative, false, value);
}

Reading integer(const char* p, const char* end, bool wide, std::int64_t& value) {
    const char* digits = p;
    bool negative = false;
    if (digits < end && (*digits == '-' || *digits == '+')) negative = *digits++ == '-';
    if (end - digits > 1 && digits[0] == '0' && (digits[1] | 0x20) == 'x') {
        return hexadecimal(digits + 2, end, negative, wide, value);
    }
    const Scaled scaled = scale(p, end, 0);
    if (!scaled.valid) return Reading::no_number;
    if (scaled.overflow) return Reading::out_of_range;
    if (scaled.remainder) return Reading::no_number;
    return with_sign(scaled.magnitude, scaled.negative, wide, value);
}

Reading real(const char* p, const char* end, double& value) {
    if (!scale(p, end, 0).valid) return Reading::no_number;
    if (*p == '+') ++p;
    const std::from_chars_result result = std::from_chars(p, end, value);
    return result.ec == std::errc() ? Reading::exact : Reading::out_of_range;
}

const char* quick_nanoseconds(const char* p, std::int64_t& value) {
    const bool negative = *p == '-';
    if (negative) ++p;
    std::uint64_t whole;
    const int count = read_digits(p, whole);
    if (count == 0 || count > 16 || (*p == '0' && count > 1) || whole > 9223372036854774U) return nullptr;
    p += count;
    std::uint64_t nanoseconds = whole * 1000;
    if (*p == '.') {
        const std::uint64_t word = load8(++p);
        const int decimals = leading_digits(word);
        if (decimals == 0 || decimals == 8) return nullptr;
        const std::uint64_t fraction = eight_digits(word << (8 * (8 - decimals)));
        nanoseconds += decimals <= 3 ? fraction * kPowers[3 - decimals]
                                     : (fraction + 5 * kPowers[decimals - 4]) / kPowers[decimals - 3];
        p += decimals;
    }
    if (continues_number(*p)) return nullptr;
    value = negative ? -static_cast<std::int64_t>(nanoseconds) : static_cast<std::int64_t>(nanoseconds);
    return p;
}

const char* quick_integer(const char* p, std::int64_t& value) {
    const bool negative = *p == '-';
    if (negative) ++p;
    std::uint64_t whole;
    const int count = read_digits(p, whole);
    if (count == 0 || count > 16 || (*p == '0' && count > 1)) return nullptr;
    p += count;
    if (continues_number(*p)) return nullptr;
    value = negative ? -static_cast<std::int64_t>(whole) : static_cast<std::int64_t>(whole);
    return p;
}

}  // namespace torchdiag
