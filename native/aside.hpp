// Reading a stretch of events apart from those before it, and joining what was found to theirs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "array.hpp"
#include "events.hpp"
#include "text.hpp"

namespace torchdiag {

// Texts one behind the other.
struct TextList {
    Array<std::int64_t> ends;
    Array<char> bytes;

    void clear() {
        ends.clear();
        bytes.clear();
    }
    // Adds what `table` has from number `known` on; `known` is then how many it has.
    void add_new(const TextTable& table, std::int32_t& known);

    template <typename Work>
    void each(Work&& work) const {
        std::int64_t start = 0;
        for (std::size_t i = 0; i < ends.size(); ++i) {
            work(bytes.data() + start, static_cast<std::size_t>(ends[i] - start));
            start = ends[i];
        }
    }
};

// A stretch of text, and what a reader with codes of its own found in it.
struct Stretch {
    explicit Stretch(std::size_t argument_count) : columns(argument_count) {}

    const char* start = nullptr;
    const char* end = nullptr;
    std::int64_t offset = 0;  // of `start` in the file

    std::size_t reader = 0;   // which one read it
    bool read = false;        // by then
    bool usable = false;      // what was found can be joined
    bool failed = false;      // there was no memory
    Taken taken{};
    Columns columns;
    Tally tally;
    // What the reader met here for the first time.
    TextList names, categories, texts, identities, event_keys, argument_keys;
    Array<std::int32_t> track_pid, track_tid;
};

// The numbers that the texts and tracks of one reader have among those of all.
struct Codes {
    Array<std::int32_t> names, categories, texts, identities, tracks;
};

// Reads stretches in the order of the text, though others may lie between them.
class Aside final : public Events {
public:
    explicit Aside(int argument_count) : Events(argument_count) {}
    void define_all_of(const Keys& event_keys, const Keys& argument_keys);
    void read(Stretch& stretch);

    Codes codes;  // of what has been joined

private:
    std::int32_t names_known_ = 0, categories_known_ = 0, texts_known_ = 0, identities_known_ = 0;
    std::int32_t event_keys_known_ = 0, argument_keys_known_ = 0;
    std::size_t tracks_known_ = 0;
};

// Appends the columns of a stretch to those of all.
void append(const Columns& from, const Codes& codes, Columns& to);

}  // namespace torchdiag
