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

// Text with backslashes, from somewhere within brackets or a string on.
const char* bracket_end_slowly(const char* p, const char* end, long depth, bool in_string) {
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
    long depth = 0;
    std::uint64_t inside = 0;  // all bits set while a string is open
    for (; p < end; p += 64) {
        const Structure found = structure_of(p);
        if (found.backslashes != 0) return bracket_end_slowly(p, end, depth, inside != 0);
        // Bit i becomes the parity of the quotes up to byte i: set within strings.
        std::uint64_t strings = found.quotes;
        if (strings != 0) {
            for (int shift = 1; shift < 64; shift *= 2) strings ^= strings << shift;
        }
        strings ^= inside;
        inside = 0 - (strings >> 63);
        for (std::uint64_t rest = (found.opening | found.closing) & ~strings; rest != 0; rest &= rest - 1) {
            const std::uint64_t first = rest & (0 - rest);
            depth += (found.opening & first) != 0 ? 1 : -1;
            if (depth > 0) continue;
            const char* stop = p + __builtin_ctzll(rest) + 1;
            return stop <= end ? stop : nullptr;
        }
    }
    return nullptr;
}

}  // namespace torchdiag
