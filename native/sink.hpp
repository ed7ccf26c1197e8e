// What a document is read into.
#pragma once

#include <cstddef>
#include <cstdint>

#include "damage.hpp"

namespace torchdiag {

// How far a sink came. `at` is the end of the last event when `done`; else the start of the event that could not be
// taken, because its text is not valid or not all there.
struct Taken {
    enum Outcome : std::uint8_t { done, invalid, unfinished };
    const char* at;
    Outcome outcome;
};

class Sink {
public:
    virtual ~Sink() = default;

    // Takes the valid event at p, and may go on with those that follow it after a comma. `offset` is the place of p in
    // the file. An event is taken whole or not at all.
    virtual Taken take(const char* p, const char* end, std::int64_t offset) = 0;

    // Takes an event that is valid now but was not so in the file. False when it is no event after all.
    virtual bool take_mended(const char* text, std::size_t length, std::int64_t offset) = 0;

    // A value in the list of events that is valid JSON but no object. False when it cannot be kept.
    virtual bool take_other(const char* text, std::size_t length) = 0;

    // `array`: the document is a bare list of events.
    virtual void begin_document(bool array) = 0;
    virtual void begin_events() = 0;

    // A key and its value, both valid JSON text; the key without its quotes.
    virtual void top_level(const char* key, std::size_t key_length, const char* value, std::size_t length) = 0;

    Tally tally;
};

}  // namespace torchdiag
