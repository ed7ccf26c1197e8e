#include "mend_string.hpp"

#include <cstring>

#include "cursor.hpp"
#include "text.hpp"

namespace torchdiag {

namespace {

// Keys are short; looking further for the end of one only finds other things.
constexpr std::ptrdiff_t kKeyLimit = 256;

bool is_escape(const char* p, const char* end) {
    if (p + 1 >= end) return false;
    switch (p[1]) {
        case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': return true;
        case 'u':
            for (int i = 2; i < 6; ++i) {
                if (p + i >= end || hex_value(p[i]) < 0) return false;
            }
            return true;
        default: return false;
    }
}

}  // namespace

const char* MendText::ahead(const char* p) {
    while (p < end && is_space(*p)) ++p;
    if (p < end) return p;
    touched_end = true;
    return end;
}

const char* MendText::key_end(const char* p) {
    for (const char* limit = p + kKeyLimit; p < limit; ++p) {
        if (p >= end) {
            touched_end = true;
            return nullptr;
        }
        if (*p == '\\') {
            ++p;
        } else if (*p == '"' && *ahead(p + 1) == ':') {
            return p;
        }
    }
    return nullptr;
}

const char* MendText::quote_on_line(const char* p) {
    for (;; ++p) {
        if (p >= end) {
            touched_end = true;
            return nullptr;
        }
        switch (*p) {
            case '"': return p;
            case ',': case '\n': case '{': case '}': case '[': case ']': return nullptr;
            default: break;
        }
    }
}

// Whether a key starts at p, with or without its first quote.
bool MendText::key_follows(const char* p, bool event_level) {
    if (p >= end) return true;
    if (*p == '"' && event_level && known_keys) {
        return sees(event_key(p, end));
    }
    const bool quoted = *p == '"';
    if (quoted) ++p;
    for (const char* limit = p + kKeyLimit; p < limit; ++p) {
        if (p >= end) {
            touched_end = true;
            return true;
        }
        if (*p == '"') return *ahead(p + 1) == ':';
        if (*p == ':' && !quoted) return true;
        if (*p == '\n' || *p == ',' || *p == '{' || *p == '}' || *p == '[' || *p == ']') return false;
    }
    return false;
}

bool MendText::ends_string(const char* quote, bool event_level, Around around) {
    const char* p = ahead(quote + 1);
    if (p == end) return true;
    const char* next = *p == ',' || *p == '}' || *p == ']' ? ahead(p + 1) : end;
    if (around == Around::array) {
        if (*p == ',') return next == end || (*next != '}' && *next != ':');
        return *p == ']' && (next == end || *next == ',' || *next == ']' || *next == '}');
    }
    if (*p == ',') {
        if (next == end || *next == '}' || *next == ',') return true;
        if (*next == '{') return sees(event_starts(next, end, false));
        return key_follows(next, event_level);
    }
    if (*p == '}') {
        if (next == end || *next == ']' || *next == '}') return true;
        if (*next != ',') return *next == '{' && sees(event_starts(next, end, false));
        if (!event_level) return true;
        // The brace would close the event: another one must come, or the end of the list.
        const char* following = ahead(next + 1);
        return following == end || *following == '{' || *following == ']';
    }
    return *p == '"' && sees(event_key(p, end));
}

bool MendText::string(const char*& p, bool event_level, Around around, Array<char>& out) {
    const char* quote = p;
    const char* content = p + 1;
    const char* stop = nullptr;
    char before = 0;
    bool raw_backslashes = false;
    bool inner_quotes = false;
    for (p = content; stop == nullptr; ++p) {
        if (p >= end) {
            touched_end = true;
            return false;
        }
        const char c = *p;
        if (c == '\\') {
            if (!is_escape(p, end)) {
                raw_backslashes = true;
            } else if (p[1] != '"' || !raw_backslashes || !ends_string(p + 1, event_level, around)) {
                ++p;  // `C:\dir\"` ends here when its backslashes are no escapes
            }
        } else if (c == '"') {
            if (ends_string(p, event_level, around)) {
                stop = p;
            } else if (before == ',' && event_level && sees(event_key(p, end))) {
                // The next key already: this string's own closing quote is missing.
                note(Damage::missing_quote, quote);
                stop = p;
                while (*stop != ',') --stop;
                p = stop - 1;
            } else {
                const char* inside;
                if (sees(events_start(p, end, inside))) return false;  // ran into the next document
                inner_quotes = true;
            }
        } else if (c == '{' && (before == ',' || before == '}') && sees(event_starts(p, end, false))) {
            return false;  // ran into the next event
        }
        if (!is_space(c)) before = c;
    }
    if (inner_quotes) note(Damage::unescaped_quote, quote);
    // A phase is one letter. Anything else comes from two events written over each other.
    if (is_phase && stop - content != 1) return false;
    write_string(content, stop, out);
    return true;
}

void MendText::write_string(const char* p, const char* stop, Array<char>& out) {
    // Whoever wrote one backslash that is no escape did not escape any: `C:\new\Users` holds no line break.
    const char* raw = nullptr;
    for (const char* c = p; c < stop && raw == nullptr; ++c) {
        if (*c != '\\') continue;
        if (!is_escape(c, stop)) raw = c;
        ++c;
    }
    if (raw != nullptr) note(Damage::bad_escape, raw);
    bool control = false, encoding = false;
    out.push('"');
    for (const char* c = p; c < stop;) {
        const unsigned char byte = static_cast<unsigned char>(*c);
        if (byte == '\\') {
            if (raw == nullptr || (c + 1 < stop && (c[1] == '"' || c[1] == '\\'))) {
                out.append(c, 2);
                c += 2;
            } else {
                out.append("\\\\", 2);
                ++c;
            }
        } else if (byte == '"') {
            out.append("\\\"", 2);
            ++c;
        } else if (byte < 0x20) {
            if (!control) note(Damage::control_character, c);
            control = true;
            static const char digits[] = "0123456789abcdef";
            const char escape[] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
            out.append(escape, sizeof escape);
            ++c;
        } else if (byte < 0x80) {
            out.push(*c++);
        } else {
            const int length = utf8_length(c, stop);
            if (length > 0) {
                out.append(c, static_cast<std::size_t>(length));
                c += length;
            } else {
                if (!encoding) note(Damage::bad_utf8, c);
                encoding = true;
                out.append("\xEF\xBF\xBD", 3);
                c = length == 0 ? stop : c - length;
            }
        }
    }
    out.push('"');
}

}  // namespace torchdiag
