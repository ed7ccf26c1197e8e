// The keys of events, and what has been seen between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "text.hpp"

namespace torchdiag {

// What becomes of a key's value.
enum class Role : std::uint8_t {
    ignore, integer, real, text,                                        // arguments
    phase, category, name, pid, tid, time, duration, id, args, events,  // events
};

struct Key;

// Exporters write the same bytes between two keys again and again: closing quotes, commas, white space, brackets and
// the next key with its colon. A key remembers what followed its values, so that a repeat costs a comparison.
struct Way {
    static constexpr unsigned kLongest = 64;  // a multiple of 16, at most kPadding

    char bytes[kLongest];
    Key* next;
    std::uint8_t length;
    std::uint8_t event_end;   // where in `bytes` the event ended, 0 if it did not
    std::uint8_t next_event;  // where the next one began
    bool opened_args;
};

struct Key {
    static constexpr unsigned kWays = 4;

    Role role;
    bool in_args;
    bool shared = false;       // stands for all keys that are too many to remember
    std::uint8_t way_count = 0;
    std::uint8_t likely = 0;   // the way taken last
    std::uint8_t oldest = 0;   // the way to forget next
    std::int32_t column;
    std::uint64_t object = 0;  // the last object that had this key
    Way ways[kWays];

    Way& new_way() {
        if (way_count < kWays) return ways[likely = way_count++];
        likely = oldest;
        oldest = static_cast<std::uint8_t>((oldest + 1) % kWays);
        return ways[likely];
    }
};

// The keys of one level, found by their raw spelling.
class Keys {
public:
    explicit Keys(bool in_args) : in_args_(in_args) { add_key(Role::ignore, -1).shared = true; }
    void define(const char* text, std::size_t length, Role role, std::int32_t column);
    void define_all_of(const Keys& other);
    Key* find(const char* raw, std::size_t length, bool escaped);

    const TextTable& spellings() const { return spellings_; }
    // Whether this many more spellings may be met before some have to share a key.
    bool has_room_for(std::size_t more) const { return keys_.size() + more < kMost; }

private:
    // Files that make up keys endlessly share one key from then on.
    static constexpr std::size_t kMost = 4096;

    Key& add_key(Role role, std::int32_t column) {
        keys_.emplace_back();
        Key& key = keys_.back();
        key.role = role;
        key.in_args = in_args_;
        key.column = column;
        return key;
    }

    const bool in_args_;
    TextTable known_;       // unescaped
    TextTable spellings_;   // raw; a key has as many Key objects as spellings
    std::deque<Key> keys_;  // the first is the shared one
    Array<Key*> by_spelling_;
    Array<std::int32_t> columns_;
    Array<Role> roles_;
    Array<char> scratch_;
};

}  // namespace torchdiag
