#include "json.hpp"

#include <bitset>
#include <cstring>

#include "cursor.hpp"
#include "number.hpp"
#include "text.hpp"

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

}  // namespace

const char* value_end(const char* p, const char* end) {
    std::bitset<kDepthLimit> in_object;
    int depth = 0;
    for (;;) {
        if (p >= end) return starved();
        if (*p == '{' || *p == '[') {
            if (depth == kDepthLimit) return bad();
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

const char* bracket_end(const char* p, const char* end) {
    long depth = 0;
    for (; p < end; ++p) {
        switch (*p) {
            case '[': case '{':
                ++depth;
                break;
            case ']': case '}':
                if (--depth == 0) return p + 1;
                break;
            case '"':
                for (++p; p < end && *p != '"'; ++p) {
                    if (*p == '\\') ++p;
                }
                break;
            default:
                break;
        }
    }
    return nullptr;
}

}  // namespace torchdiag
