// Rewrites damaged JSON as valid JSON, guessing what its writer meant.
#include <charconv>
#include <cstring>

#include "cursor.hpp"
#include "json.hpp"
#include "mend_string.hpp"
#include "number.hpp"
#include "recover.hpp"

namespace torchdiag {

namespace {

bool is_letter(char c) {
    const char lower = static_cast<char>(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || c == '_';
}

bool ends_word(char c) {
    return is_space(c) || c == ',' || c == '}' || c == ']' || c == '"' || c == '{' || c == '[' || c == ':' || c == 0;
}

class Mender {
public:
    Mender(MendText& text, Array<char>& out, bool in_event) : text_(text), out_(out), in_event_(in_event) {}

    // Each reads one thing at `p_` and writes it; false when no sense can be made of it.
    bool value(const char*& p, int depth, Around around);

private:
    bool members(const char*& p, int depth, Around around);
    bool key(const char*& p, int depth);
    bool word(const char*& p, Around around);
    bool too_deep(const char*& p);
    bool bracket_is_missing(const char* p, bool surely);
    void write(const char* p, const char* end) { out_.append(p, static_cast<std::size_t>(end - p)); }
    void write(const char* word) { out_.append(word, std::strlen(word)); }

    MendText& text_;
    Array<char>& out_;
    const bool in_event_;
    bool closing_ = false;  // the event's last brackets are missing: close all that is open
};

// What follows belongs to the next event or to the end of the list, although this event is still open.
bool Mender::bracket_is_missing(const char* p, bool surely) {
    if (!in_event_) return false;
    const Sight sight = *p == '{' ? event_starts(p, text_.end, surely) : events_end(p, text_.end);
    if (!text_.sees(sight)) return false;
    text_.note(Damage::missing_bracket, p);
    closing_ = true;
    return true;
}

// The members of an object or the values of a list, from the opening bracket on.
bool Mender::members(const char*& p, int depth, Around around) {
    const bool object = around == Around::object;
    const char bracket = object ? '}' : ']';
    out_.push(*p++);
    bool first = true;
    for (const char* comma = nullptr;;) {
        p = text_.ahead(p);
        if (p == text_.end) return false;
        if (*p == bracket) {
            if (comma != nullptr) text_.note(Damage::trailing_comma, comma);
            ++p;
            break;
        }
        if (*p == ',') {
            if (first || comma != nullptr) text_.note(Damage::trailing_comma, p);
            comma = p++;
            continue;
        }
        // A list may hold objects, but hardly one that begins as events do.
        const bool odd = object ? !first && (*p == '{' || *p == ']') : *p == '{';
        if (odd && bracket_is_missing(p, !object)) {
            if (comma != nullptr) p = comma;
            break;
        }
        if (!first && comma == nullptr) text_.note(Damage::missing_comma, p);
        if (!first) out_.push(',');
        if (object) {
            if (!key(p, depth)) return false;
            out_.push(':');
        }
        if (!value(p, depth, around)) return false;
        if (closing_) break;
        first = false;
        comma = nullptr;
        p = text_.ahead(p);
        if (p != text_.end && *p == ',') comma = p++;
    }
    out_.push(bracket);
    return true;
}

bool Mender::key(const char*& p, int depth) {
    const char* start = p;
    const char* stop;
    if (*p == '"') {
        start = p + 1;
        stop = text_.key_end(start);
        if (stop == nullptr) return false;
        p = stop + 1;
    } else if (is_letter(*p)) {
        for (stop = p; !ends_word(*stop) || *stop == ' ';) ++stop;
        text_.note(Damage::missing_quote, p);
        if (stop >= text_.end) text_.touched_end = true;
        p = *stop == '"' ? stop + 1 : stop;
        while (stop > start && stop[-1] == ' ') --stop;
    } else {
        return false;
    }
    // No member of an event, but the start of another document.
    if (in_event_ && stop - start == 11 && std::memcmp(start, "traceEvents", 11) == 0) return false;
    text_.write_string(start, stop, out_);
    p = text_.ahead(p);
    if (*p != ':') return false;
    p = text_.ahead(p + 1);
    text_.is_phase = in_event_ && depth == 1 && stop - start == 2 && std::memcmp(start, "ph", 2) == 0;
    return p != text_.end;
}

bool Mender::value(const char*& p, int depth, Around around) {
    if (p >= text_.end) return false;
    switch (*p) {
        case '{': return depth == kDepthLimit ? too_deep(p) : members(p, depth + 1, Around::object);
        case '[': return depth == kDepthLimit ? too_deep(p) : members(p, depth + 1, Around::array);
        case '"': return text_.string(p, in_event_ && depth == 1, around, out_);
        default: return word(p, around);
    }
}

// Anything without quotes or brackets.
bool Mender::word(const char*& p, Around around) {
    const char* start = p;
    while (!ends_word(*p)) ++p;
    if (p >= text_.end) {
        text_.touched_end = true;
        return false;
    }
    const std::size_t length = static_cast<std::size_t>(p - start);
    if (length == 0 && (around != Around::object || (*p != ',' && *p != '}'))) return false;
    const auto is = [&](const char* name) {
        return std::strlen(name) == length && std::memcmp(start, name, length) == 0;
    };
    if (is("true") || is("false") || is("null") || number_end(start, p + 1) == p) {
        write(start, p);
        return true;
    }
    if (is("True") || is("False") || is("None")) {
        text_.note(Damage::bare_word, start);
        write(is("True") ? "true" : is("False") ? "false" : "null");
        return true;
    }
    const char* quote = text_.quote_on_line(start);
    if (is_letter(*start) && quote != nullptr && text_.ends_string(quote, false, around)) {
        // `aten::add", ...`: a string without its first quote.
        text_.note(Damage::missing_quote, start);
        text_.write_string(start, quote, out_);
        p = quote + 1;
        return true;
    }
    if (*p == '{' || *p == '[' || *p == ':') return false;
    const bool sign = *start == '-' || *start == '+' || *start == '.';
    if (!is_digit(start[sign ? 1 : 0])) {
        text_.note(Damage::bare_word, start);
        write("null");
        return true;
    }
    text_.note(Damage::bad_number, start);
    std::int64_t number;
    if (integer(start, p, false, number) != Reading::exact) {
        write("null");
        return true;
    }
    char digits[24];
    write(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
    return true;
}

bool Mender::too_deep(const char*& p) {
    text_.note(Damage::deep_nesting, p);
    const char* stop = bracket_end(p, text_.end);
    if (stop == nullptr) {
        text_.touched_end = true;
        return false;
    }
    p = stop;
    write("null");
    return true;
}

const char* mend(const char* p, MendText& text, Array<char>& out, bool event) {
    const char* stop = p;
    const bool valid = Mender(text, out, event).value(stop, 0, Around::nothing);
    if (text.touched_end && !text.last) return starved();
    return valid ? stop : bad();
}

// An event must be followed by something that may follow an event, or its end was misjudged.
bool well_followed(const char* stop, MendText& text) {
    const char* next = text.ahead(stop);
    return next == text.end || *next == ',' || *next == ']' || *next == '{';
}

}  // namespace

const char* mend_event(const char* p, const char* end, bool last, std::int64_t offset, Array<char>& out, Tally& tally) {
    // A quote inside a name can look like its end: `{"a": 1, "b": 2}` as a name. First every end is believed that
    // could be one, then only those where one of the keys follows that events have.
    for (const bool known_keys : {false, true}) {
        Tally found;
        MendText text{p, end, last, known_keys, offset, found};
        out.clear();
        const char* stop = mend(p, text, out, true);
        if (!stopped(stop) && !well_followed(stop, text)) stop = bad();
        if (text.touched_end && !last) return starved();
        if (!stopped(stop)) {
            tally.add(found);
            return stop;
        }
    }
    return bad();
}

const char* mend_value(const char* p, const char* end, bool last, std::int64_t offset, Array<char>& out, Tally& tally) {
    MendText text{p, end, last, false, offset, tally};
    return mend(p, text, out, false);
}

}  // namespace torchdiag
