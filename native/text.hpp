// Strings: where they end, what they say, and dictionaries of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "array.hpp"

namespace torchdiag {

// The closing quote of the JSON string whose content starts at p, `bad()` or `starved()`. Sets `escaped` when the
// content holds a backslash.
const char* string_end(const char* p, const char* end, bool& escaped);

// Length of the valid UTF-8 sequence at p (1 to 4). When there is none: 0 if the text ends inside what could become
// one, else minus the number of bytes that stand for one U+FFFD (as Python's "replace" counts them).
int utf8_length(const char* p, const char* end);

int hex_value(char c);  // -1 when it is no hexadecimal digit

// Appends the content of a valid JSON string with its escapes resolved, as UTF-8. A surrogate without its other half
// becomes U+FFFD.
void unescape(const char* p, const char* end, Array<char>& out);

// Distinct byte strings, numbered in the order of their first appearance.
class TextTable {
public:
    TextTable();
    std::int32_t find(const char* text, std::size_t length) const;  // -1 when it is not there
    std::int32_t find_or_add(const char* text, std::size_t length);
    std::int32_t size() const { return static_cast<std::int32_t>(offsets_.size()) - 1; }
    const char* text(std::int32_t code) const { return blob_.data() + offsets_[static_cast<std::size_t>(code)]; }
    std::size_t length(std::int32_t code) const {
        const std::size_t at = static_cast<std::size_t>(code);
        return static_cast<std::size_t>(offsets_[at + 1] - offsets_[at]);
    }
    const std::int64_t* offsets() const { return offsets_.data(); }
    const char* blob() const { return blob_.data(); }

private:
    struct Slot {
        std::uint32_t hash;
        std::int32_t code;
    };
    std::size_t place(const char* text, std::size_t length, std::uint32_t hash) const;
    void rehash();

    Array<Slot> slots_;
    Array<std::int64_t> offsets_;
    Array<char> blob_;
};

// A dictionary of texts as they appear in JSON: looked up by their raw spelling, unescaped once per spelling.
class Dictionary {
public:
    std::int32_t code(const char* raw, std::size_t length, bool escaped);
    std::int32_t add_plain(const char* text, std::size_t length) { return texts_.find_or_add(text, length); }
    std::int32_t find_plain(const char* text, std::size_t length) const { return texts_.find(text, length); }
    const TextTable& texts() const { return texts_; }

private:
    TextTable texts_;
    // Spellings with a backslash have a table of their own: the spelling `\n` of a line break is not the text `\n`.
    TextTable spellings_;
    Array<std::int32_t> spelling_codes_;
    Array<char> scratch_;
};

}  // namespace torchdiag
