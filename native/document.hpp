// Finds events and top-level keys in text that arrives in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "array.hpp"
#include "recover.hpp"
#include "sink.hpp"

namespace torchdiag {

class Document {
public:
    // `block`: how many bytes are gathered before they are looked at; it changes speed and memory, never the result.
    Document(Sink& sink, std::size_t block);

    void feed(const char* bytes, std::size_t count);
    void finish();
    bool found_events() const { return found_events_; }

private:
    enum class State : std::uint8_t {
        outside,         // before, between and after documents
        key,             // in the top-level object, before a key
        after_value,     // in the top-level object, after a value
        element,         // in the list of events, before one
        after_element,   // in the list of events, after one
        lost_header,     // looking for the events, after damage before them
        lost_event,      // looking for the next event, after a damaged one
    };

    void pump();
    const char* step(const char* p, const char* end);
    const char* outside(const char* p, const char* end);
    const char* key(const char* p, const char* end);
    const char* after_value(const char* p, const char* end);
    const char* element(const char* p, const char* end);
    const char* mend_element(const char* p, const char* end);
    const char* after_element(const char* p, const char* end);
    const char* metadata(const char* key, const char* key_end, const char* p, const char* end);
    const char* find_event(const char* p, const char* end);
    Sight event_at(const char* p, const char* end) const;
    void begin_document(bool array, const char* p);
    void begin_events(const char* p);
    void lose(State state, char before);

    // The rest of the text cannot be waited for: it has ended, or this piece grew too large to be one valid value.
    bool decide_now(const char* p, const char* end) const;
    std::int64_t offset(const char* p) const { return base_ + (p - buffer_.data()); }
    void note(Damage kind, const char* p) { sink_.tally.note(kind, offset(p)); }

    Sink& sink_;
    const std::size_t block_;
    Array<char> buffer_;           // what is not read yet; kPadding zero bytes follow it
    std::int64_t base_ = 0;        // place in the file of the first byte of the buffer
    std::size_t enough_;           // bytes to gather before the next look
    std::size_t mend_window_;      // how much text the next attempt to mend may look at
    Array<char> mended_;
    State state_ = State::outside;
    bool final_ = false;
    bool array_ = false;           // the current document is a bare list
    bool after_comma_ = false;
    bool found_events_ = false;    // in any document
    bool events_begun_ = false;    // in the current one
    bool headless_ = false;        // the current one began with an event
    bool cut_ = false;             // lost because the text ended
    bool garbage_ = false;         // already complained about the text between documents
    char before_ = 0;              // while lost: the last character that is no white space
    long depth_ = 0;               // while lost: brackets opened less brackets closed
    int documents_ = 0;
};

}  // namespace torchdiag
