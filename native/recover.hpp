// Making sense of damaged text.
#pragma once

#include <cstdint>

#include "array.hpp"
#include "damage.hpp"

namespace torchdiag {

enum class Sight : std::uint8_t { no, yes, unclear };  // unclear: the text ends before this can be decided

// Whether an event starts at p (a brace). In valid JSON `{"ph":` is always the start of an object, for a quote that
// follows a brace inside a string would have to be escaped: the one thing to hold on to in text that is not valid.
// With `surely` only that counts, else also other keys that events begin with.
Sight event_starts(const char* p, const char* end, bool surely);

// Whether the quote at p opens a key that events have.
Sight event_key(const char* p, const char* end);

// Whether p is `"traceEvents": [`; `inside` is then the byte after the bracket.
Sight events_start(const char* p, const char* end, const char*& inside);

// Whether the quote at p opens any key.
Sight key_at(const char* p, const char* end);

// Whether the closing bracket at p may end the list of events.
Sight events_end(const char* p, const char* end);

// Reads one damaged object or value at p and writes it to `out` as valid JSON. `last`: nothing follows `end`. Returns
// the end of what was read, `bad()` when no sense can be made of it, or `starved()`. What was mended goes to `tally`,
// with the place of p in the file being `offset`.
const char* mend_event(const char* p, const char* end, bool last, std::int64_t offset, Array<char>& out, Tally& tally);
const char* mend_value(const char* p, const char* end, bool last, std::int64_t offset, Array<char>& out, Tally& tally);

}  // namespace torchdiag
