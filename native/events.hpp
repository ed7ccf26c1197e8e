// Events to columns.
#pragma once

#include <memory>
#include <vector>

#include "array.hpp"
#include "keys.hpp"
#include "number.hpp"
#include "sink.hpp"
#include "text.hpp"

namespace torchdiag {

// A column that only some events have. Rows ascend.
template <typename T>
struct Sparse {
    Array<std::uint32_t> rows;
    Array<T> values;

    void put(std::uint32_t row, T value) {
        if (rows.size() != 0 && rows.back() == row) {
            values.back() = value;
            return;
        }
        values.reserve(values.size() + 1);
        rows.push(row);
        values.push(value);
    }
    void drop(std::uint32_t row) {
        if (rows.size() == 0 || rows.back() != row) return;
        rows.pop();
        values.pop();
    }
};

// One of `integers`, `reals` and `texts` is in use, as the role says.
struct Argument {
    Role role = Role::ignore;
    Sparse<std::int64_t> integers;
    Sparse<double> reals;
    Sparse<std::int32_t> texts;

    void drop(std::uint32_t row) {
        integers.drop(row);
        reals.drop(row);
        texts.drop(row);
    }
};

// What is known of the events themselves. Texts are codes.
struct Columns {
    explicit Columns(std::size_t argument_count) {
        for (std::size_t i = 0; i < argument_count; ++i) arguments.push_back(std::make_unique<Argument>());
    }

    // Dense columns, one value an event.
    Array<std::int32_t> name, category, track;
    Array<std::uint8_t> phase;
    Array<std::int64_t> time, duration;

    Sparse<std::int64_t> flow_id;
    std::vector<std::unique_ptr<Argument>> arguments;
};

struct TopLevelEntry {
    std::int32_t document;
    std::int64_t key_start, key_end, value_start, value_end;  // places in Events::top_level_text
};

class Events : public Sink {
public:
    explicit Events(int argument_count);
    void add_argument_key(const char* key, std::size_t length, Role role, int column);

    Taken take(const char* p, const char* end, std::int64_t offset) override;
    bool take_mended(const char* text, std::size_t length, std::int64_t offset) override;
    bool take_other(const char*, std::size_t) override { return false; }
    void begin_document(bool) override { document_rows.push(static_cast<std::int64_t>(row_)); }
    void begin_events() override {}
    void top_level(const char* key, std::size_t key_length, const char* value, std::size_t length) override;

    // What is read next goes there, from its first row on; without a call, into `columns`.
    void write_to(Columns& target) {
        to_ = &target;
        row_ = static_cast<std::uint32_t>(target.name.size());
    }

    Columns columns;
    Dictionary names, categories, texts;
    TextTable identities;                     // raw JSON of every pid and tid
    Array<std::int32_t> track_pid, track_tid;  // codes into `identities`, -1 for none
    Array<std::int64_t> document_rows;
    Array<TopLevelEntry> top_level_entries;
    Array<char> top_level_text;

protected:
    std::int32_t track_of(std::int32_t pid, std::int32_t tid);

    Keys event_keys_, argument_keys_;
    std::uint32_t row_ = 0;
    bool odd_ids_ = false;  // some flow ids were no numbers

private:
    struct Event {
        std::int64_t time, duration, id;
        std::int32_t name, category, pid, tid;
        std::uint8_t phase;
        bool is_flow, has_id, has_args;
    };
    // The way from the end of one value to the start of the next.
    struct Hop {
        Key* key = nullptr;
        const char* event_end = nullptr;   // behind the brace that ended the event, if one did
        const char* next_event = nullptr;  // the brace that began another
        bool opened_args = false;
        bool repeatable = true;  // means the same wherever the same bytes come again
    };
    // The last pid or tid: nearly always the next one too.
    struct Memo {
        char bytes[32];
        unsigned length = 0;
        std::int32_t code = -1;
    };

    void begin();
    void commit();
    void roll_back();
    void open_args();
    const Way* familiar_way(const char* p) const;
    void learn(const char* p, const char* next, const Hop& hop);
    const char* hop(const char* p, const char* end, bool opened, Hop& hop);
    const char* read(const char* p, const char* end);
    const char* read_text(const char* p, const char* end, Dictionary& dictionary, std::int32_t& code);
    const char* read_nested(const char* p, const char* end, std::int32_t& code);
    const char* read_phase(const char* p, const char* end);
    const char* read_argument(const char* p, const char* end, Argument& argument);
    const char* read_identity(const char* p, const char* end, Memo& memo, std::int32_t& code);
    const char* read_time(const char* p, const char* end, std::int64_t& value);
    const char* read_id(const char* p, const char* end);
    const char* read_integer(const char* p, const char* end, Sparse<std::int64_t>& column);
    const char* read_real(const char* p, const char* end, Sparse<double>& column);
    void note(Damage kind) { found_.note(kind, offset_ + (event_start_ - text_start_)); }

    Columns* to_ = &columns;
    Key* key_ = nullptr;       // of the value being read
    bool repeated_ = false;    // the event had this key before
    Event event_;
    std::uint64_t objects_ = 0;           // read so far, counting every attempt
    std::uint64_t object_[2] = {0, 0};  // the numbers of the event being read and of its args
    Tally found_;               // in the event being read
    const char* event_start_ = nullptr;
    const char* text_start_ = nullptr;
    std::int64_t offset_ = 0;  // of text_start_
    Memo pid_memo_, tid_memo_;
    Array<char> scratch_;
    TextTable tracks_;
    std::int32_t last_track_ = -1;
};

}  // namespace torchdiag
