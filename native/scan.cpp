// The C interface of the reader into columns.
#include <new>
#include <utility>

#include "document.hpp"
#include "guard.hpp"
#include "lanes.hpp"
#include "torchdiag.h"

using namespace torchdiag;

struct td_scan {
    td_scan(int argument_count, std::size_t block, int threads)
        : events(argument_count, threads, block / kStretchesEach / static_cast<std::size_t>(threads)),
          document(events, block) {}

    Lanes events;
    Document document;
    int failed = TD_OK;
};

namespace {

// What a block holds for each thread. Where threads stop and wait for each other, they should have done something.
constexpr std::size_t kGoodShare = std::size_t{2} << 20;

template <typename T>
td_array array_of(const Array<T>& array) {
    return {array.data(), static_cast<int64_t>(array.size())};
}

template <typename T>
td_sparse sparse_of(const Sparse<T>& sparse) {
    return {array_of(sparse.rows), array_of(sparse.values)};
}

td_texts texts_of(const TextTable& table) {
    return {{table.offsets(), int64_t{table.size()} + 1}, {table.blob(), table.offsets()[table.size()]}};
}

}  // namespace

td_scan* td_scan_new(int32_t argument_count, int64_t block, int32_t threads) {
    if (argument_count < 0 || block < 0 || threads < 1) return nullptr;
    td_scan* scan = nullptr;
    const std::size_t good = threads == 1 ? kGoodBlock : kGoodShare * static_cast<std::size_t>(threads);
    guarded([&] { scan = new td_scan(argument_count, block == 0 ? good : static_cast<std::size_t>(block), threads); });
    return scan;
}

int td_scan_key(td_scan* scan, const char* key, int64_t length, int32_t kind, int32_t column) {
    if (column < 0 || static_cast<std::size_t>(column) >= scan->events.columns.arguments.size() || length < 0) {
        return TD_BAD_ARGUMENT;
    }
    const Role role = kind == TD_INTEGER ? Role::integer : kind == TD_REAL ? Role::real : Role::text;
    return guarded([&] { scan->events.add_argument_key(key, static_cast<std::size_t>(length), role, column); });
}

int td_scan_feed(td_scan* scan, const void* bytes, int64_t length) {
    if (scan->failed == TD_OK && length > 0) {
        scan->failed = guarded(
            [&] { scan->document.feed(static_cast<const char*>(bytes), static_cast<std::size_t>(length)); });
    }
    return scan->failed;
}

int td_scan_finish(td_scan* scan) {
    if (scan->failed == TD_OK) scan->failed = guarded([&] { scan->document.finish(); });
    return scan->failed;
}

int td_scan_columns(const td_scan* scan, td_columns* columns) {
    if (scan->failed != TD_OK) return scan->failed;
    const Events& events = scan->events;
    columns->name = array_of(events.columns.name);
    columns->category = array_of(events.columns.category);
    columns->track = array_of(events.columns.track);
    columns->phase = array_of(events.columns.phase);
    columns->time = array_of(events.columns.time);
    columns->duration = array_of(events.columns.duration);
    columns->flow_id = sparse_of(events.columns.flow_id);
    columns->names = texts_of(events.names.texts());
    columns->categories = texts_of(events.categories.texts());
    columns->texts = texts_of(events.texts.texts());
    columns->identities = texts_of(events.identities);
    columns->track_pid = array_of(events.track_pid);
    columns->track_tid = array_of(events.track_tid);
    columns->document_rows = array_of(events.document_rows);
    columns->note_count = notes_in(events.tally);
    columns->top_level_count = static_cast<int32_t>(events.top_level_entries.size());
    columns->found_events = scan->document.found_events() ? 1 : 0;
    return TD_OK;
}

int td_scan_argument(const td_scan* scan, int32_t column, td_sparse* sparse) {
    if (scan->failed != TD_OK) return scan->failed;
    if (column < 0 || static_cast<std::size_t>(column) >= scan->events.columns.arguments.size()) return TD_BAD_ARGUMENT;
    const Argument& argument = *scan->events.columns.arguments[static_cast<std::size_t>(column)];
    *sparse = argument.role == Role::integer ? sparse_of(argument.integers)
              : argument.role == Role::real  ? sparse_of(argument.reals)
                                             : sparse_of(argument.texts);
    return TD_OK;
}

int td_scan_note(const td_scan* scan, int32_t index, td_note* note) { return note_at(scan->events.tally, index, note); }

int td_scan_top_level(const td_scan* scan, int32_t index, td_top_level* entry) {
    const Events& events = scan->events;
    if (index < 0 || static_cast<std::size_t>(index) >= events.top_level_entries.size()) return TD_BAD_ARGUMENT;
    const TopLevelEntry& found = events.top_level_entries[static_cast<std::size_t>(index)];
    const char* text = events.top_level_text.data();
    *entry = {found.document,
              {text + found.key_start, found.key_end - found.key_start},
              {text + found.value_start, found.value_end - found.value_start}};
    return TD_OK;
}

void td_scan_free(td_scan* scan) { delete scan; }
