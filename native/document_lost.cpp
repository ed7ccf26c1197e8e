// Finding the way back into a document after text that makes no sense.
#include "cursor.hpp"
#include "document.hpp"
#include "json.hpp"

namespace torchdiag {

void Document::lose(State state, char before) {
    state_ = state;
    before_ = before;
    depth_ = before == '{' ? 1 : 0;
}

// Steps through damaged text until something familiar comes. What has been passed is given up.
const char* Document::find_event(const char* p, const char* end) {
    const bool header = state_ == State::lost_header;
    const char* start = p;
    for (; p < end; ++p) {
        const char c = *p;
        if (is_space(c)) continue;
        Sight sight = Sight::no;
        // Before a brace that opens an event stands a comma or a bracket, never the colon of a key.
        if (c == '{' && (before_ == ',' || before_ == '[' || before_ == '}' || before_ == ']')) {
            sight = event_at(p, end);
            if (sight == Sight::yes) {
                if (!events_begun_) begin_events(p);
                after_comma_ = false;
                state_ = State::element;
                return p;
            }
        } else if (c == '"') {
            const char* inside = nullptr;
            sight = events_start(p, end, inside);
            if (sight == Sight::yes) {
                if (events_begun_) begin_document(false, p);
                array_ = false;
                begin_events(p);
                return inside;
            }
            if (sight == Sight::no && header && depth_ == 0 && before_ == ',') sight = key_at(p, end);
            if (sight == Sight::yes) {
                after_comma_ = true;
                state_ = State::key;
                return p;
            }
        } else if (c == '}' && header && depth_ == 0) {
            after_comma_ = false;
            state_ = State::key;
            return p;
        } else if (c == ']' && !header && depth_ <= 0) {
            sight = events_end(p, end);
            if (sight == Sight::yes || (sight == Sight::unclear && final_)) {
                after_comma_ = false;
                state_ = State::element;
                return p;
            }
        }
        if (sight == Sight::unclear && !final_) break;
        before_ = c;
        // Brackets in strings are counted as well: an end of the list that is missed costs less than one that is none.
        if (c == '{' || c == '[') ++depth_;
        if (c == '}' || c == ']') --depth_;
    }
    return p == start ? starved() : p;
}

// Whether an event starts at p. One that begins with another key than `ph` might be any object: it must have that key,
// and be valid.
Sight Document::event_at(const char* p, const char* end) const {
    const Sight surely = event_starts(p, end, true);
    if (surely != Sight::no || (events_begun_ && state_ == State::lost_header)) return surely;
    const Sight perhaps = event_starts(p, end, false);
    if (perhaps != Sight::yes) return perhaps;
    const char* stop = value_end(p, end);
    if (stop == starved() && !decide_now(p, end)) return Sight::unclear;
    return !stopped(stop) && has_key(p, stop, "ph") ? Sight::yes : Sight::no;
}

}  // namespace torchdiag
