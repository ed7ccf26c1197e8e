// The values of events: each reader returns the end of the value at p, `bad()` or `starved()`.
#include <cstring>

#include "cursor.hpp"
#include "events.hpp"
#include "json.hpp"
#include "vector.hpp"

namespace torchdiag {

namespace {

bool is_flow(char phase) { return phase == 's' || phase == 't' || phase == 'f'; }

}  // namespace

const char* Events::read(const char* p, const char* end) {
    switch (key_->role) {
        case Role::phase: return read_phase(p, end);
        case Role::category: return read_text(p, end, categories, event_.category);
        case Role::name: return read_text(p, end, names, event_.name);
        case Role::pid: return read_identity(p, end, pid_memo_, event_.pid);
        case Role::tid: return read_identity(p, end, tid_memo_, event_.tid);
        case Role::time: return read_time(p, end, event_.time);
        case Role::duration: return read_time(p, end, event_.duration);
        case Role::id: return read_id(p, end);
        case Role::args:  // no object: as good as none
            open_args();
            return value_end(p, end);
        case Role::integer:
        case Role::real:
        case Role::text: return read_argument(p, end, *to_->arguments[static_cast<std::size_t>(key_->column)]);
        default: return value_end(p, end);
    }
}

const char* Events::read_argument(const char* p, const char* end, Argument& argument) {
    // Of a key that comes twice the last value counts, even when it is of no use.
    if (repeated_) argument.drop(row_);
    if (key_->role == Role::integer) return read_integer(p, end, argument.integers);
    if (key_->role == Role::real) return read_real(p, end, argument.reals);
    std::int32_t code = -1;
    const char* stop = *p == '{' || *p == '[' ? read_nested(p, end, code) : read_text(p, end, texts, code);
    if (stopped(stop)) return stop;
    if (code < 0 && *p != 'n') code = texts.code(p, static_cast<std::size_t>(stop - p), false);
    if (code >= 0) argument.texts.put(row_, code);
    return stop;
}

// A string; anything else counts as none.
const char* Events::read_text(const char* p, const char* end, Dictionary& dictionary, std::int32_t& code) {
    code = -1;
    if (*p != '"') return value_end(p, end);
    bool escaped;
    const char* quote = string_end(p + 1, end, escaped);
    if (stopped(quote)) return quote;
    code = dictionary.code(p + 1, static_cast<std::size_t>(quote - p - 1), escaped);
    return quote + 1;
}

// Lists of shapes and the like come again and again: where they are known, finding their end is enough.
const char* Events::read_nested(const char* p, const char* end, std::int32_t& code) {
    const char* stop = bracket_end(p, end);
    if (stop == nullptr) {
        stop = value_end(p, end);
        return stopped(stop) ? stop : bad();
    }
    const std::size_t length = static_cast<std::size_t>(stop - p);
    code = texts.find_plain(p, length);
    if (code >= 0) return stop;
    const char* valid = value_end(p, end);
    if (stopped(valid)) return valid;
    if (valid != stop) return bad();
    code = texts.code(p, length, false);
    return stop;
}

const char* Events::read_phase(const char* p, const char* end) {
    event_.phase = 0;
    event_.is_flow = false;
    if (*p != '"') return value_end(p, end);
    if (p + 2 < end && p[2] == '"' && p[1] >= ' ' && p[1] != '"' && p[1] != '\\') {
        event_.phase = static_cast<std::uint8_t>(p[1]);
        event_.is_flow = is_flow(p[1]);
        return p + 3;
    }
    bool escaped;
    const char* quote = string_end(p + 1, end, escaped);
    if (stopped(quote)) return quote;
    scratch_.clear();
    unescape(p + 1, quote, scratch_);
    if (scratch_.size() == 0 || static_cast<unsigned char>(scratch_[0]) >= 0x80) return quote + 1;
    const char mark = scratch_[0];
    event_.phase = static_cast<std::uint8_t>(mark);
    event_.is_flow = scratch_.size() == 1 && is_flow(mark);
    return quote + 1;
}

const char* Events::read_identity(const char* p, const char* end, Memo& memo, std::int32_t& code) {
    if (memo.length != 0 && equal_padded(p, memo.bytes, memo.length)) {
        const char next = p[memo.length];
        if (*p == '"' || next == ',' || next == '\n' || next == '}') {
            code = memo.code;
            return p + memo.length;
        }
    }
    code = -1;
    const char* stop = value_end(p, end);
    if (stopped(stop) || (*p != '"' && *p != '-' && !is_digit(*p))) return stop;
    const std::size_t length = static_cast<std::size_t>(stop - p);
    code = identities.find_or_add(p, length);
    if (length <= sizeof memo.bytes) {
        std::memcpy(memo.bytes, p, length);
        memo.length = static_cast<unsigned>(length);
        memo.code = code;
    }
    return stop;
}

const char* Events::read_time(const char* p, const char* end, std::int64_t& value) {
    value = kMissing;
    const char* stop = quick_nanoseconds(p, value);
    if (stop != nullptr) return stop >= end ? starved() : stop;
    value = kMissing;
    stop = value_end(p, end);
    if (stopped(stop)) return stop;
    const bool text = *p == '"';
    const char* last = text ? stop - 1 : stop;
    const char* first = text ? p + 1 : p;
    trim(first, last);
    std::int64_t read = kMissing;
    const Reading reading = nanoseconds(first, last, read);
    if (reading == Reading::exact) {
        value = read;
        if (text) note(Damage::string_number);
    } else if (reading == Reading::out_of_range) {
        note(Damage::integer_overflow);
    }
    return stop;
}

const char* Events::read_integer(const char* p, const char* end, Sparse<std::int64_t>& column) {
    std::int64_t value;
    const char* stop = quick_integer(p, value);
    if (stop != nullptr) {
        if (stop >= end) return starved();
        column.put(row_, value);
        return stop;
    }
    stop = value_end(p, end);
    if (stopped(stop)) return stop;
    const bool text = *p == '"';
    const char* last = text ? stop - 1 : stop;
    const char* first = text ? p + 1 : p;
    trim(first, last);
    const Reading reading = integer(first, last, true, value);
    if (reading == Reading::exact) column.put(row_, value);
    if (reading == Reading::out_of_range) note(Damage::integer_overflow);
    return stop;
}

const char* Events::read_real(const char* p, const char* end, Sparse<double>& column) {
    const char* stop = value_end(p, end);
    if (stopped(stop)) return stop;
    const bool text = *p == '"';
    const char* last = text ? stop - 1 : stop;
    const char* first = text ? p + 1 : p;
    trim(first, last);
    double value;
    if (real(first, last, value) == Reading::exact) column.put(row_, value);
    return stop;
}

const char* Events::read_id(const char* p, const char* end) {
    event_.has_id = true;
    const char* stop = quick_integer(p, event_.id);
    if (stop != nullptr) return stop >= end ? starved() : stop;
    stop = value_end(p, end);
    if (stopped(stop)) return stop;
    if (*p == 'n') {
        event_.has_id = false;
        return stop;
    }
    const bool text = *p == '"';
    const char* last = text ? stop - 1 : stop;
    const char* first = text ? p + 1 : p;
    trim(first, last);
    if (integer(first, last, true, event_.id) == Reading::exact) return stop;
    odd_ids_ = true;
    // No number: a code of its own, far from the small negative numbers that some exporters use.
    event_.id = INT64_MIN + 1 + identities.find_or_add(p, static_cast<std::size_t>(stop - p));
    return stop;
}

}  // namespace torchdiag
