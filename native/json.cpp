#include "json.hpp"

#include <bitset>
#include <cstring>

#include "cursor.hpp"
#include "number.hpp"
#include "text.hpp"
#include "vector.hpp"

namespace torchdiag {

namespace {

const char* word_end(const char* p, const char* end, const char* word) {
    for (; *word != 0; ++word, ++p) {
        if (p >= end) return starved();
        if (*p != *word) return bad();
    }
    return p;
}

const char* scalar_end(const char* p, const char* end) {
    switch (*p) {
        case '"': {
            bool escaped;
            const char* quote = string_end(p + 1, end, escaped);
            return stopped(quote) ? quote : quote + 1;
        }
        case 't': return word_end(p, end, "true");
        case 'f': return word_end(p, end, "false");
        case 'n': return word_end(p, end, "null");
        default: return number_end(p, end);
    }
}

// After the key of a member: the first byte of its value.
const char* member_value(const char* p, const char* end) {
    if (p >= end) return starved();
    if (*p != '"') return bad();
    p = scalar_end(p, end);
    if (stopped(p)) return p;
    p = skip_space(p);
    if (p >= end) return starved();
    if (*p != ':') return bad();
    return skip_space(p + 1);
}

// How many of 16 bits are set. The instruction for it is newer than what the library is built for.
int ones(unsigned bits) {
    bits -= bits >> 1 & 0x5555;
    bits = (bits & 0x3333) + (bits >> 2 & 0x3333);
    bits = (bits + (bits >> 4)) & 0x0F0F;
    return static_cast<int>((bits + (bits >> 8)) & 0x1F);
}

// Text with backslashes, from somewhere within brackets or a string on.
const char* bracket_end_slowly(const char* p, const char* end, int depth, bool in_string) {
    for (; p < end; ++p) {
        if (in_string) {
            if (*p == '\\') ++p;
            else if (*p == '"') in_string = false;
        } else if (*p == '"') {
            in_string = true;
        } else if (*p == '[' || *p == '{') {
            ++depth;
        } else if (*p == ']' || *p == '}') {
            if (--depth == 0) return p + 1;
        }
    }
    return nullptr;
}

}  // namespace

const char* value_end(const char* p, const char* end, int depth_limit) {
    if (p < end && *p != '{' && *p != '[') return scalar_end(p, end);
    std::bitset<kDepthLimit + 2> in_object;
    int depth = 0;
    for (;;) {
        if (p >= end) return starved();
        if (*p == '{' || *p == '[') {
            if (depth == depth_limit) return bad();
            const bool object = *p == '{';
            p = skip_space(p + 1);
            if (p >= end) return starved();
            if (*p != (object ? '}' : ']')) {
                in_object[static_cast<std::size_t>(depth++)] = object;
                if (object) {
                    p = member_value(p, end);
                    if (stopped(p)) return p;
                }
                continue;
            }
            ++p;
        } else {
            p = scalar_end(p, end);
            if (stopped(p)) return p;
        }
        // A value has ended: so may the ones around it.
        for (;;) {
            if (depth == 0) return p;
            const bool object = in_object[static_cast<std::size_t>(depth - 1)];
            p = skip_space(p);
            if (p >= end) return starved();
            if (*p == ',') {
                p = skip_space(p + 1);
                if (object) p = member_value(p, end);
                if (stopped(p)) return p;
                break;
            }
            if (*p != (object ? '}' : ']')) return bad();
            --depth;
            ++p;
        }
    }
}

bool has_key(const char* p, const char* end, const char* key) {
    const std::size_t length = std::strlen(key);
    for (p = skip_space(p + 1); *p == '"'; p = skip_space(p + 1)) {
        const char* quote = scalar_end(p, end) - 1;
        if (static_cast<std::size_t>(quote - p - 1) == length && std::memcmp(p + 1, key, length) == 0) return true;
        const char* colon = skip_space(quote + 1);
        p = skip_space(value_end(skip_space(colon + 1), end));
        if (*p != ',') break;
    }
    return false;
}

const char* bracket_end(const char* p, const char* end) {
    int depth = 0;
    unsigned inside = 0;  // all bits set while a string is open
    for (; p < end; p += 16) {
        Structure found = structure_of(p);
        if (found.backslashes != 0) return bracket_end_slowly(p, end, depth, inside != 0);
        if (found.quotes != 0 || inside != 0) {
            // Bit i becomes the parity of the quotes up to byte i.
            unsigned parity = found.quotes;
            parity ^= parity << 1;
            parity ^= parity << 2;
            parity ^= parity << 4;
            parity ^= parity << 8;
            parity ^= inside;
            found.opening &= ~parity;
            found.closing &= ~parity;
            inside = 0 - (parity >> 15 & 1);
        }
        // Each closing bracket in turn: those opened before it, less those closed before it.
        for (int closed = 1; found.closing != 0; ++closed) {
            const unsigned below = (found.closing & (0 - found.closing)) - 1;
            if (depth + ones(found.opening & below) == closed) {
                const char* stop = p + __builtin_ctz(found.closing) + 1;
                return stop <= end ? stop : nullptr;
            }
            found.closing &= found.closing - 1;
            if (found.closing == 0) depth -= closed;
        }
        depth += ones(found.opening);
    }
    return nullptr;
}

}  // namespace torchdiag
