#include "text.hpp"

#include <cstring>

#include "cursor.hpp"
#include "vector.hpp"

namespace torchdiag {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

void append_utf8(std::uint32_t code, Array<char>& out) {
    char bytes[4];
    std::size_t count = 0;
    if (code < 0x80) {
        bytes[count++] = static_cast<char>(code);
    } else if (code < 0x800) {
        bytes[count++] = static_cast<char>(0xC0 | code >> 6);
    } else if (code < 0x10000) {
        bytes[count++] = static_cast<char>(0xE0 | code >> 12);
        bytes[count++] = static_cast<char>(0x80 | (code >> 6 & 0x3F));
    } else {
        bytes[count++] = static_cast<char>(0xF0 | code >> 18);
        bytes[count++] = static_cast<char>(0x80 | (code >> 12 & 0x3F));
        bytes[count++] = static_cast<char>(0x80 | (code >> 6 & 0x3F));
    }
    if (code >= 0x80) bytes[count++] = static_cast<char>(0x80 | (code & 0x3F));
    out.append(bytes, count);
}

// The four digits after `\u`, already known to be there.
std::uint32_t code_unit(const char* p) {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) unit = unit << 4 | static_cast<std::uint32_t>(hex_value(p[i]));
    return unit;
}

std::uint64_t load(const char* p, std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, count);
    return word;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint32_t hash_of(const char* p, std::size_t length) {
    constexpr std::uint64_t a = 0x9E3779B97F4A7C15U, b = 0xC2B2AE3D27D4EB4FU;
    std::uint64_t hash = length * a;
    std::size_t left = length;
    for (; left > 16; left -= 16, p += 16) hash = mix(load(p, 8) ^ hash ^ a, load(p + 8, 8) ^ b);
    if (left >= 8) {
        // The two loads may overlap: together they cover what is left.
        hash = mix(load(p, 8) ^ hash ^ a, load(p + left - 8, 8) ^ b);
    } else if (left >= 4) {
        hash = mix(load(p, 4) ^ hash ^ a, load(p + left - 4, 4) ^ b);
    } else if (left > 0) {
        hash = mix(load(p, left) ^ hash ^ a, b);
    }
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

int hex_value(char c) {
    if (is_digit(c)) return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

int utf8_length(const char* p, const char* end) {
    const unsigned char lead = static_cast<unsigned char>(*p);
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return -1;
    const int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    for (int i = 1; i < length; ++i) {
        if (p + i >= end) return 0;
        if (!is_continuation(p[i])) return -i;
        if (i > 1) continue;
        // The second byte rules out overlong spellings, surrogates and what lies beyond U+10FFFF.
        const unsigned char second = static_cast<unsigned char>(p[1]);
        if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
            (lead == 0xF4 && second > 0x8F)) {
            return -1;
        }
    }
    return length;
}

const char* string_end(const char* p, const char* end, bool& escaped) {
    escaped = false;
    for (;;) {
        p = find_special(p);
        if (p >= end) return starved();
        if (*p == '"') return p;
        if (*p == '\\') {
            escaped = true;
            if (p + 1 >= end) return starved();
            switch (p[1]) {
                case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
                    p += 2;
                    continue;
                case 'u':
                    for (int i = 2; i < 6; ++i) {
                        if (p + i >= end) return starved();
                        if (hex_value(p[i]) < 0) return bad();
                    }
                    p += 6;
                    continue;
                default:
                    return bad();
            }
        }
        if (static_cast<unsigned char>(*p) < 0x20) return bad();
        const int length = utf8_length(p, end);
        if (length <= 0) return length == 0 ? starved() : bad();
        p += length;
    }
}

void unescape(const char* p, const char* end, Array<char>& out) {
    while (p < end) {
        const void* found = std::memchr(p, '\\', static_cast<std::size_t>(end - p));
        const char* stop = found == nullptr ? end : static_cast<const char*>(found);
        out.append(p, static_cast<std::size_t>(stop - p));
        if (stop == end) return;
        p = stop + 2;
        switch (stop[1]) {
            case 'b': out.push('\b'); break;
            case 'f': out.push('\f'); break;
            case 'n': out.push('\n'); break;
            case 'r': out.push('\r'); break;
            case 't': out.push('\t'); break;
            case 'u': {
                std::uint32_t code = code_unit(p);
                p += 4;
                const bool high = code >= 0xD800 && code < 0xDC00;
                if (high && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
                    const std::uint32_t low = code_unit(p + 2);
                    if (low >= 0xDC00 && low < 0xE000) {
                        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                        p += 6;
                    }
                }
                append_utf8(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code, out);
                break;
            }
            default: out.push(stop[1]);
        }
    }
}

TextTable::TextTable() { offsets_.push(0); }

std::size_t TextTable::place(const char* text, std::size_t length, std::uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
        const Slot slot = slots_[i];
        if (slot.code < 0) return i;
        if (slot.hash != hash) continue;
        const std::int64_t start = offsets_[static_cast<std::size_t>(slot.code)];
        const std::int64_t stop = offsets_[static_cast<std::size_t>(slot.code) + 1];
        if (static_cast<std::size_t>(stop - start) != length) continue;
        // Neither pointer need be one where there are no bytes.
        if (length == 0 || std::memcmp(blob_.data() + start, text, length) == 0) return i;
    }
}

void TextTable::rehash() {
    const std::size_t capacity = slots_.size() < 64 ? 64 : slots_.size() * 2;
    Array<Slot> bigger;
    bigger.reserve(capacity);
    bigger.set_size(capacity);
    for (std::size_t i = 0; i < capacity; ++i) bigger[i] = Slot{0, -1};
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].code < 0) continue;
        std::size_t to = slots_[i].hash & (capacity - 1);
        while (bigger[to].code >= 0) to = (to + 1) & (capacity - 1);
        bigger[to] = slots_[i];
    }
    slots_.swap(bigger);
}

std::int32_t TextTable::find(const char* text, std::size_t length) const {
    if (slots_.size() == 0) return -1;
    return slots_[place(text, length, hash_of(text, length))].code;
}

std::int32_t TextTable::find_or_add(const char* text, std::size_t length) {
    const std::uint32_t hash = hash_of(text, length);
    std::size_t at = 0;
    if (slots_.size() != 0) {
        at = place(text, length, hash);
        if (slots_[at].code >= 0) return slots_[at].code;
    }
    const std::size_t count = offsets_.size() - 1;
    if (count >= INT32_MAX) throw std::bad_alloc();
    if (slots_.size() == 0 || count * 2 >= slots_.size()) {
        rehash();
        at = place(text, length, hash);
    }
    // In this order, so that running out of memory leaves the table as it was.
    offsets_.reserve(offsets_.size() + 1);
    blob_.append(text, length);
    offsets_.push(static_cast<std::int64_t>(blob_.size()));
    slots_[at] = Slot{hash, static_cast<std::int32_t>(count)};
    return static_cast<std::int32_t>(count);
}

std::int32_t Dictionary::code(const char* raw, std::size_t length, bool escaped) {
    if (!escaped) return texts_.find_or_add(raw, length);
    const std::int32_t known = spellings_.find(raw, length);
    if (known >= 0) return spelling_codes_[static_cast<std::size_t>(known)];
    scratch_.clear();
    unescape(raw, raw + length, scratch_);
    const std::int32_t code = texts_.find_or_add(scratch_.data(), scratch_.size());
    spelling_codes_.reserve(spelling_codes_.size() + 1);
    spellings_.find_or_add(raw, length);
    spelling_codes_.push(code);
    return code;
}

}  // namespace torchdiag
