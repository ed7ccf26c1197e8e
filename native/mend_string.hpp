// Strings of damaged text.
#pragma once

#include <cstddef>
#include <cstdint>

#include "array.hpp"
#include "damage.hpp"
#include "recover.hpp"

namespace torchdiag {

enum class Around : std::uint8_t { nothing, object, array };

// A piece of damaged text and what is found in it.
struct MendText {
    const char* const start;
    const char* const end;
    const bool last;        // nothing follows `end`
    const bool known_keys;  // in events, only keys that events have end a string before them
    const std::int64_t offset;
    Tally& tally;
    bool touched_end = false;  // something was decided by the text ending: void, unless it is the last
    bool is_phase = false;     // the next value is the event's phase

    void note(Damage kind, const char* p) { tally.note(kind, offset + (p - start)); }

    bool sees(Sight sight) {
        if (sight == Sight::unclear) touched_end = true;
        return sight == Sight::yes;
    }

    // The next byte that is no white space, or `end`.
    const char* ahead(const char* p);

    // The closing quote of a key whose content starts at p: the one before the colon. Null when there is none.
    const char* key_end(const char* p);

    // The next quote from p on, when it comes before the line, the member or the value around it ends; else null.
    const char* quote_on_line(const char* p);

    // Whether what follows the quote at p is what may follow a string there.
    bool ends_string(const char* quote, bool event_level, Around around);

    // Reads a string whose quotes and escapes may be wrong, writes a valid one.
    bool string(const char*& p, bool event_level, Around around, Array<char>& out);

    // Writes [p, end) as a JSON string: keeps valid escapes, mends the rest.
    void write_string(const char* p, const char* end, Array<char>& out);

private:
    bool key_follows(const char* p, bool event_level);
};

}  // namespace torchdiag
