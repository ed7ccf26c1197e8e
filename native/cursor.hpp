// A position in the text, or the reason why there is none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torchdiag {

// Readers return the position after what they read. Two values stand for "no position": the text is not valid here,
// or it ends before this can be decided. The second is why results cannot depend on how the file was cut in chunks:
// a reader that touches the end decides nothing.
inline const char* bad() { return nullptr; }
inline const char* starved() { return reinterpret_cast<const char*>(std::uintptr_t{1}); }
inline bool stopped(const char* p) { return reinterpret_cast<std::uintptr_t>(p) <= 1; }

// Every text handed to a reader is followed by this many zero bytes. A zero byte is no valid JSON outside or inside a
// string, so that vector loads may run past the end and still stop there.
constexpr std::size_t kPadding = 64;

// Deeper values are not kept: whoever decodes them later (Python's json among them) recurses.
constexpr int kDepthLimit = 512;

inline bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

}  // namespace torchdiag
