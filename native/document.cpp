#include "document.hpp"

#include <algorithm>
#include <cstring>

#include "cursor.hpp"
#include "json.hpp"
#include "recover.hpp"
#include "text.hpp"
#include "vector.hpp"

namespace torchdiag {

namespace {

// A valid event is a few hundred bytes and metadata a few kilobytes; what is not complete after this many is damaged.
constexpr std::size_t kEventLimit = std::size_t{64} << 20;
constexpr std::size_t kMetadataLimit = std::size_t{256} << 20;

// How much text an attempt to mend looks at, at most and at least.
constexpr std::size_t kMendMost = std::size_t{1} << 20;
constexpr std::size_t kMendLeast = std::size_t{4} << 10;

bool equals(const char* p, const char* end, const char* word) {
    return static_cast<std::size_t>(end - p) == std::strlen(word) && std::memcmp(p, word, std::strlen(word)) == 0;
}

}  // namespace

Document::Document(Sink& sink, std::size_t block)
    : sink_(sink), block_(std::max<std::size_t>(block, 1)), enough_(block_), mend_window_(kMendMost) {}

void Document::feed(const char* bytes, std::size_t count) {
    while (count > 0) {
        const std::size_t missing = enough_ > buffer_.size() ? enough_ - buffer_.size() : 1;
        const std::size_t piece = std::min(count, missing);
        buffer_.reserve(buffer_.size() + piece + kPadding);
        buffer_.append(bytes, piece);
        bytes += piece;
        count -= piece;
        if (buffer_.size() >= enough_) pump();
    }
}

void Document::finish() {
    final_ = true;
    pump();
    // A document whose start is missing need not have an end.
    const bool complete = state_ == State::outside || (state_ == State::lost_header && !cut_) ||
                          (headless_ && (state_ == State::after_element || state_ == State::after_value));
    if (!complete) sink_.tally.note(Damage::truncated_json, base_ + static_cast<std::int64_t>(buffer_.size()));
}

void Document::pump() {
    buffer_.reserve(buffer_.size() + kPadding);
    const char* p = buffer_.data();
    const char* end = p + buffer_.size();
    std::memset(buffer_.data() + buffer_.size(), 0, kPadding);
    for (;;) {
        const char* next = step(p, end);
        if (stopped(next)) break;
        p = next;
    }
    const std::size_t rest = static_cast<std::size_t>(end - p);
    base_ += p - buffer_.data();
    std::memmove(buffer_.data(), p, rest);
    buffer_.set_size(rest);
    // A value that did not fit is looked at again only when there is twice as much of it: linear time for any size.
    enough_ = rest + std::max(block_, rest);
}

bool Document::decide_now(const char* p, const char* end) const {
    const bool metadata = state_ == State::key || state_ == State::outside;
    return final_ || static_cast<std::size_t>(end - p) >= (metadata ? kMetadataLimit : kEventLimit);
}

// One step from p. Steps give up only white space and what they have dealt with, so that a step which is starved can be
// taken again from the same place with more text.
const char* Document::step(const char* p, const char* end) {
    if (state_ == State::lost_header || state_ == State::lost_event) return find_event(p, end);
    p = skip_space(p);
    if (p >= end) return starved();
    switch (state_) {
        case State::outside: return outside(p, end);
        case State::key: return key(p, end);
        case State::after_value: return after_value(p, end);
        case State::element: return element(p, end);
        default: return after_element(p, end);
    }
}

void Document::begin_document(bool array, const char* p) {
    array_ = array;
    garbage_ = false;
    after_comma_ = false;
    events_begun_ = false;
    headless_ = false;
    if (documents_++ > 0) note(Damage::several_documents, p);
    sink_.begin_document(array);
}

void Document::begin_events(const char* p) {
    if (events_begun_) note(Damage::duplicate_key, p);
    if (cut_) note(Damage::damaged_header, p);  // the text seemed to end before the events, and did not
    events_begun_ = true;
    found_events_ = true;
    cut_ = false;
    after_comma_ = false;
    state_ = State::element;
    sink_.begin_events();
}

const char* Document::outside(const char* p, const char* end) {
    static const char mark[] = "\xEF\xBB\xBF";
    if (*p == mark[0]) {
        for (int i = 1; i < 3; ++i) {
            if (p + i >= end && !final_) return starved();
            if (p[i] != mark[i]) break;
            if (i == 2) return p + 3;
        }
    }
    if (*p == '{' || *p == '[') {
        const char* inside = skip_space(p + 1);
        if (inside >= end && !final_) return starved();
        Sight sight = garbage_ ? event_at(p, end) : event_starts(p, end, true);
        if (sight == Sight::unclear && !final_) return starved();
        if (sight == Sight::yes) {
            const char* stop = value_end(p, end);
            if (stop == starved() && !decide_now(p, end)) return stop;
            if (!stopped(stop) && has_key(p, stop, "traceEvents")) sight = Sight::no;
        }
        if (sight == Sight::yes) {
            // Events without a list around them: its start was lost, or there is one event a line, or a stray bracket
            // has closed the list early.
            if (events_begun_) {
                if (!garbage_) note(Damage::stray_text, p);
                state_ = State::element;
                return p;
            }
            note(Damage::damaged_header, p);
            begin_document(false, p);
            begin_events(p);
            headless_ = true;
            return p;
        }
        const bool array = *p == '[';
        // What follows garbage must look like a document, or text in brackets would be one.
        const bool plausible = *inside == (array ? '{' : '"') || *inside == (array ? ']' : '}');
        if (plausible || !garbage_) {
            begin_document(array, p);
            state_ = State::key;
            if (array) begin_events(p);
            return p + 1;
        }
    }
    if (!garbage_) note(documents_ > 0 ? Damage::trailing_garbage : Damage::damaged_header, p);
    garbage_ = true;
    return p + 1;
}

const char* Document::key(const char* p, const char* end) {
    if (*p == '}') {
        if (after_comma_) note(Damage::trailing_comma, p);
        state_ = State::outside;
        return p + 1;
    }
    if (*p == ',') {
        note(Damage::trailing_comma, p);
        return p + 1;
    }
    const char* colon = nullptr;
    const char* quote = nullptr;
    if (*p == '"') {
        bool escaped;
        quote = string_end(p + 1, end, escaped);
        if (quote == starved() && (final_ || !decide_now(p, end))) return quote;
        if (!stopped(quote)) {
            colon = skip_space(quote + 1);
            if (colon >= end) return starved();
        }
    }
    if (colon == nullptr || *colon != ':') {
        note(events_begun_ ? Damage::damaged_metadata : Damage::damaged_header, p);
        lose(State::lost_header, 0);
        return p;
    }
    const char* value = skip_space(colon + 1);
    if (value >= end) return starved();
    if (*value == '[' && equals(p + 1, quote, "traceEvents")) {
        begin_events(p);
        return value + 1;
    }
    return metadata(p + 1, quote, value, end);
}

const char* Document::metadata(const char* key, const char* key_end, const char* p, const char* end) {
    const std::size_t key_length = static_cast<std::size_t>(key_end - key);
    const char* stop = value_end(p, end);
    const bool unfinished = stop == starved();
    if (unfinished && !decide_now(p, end)) return stop;
    if (!stopped(stop)) {
        state_ = State::after_value;
        // `null` is what exporters write that have recorded nothing.
        if (*p == 'n' && equals(key, key_end, "traceEvents")) found_events_ = true;
        sink_.top_level(key, key_length, p, static_cast<std::size_t>(stop - p));
        return stop;
    }
    Tally found;
    const char* window = static_cast<std::size_t>(end - p) > kMendMost ? p + kMendMost : end;
    mended_.clear();
    stop = mend_value(p, window, final_ || window != end, offset(p), mended_, found);
    if (stop == starved()) return stop;
    if (stopped(stop)) {
        cut_ = unfinished && final_;
        if (!cut_) note(events_begun_ ? Damage::damaged_metadata : Damage::damaged_header, p);
        lose(State::lost_header, ':');
        return p;
    }
    sink_.tally.add(found);
    state_ = State::after_value;
    sink_.top_level(key, key_length, mended_.data(), mended_.size());
    return stop;
}

const char* Document::after_value(const char* p, const char*) {
    if (*p == ',') {
        after_comma_ = true;
        state_ = State::key;
        return p + 1;
    }
    if (*p == '}') {
        after_comma_ = false;
        state_ = State::key;
        return p;
    }
    if (*p == '"') {
        note(Damage::missing_comma, p);
        state_ = State::key;
        return p;
    }
    note(Damage::damaged_metadata, p);
    lose(State::lost_header, 0);
    return p;
}

const char* Document::element(const char* p, const char* end) {
    if (*p == ']') {
        if (after_comma_) note(Damage::trailing_comma, p);
        state_ = array_ ? State::outside : State::after_value;
        return p + 1;
    }
    if (*p == ',') {
        note(Damage::trailing_comma, p);
        return p + 1;
    }
    if (*p == '{') {
        const Taken taken = sink_.take(p, end, offset(p));
        if (taken.outcome == Taken::done) {
            state_ = State::after_element;
            return taken.at;
        }
        if (taken.at != p) return taken.at;
        if (taken.outcome == Taken::unfinished && !decide_now(p, end)) return starved();
        return mend_element(p, end);
    }
    if (*p == '[') {
        const char* inside = skip_space(p + 1);
        const Sight sight = inside < end ? event_starts(inside, end, true) : Sight::unclear;
        if (sight == Sight::unclear && !final_) return starved();
        if (sight == Sight::yes) {
            // A stray bracket, or all events after it would be one element that is none.
            note(Damage::stray_text, p);
            return p + 1;
        }
    }
    const char* stop = value_end(p, end);
    if (stop == starved() && !decide_now(p, end)) return stop;
    if (stopped(stop)) {
        note(Damage::stray_text, p);
        lose(State::lost_event, ',');
        return p;
    }
    if (!sink_.take_other(p, static_cast<std::size_t>(stop - p))) note(Damage::dropped_event, p);
    state_ = State::after_element;
    return stop;
}

const char* Document::mend_element(const char* p, const char* end) {
    Tally found;
    const char* window = static_cast<std::size_t>(end - p) > mend_window_ ? p + mend_window_ : end;
    mended_.clear();
    const char* stop = mend_event(p, window, final_ || window != end, offset(p), mended_, found);
    if (stop == starved()) return stop;
    if (!stopped(stop)) {
        const std::size_t length = mended_.size();
        mended_.reserve(length + kPadding);
        std::memset(mended_.data() + length, 0, kPadding);
        if (sink_.take_mended(mended_.data(), length, offset(p))) {
            sink_.tally.add(found);
            state_ = State::after_element;
            mend_window_ = kMendMost;
            return stop;
        }
    }
    // Where one attempt after another fails, each must cost less, or time would grow with the square of the text.
    mend_window_ = std::max(mend_window_ / 2, kMendLeast);
    note(Damage::dropped_event, p);
    lose(State::lost_event, '{');
    return p + 1;
}

const char* Document::after_element(const char* p, const char*) {
    if (*p == ',') {
        after_comma_ = true;
        state_ = State::element;
        return p + 1;
    }
    after_comma_ = false;
    state_ = State::element;
    if (*p == ']') return p;
    if (*p == '{') {
        note(Damage::missing_comma, p);
        return p;
    }
    note(Damage::stray_text, p);
    lose(State::lost_event, '}');
    return p;
}

}  // namespace torchdiag
