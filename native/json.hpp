// Valid JSON, recognised and nothing else.
#pragma once

#include "cursor.hpp"

namespace torchdiag {

// The end of the JSON value at p (no white space before it), `bad()` or `starved()`. Values nested deeper than
// `depth_limit` are bad; a document is two levels deeper than its events, which is the most that can be asked for.
const char* value_end(const char* p, const char* end, int depth_limit = kDepthLimit);

// Whether the valid object [p, end) has this key, spelled without escapes, itself.
bool has_key(const char* p, const char* end, const char* key);

// The end of a value known or hoped to be valid, faster: brackets are counted, what is between them is not checked.
// Returns null when the brackets do not close before the end.
const char* bracket_end(const char* p, const char* end);

}  // namespace torchdiag
