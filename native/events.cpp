#include "events.hpp"

#include <cstring>

#include "cursor.hpp"
#include "json.hpp"
#include "vector.hpp"

namespace torchdiag {

Events::Events(int argument_count)
    : columns(static_cast<std::size_t>(argument_count)), event_keys_(false), argument_keys_(true) {
    const auto define = [this](const char* key, Role role) { event_keys_.define(key, std::strlen(key), role, -1); };
    define("ph", Role::phase);
    define("cat", Role::category);
    define("name", Role::name);
    define("pid", Role::pid);
    define("tid", Role::tid);
    define("ts", Role::time);
    define("dur", Role::duration);
    define("id", Role::id);
    define("args", Role::args);
    define("traceEvents", Role::events);
}

void Events::add_argument_key(const char* key, std::size_t length, Role role, int column) {
    columns.arguments[static_cast<std::size_t>(column)]->role = role;
    argument_keys_.define(key, length, role, column);
}

Taken Events::take(const char* p, const char* end, std::int64_t offset) {
    text_start_ = p;
    offset_ = offset;
    begin();
    event_start_ = p;
    // From here on p is the end of a value (at first: the brace) and `key_` the key it belongs to.
    Hop general;
    const char* next = hop(p + 1, end, true, general);
    for (;;) {
        if (general.event_end != nullptr) {
            commit();
            if (stopped(next)) return {general.event_end, Taken::done};
            begin();
            event_start_ = general.next_event;
        } else if (stopped(next)) {
            roll_back();
            return {event_start_, next == bad() ? Taken::invalid : Taken::unfinished};
        }
        if (general.opened_args) open_args();
        key_ = general.key;
        p = next;
        for (;;) {
            repeated_ = key_->object == object_[key_->in_args] && !key_->shared;
            if (repeated_) note(Damage::duplicate_key);
            key_->object = object_[key_->in_args];
            const char* stop = read(p, end);
            if (stopped(stop)) {
                roll_back();
                return {event_start_, stop == bad() ? Taken::invalid : Taken::unfinished};
            }
            p = stop;
            const Way* known = familiar_way(p);
            if (known == nullptr) break;
            if (known->event_end != 0) {
                commit();
                begin();
                event_start_ = p + known->next_event;
            }
            if (known->opened_args) open_args();
            key_ = known->next;
            p += known->length;
        }
        general = Hop();
        next = hop(p, end, false, general);
        if (!stopped(next) && general.repeatable) learn(p, next, general);
    }
}

const Way* Events::familiar_way(const char* p) const {
    Key& key = *key_;
    for (unsigned i = 0; i < key.way_count; ++i) {
        // The way taken last first, then the others.
        const unsigned at = i == 0 ? key.likely : i <= key.likely ? i - 1 : i;
        const Way& way = key.ways[at];
        // More white space than last time would be taken for the value.
        if (equal_padded(p, way.bytes, way.length) && !is_space(p[way.length])) {
            key.likely = static_cast<std::uint8_t>(at);
            return &way;
        }
    }
    return nullptr;
}

void Events::learn(const char* p, const char* next, const Hop& hop) {
    const std::size_t length = static_cast<std::size_t>(next - p);
    if (length > Way::kLongest) return;
    Way& way = key_->new_way();
    std::memset(way.bytes, 0, sizeof way.bytes);
    std::memcpy(way.bytes, p, length);
    way.length = static_cast<std::uint8_t>(length);
    way.next = hop.key;
    way.event_end = static_cast<std::uint8_t>(hop.event_end == nullptr ? 0 : hop.event_end - p);
    way.next_event = static_cast<std::uint8_t>(hop.event_end == nullptr ? 0 : hop.next_event - p);
    way.opened_args = hop.opened_args;
}

// From the end of a value (`opened`: from behind a brace) to the start of the next value, by the rules of JSON.
const char* Events::hop(const char* p, const char* end, bool opened, Hop& hop) {
    bool in_args = !opened && key_->in_args;
    for (;;) {
        p = skip_space(p);
        if (p >= end) return starved();
        if (*p == '}') {
            ++p;
            opened = false;
            if (in_args) {
                in_args = false;
                continue;
            }
            if (hop.event_end != nullptr) return bad();  // the next event is empty: leave it to the next call
            hop.event_end = p;
            if (hop.opened_args) {
                open_args();
                hop.opened_args = hop.repeatable = false;
            }
            p = skip_space(p);
            if (p >= end || *p != ',') return starved();
            p = skip_space(p + 1);
            if (p >= end || *p != '{') return starved();
            hop.next_event = p++;
            opened = true;
            continue;
        }
        if (*p == ',' && !opened) {
            p = skip_space(p + 1);
            if (p >= end) return starved();
        } else if (!opened) {
            return bad();
        }
        opened = false;
        if (*p != '"') return bad();
        bool escaped;
        const char* quote = string_end(p + 1, end, escaped);
        if (stopped(quote)) return quote;
        Keys& keys = in_args ? argument_keys_ : event_keys_;
        Key* key = keys.find(p + 1, static_cast<std::size_t>(quote - p - 1), escaped);
        p = skip_space(quote + 1);
        if (p >= end) return starved();
        if (*p != ':') return bad();
        p = skip_space(p + 1);
        if (p >= end) return starved();
        // The list of another document inside an event: this one has lost its end.
        if (key->role == Role::events && !escaped) return bad();
        if (key->role == Role::args && *p == '{') {
            if (hop.opened_args) {
                if (hop.event_end != nullptr) return bad();  // not of this event: leave it to the next call
                open_args();
                hop.repeatable = false;
            }
            hop.opened_args = true;
            in_args = opened = true;
            ++p;
            continue;
        }
        // No object this time; the next time one may follow the same bytes.
        if (key->role == Role::args) hop.repeatable = false;
        hop.key = key;
        return p;
    }
}

void Events::begin() {
    object_[0] = ++objects_;
    event_ = Event{kMissing, kMissing, 0, -1, -1, -1, -1, 0, false, false, false};
    if (!found_.empty) found_ = Tally();
}

void Events::commit() {
    // All the space is found before any column grows, so that they stay of one length when there is none.
    Columns& to = *to_;
    to.name.reserve(row_ + std::size_t{1});
    to.category.reserve(row_ + std::size_t{1});
    to.track.reserve(row_ + std::size_t{1});
    to.phase.reserve(row_ + std::size_t{1});
    to.time.reserve(row_ + std::size_t{1});
    to.duration.reserve(row_ + std::size_t{1});
    if (row_ == UINT32_MAX) throw std::bad_alloc();
    const std::int32_t place = track_of(event_.pid, event_.tid);
    if (event_.is_flow && event_.has_id) to.flow_id.put(row_, event_.id);
    to.name.push(event_.name);
    to.category.push(event_.category);
    to.track.push(place);
    to.phase.push(event_.phase);
    to.time.push(event_.time);
    to.duration.push(event_.duration);
    if (!found_.empty) tally.add(found_);
    ++row_;
}

void Events::roll_back() {
    for (auto& argument : to_->arguments) argument->drop(row_);
}

// The last `args` of an event counts.
void Events::open_args() {
    if (event_.has_args) {
        note(Damage::duplicate_key);
        roll_back();
    }
    event_.has_args = true;
    object_[1] = ++objects_;
}

std::int32_t Events::track_of(std::int32_t pid, std::int32_t tid) {
    if (last_track_ >= 0) {
        const std::size_t last = static_cast<std::size_t>(last_track_);
        if (track_pid[last] == pid && track_tid[last] == tid) return last_track_;
    }
    const std::int32_t pair[2] = {pid, tid};
    char bytes[sizeof pair];
    std::memcpy(bytes, pair, sizeof pair);
    track_pid.reserve(track_pid.size() + 1);
    track_tid.reserve(track_tid.size() + 1);
    last_track_ = tracks_.find_or_add(bytes, sizeof bytes);
    if (static_cast<std::size_t>(last_track_) == track_pid.size()) {
        track_pid.push(pid);
        track_tid.push(tid);
    }
    return last_track_;
}

bool Events::take_mended(const char* text, std::size_t length, std::int64_t offset) {
    const Taken taken = Events::take(text, text + length, offset);
    return taken.outcome == Taken::done;
}

void Events::top_level(const char* key, std::size_t key_length, const char* value, std::size_t length) {
    if (key_length == 11 && std::memcmp(key, "traceEvents", 11) == 0) return;
    TopLevelEntry entry;
    top_level_entries.reserve(top_level_entries.size() + 1);
    entry.document = static_cast<std::int32_t>(document_rows.size()) - 1;
    entry.key_start = static_cast<std::int64_t>(top_level_text.size());
    unescape(key, key + key_length, top_level_text);
    entry.key_end = entry.value_start = static_cast<std::int64_t>(top_level_text.size());
    top_level_text.append(value, length);
    entry.value_end = static_cast<std::int64_t>(top_level_text.size());
    top_level_entries.push(entry);
}

}  // namespace torchdiag
