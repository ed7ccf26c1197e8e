// The kinds of damage, and how often each was met.
#pragma once

#include <cstdint>

namespace torchdiag {

enum class Damage : std::uint8_t {
    truncated_json,
    dropped_event,
    damaged_header,
    damaged_metadata,
    stray_text,
    trailing_garbage,
    several_documents,
    bad_escape,
    unescaped_quote,
    control_character,
    bad_utf8,
    bare_word,
    bad_number,
    trailing_comma,
    missing_comma,
    missing_quote,
    missing_bracket,
    deep_nesting,
    string_number,
    integer_overflow,
    duplicate_key,
    count,
};

constexpr int kDamageKinds = static_cast<int>(Damage::count);

// The stable code of a kind, as users see it.
const char* damage_code(Damage kind);

struct Tally {
    std::int64_t counts[kDamageKinds] = {};
    std::int64_t first_offsets[kDamageKinds] = {};
    bool empty = true;

    void note(Damage kind, std::int64_t offset) {
        const int i = static_cast<int>(kind);
        if (counts[i]++ == 0 || offset < first_offsets[i]) first_offsets[i] = offset;
        empty = false;
    }
    void add(const Tally& other) {
        for (int i = 0; i < kDamageKinds; ++i) {
            if (other.counts[i] == 0) continue;
            if (counts[i] == 0 || other.first_offsets[i] < first_offsets[i]) first_offsets[i] = other.first_offsets[i];
            counts[i] += other.counts[i];
        }
        empty = empty && other.empty;
    }
};

}  // namespace torchdiag
