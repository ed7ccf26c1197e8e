#include "echo.hpp"

#include <cstring>

#include "cursor.hpp"
#include "json.hpp"
#include "vector.hpp"

namespace torchdiag {

namespace {

constexpr char kEvents[] = "traceEvents";
constexpr std::size_t kEventsLength = sizeof kEvents - 1;

}  // namespace

void Echo::write(const char* text) { output.append(text, std::strlen(text)); }

void Echo::write_element(const char* text, std::size_t length) {
    write(first_element_ ? "\n" : ",\n");
    output.append(text, length);
    first_element_ = false;
}

void Echo::write_pair(Array<char>& to, bool& first, const char* key, std::size_t key_length, const char* value,
                      std::size_t length) {
    to.append(first ? "\n\"" : ",\n\"", first ? 2 : 3);
    to.append(key, key_length);
    to.append("\": ", 3);
    to.append(value, length);
    first = false;
}

Taken Echo::take(const char* p, const char* end, std::int64_t) {
    for (;;) {
        const char* stop = value_end(p, end);
        if (stopped(stop)) return {p, stop == bad() ? Taken::invalid : Taken::unfinished};
        // The list of another document: this event has lost its end.
        if (has_key(p, stop, kEvents)) return {p, Taken::invalid};
        write_element(p, static_cast<std::size_t>(stop - p));
        ++kept;
        const char* next = skip_space(stop);
        if (next < end && *next == ',') next = skip_space(next + 1);
        else return {stop, Taken::done};
        if (next >= end || *next != '{') return {stop, Taken::done};
        p = next;
    }
}

bool Echo::take_mended(const char* text, std::size_t length, std::int64_t) {
    write_element(text, length);
    ++mended;
    return true;
}

bool Echo::take_other(const char* text, std::size_t length) {
    write_element(text, length);
    ++kept;
    return true;
}

void Echo::begin_document(bool array) {
    if (documents_++ == 0) {
        bare_ = array;
        write(bare_ ? "[" : "{");
    }
    keys_before_ = keys_.size();
}

void Echo::begin_events() {
    if (events_open_) return;
    events_open_ = true;
    if (bare_) return;
    write(first_pair_ ? "\n\"traceEvents\": [" : ",\n\"traceEvents\": [");
    first_pair_ = false;
}

void Echo::top_level(const char* key, std::size_t key_length, const char* value, std::size_t length) {
    if (bare_) return;
    if (key_length == kEventsLength && std::memcmp(key, kEvents, kEventsLength) == 0) {
        no_list_.clear();
        no_list_.append(value, length);
        return;
    }
    const std::int32_t known = keys_.find_or_add(key, key_length);
    if (known < keys_before_) return;
    if (events_open_) {
        write_pair(late_, first_late_, key, key_length, value, length);
    } else {
        write_pair(output, first_pair_, key, key_length, value, length);
    }
}

void Echo::finish() {
    if (documents_ == 0) return;
    if (bare_ || events_open_) write("\n]");
    if (!bare_) {
        if (!events_open_ && no_list_.size() != 0) {
            write_pair(output, first_pair_, kEvents, kEventsLength, no_list_.data(), no_list_.size());
        }
        if (late_.size() != 0) write(",");
        output.append(late_.data(), late_.size());
        write("\n}");
    }
    write("\n");
}

}  // namespace torchdiag
