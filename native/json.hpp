// Valid JSON, recognised and nothing else.
#pragma once

namespace torchdiag {

// The end of the JSON value at p (no white space before it), `bad()` or `starved()`. Values nested deeper than
// kDepthLimit are bad.
const char* value_end(const char* p, const char* end);

// The same for a value known or hoped to be valid, faster: brackets are counted, what is between them is not checked.
// Returns null when the brackets do not close before the end.
const char* bracket_end(const char* p, const char* end);

}  // namespace torchdiag
