#include "laws.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../cursor.hpp"
#include "../json.hpp"
#include "../lanes.hpp"
#include "../torchdiag.h"

namespace {

struct Key {
    const char* text;
    int kind, column;
};
// One column of each kind, one of them with two spellings.
constexpr Key kKeys[] = {
    {"correlation", TD_INTEGER, 0}, {"External id", TD_INTEGER, 1}, {"external id", TD_INTEGER, 1},
    {"stream", TD_INTEGER, 2},      {"blocks per SM", TD_REAL, 3},  {"grid", TD_TEXT, 4},
    {"Input Dims", TD_TEXT, 5},     {"name", TD_TEXT, 6},
};
constexpr int kColumns = 7;

void require(bool holds, const char* law) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", law);
    std::abort();
}

template <typename T>
void print(std::string& out, const char* name, const td_array& array) {
    out += name;
    const T* values = static_cast<const T*>(array.data);
    for (std::int64_t i = 0; i < array.size; ++i) out += ' ' + std::to_string(values[i]);
    out += '\n';
}

void print_text(std::string& out, const td_array& bytes) {
    out.append(static_cast<const char*>(bytes.data), static_cast<std::size_t>(bytes.size));
    out += '\n';
}

// Everything a scan found, as text.
struct Found {
    std::int64_t rows = 0;
    std::string notes, columns;
};

void print_notes(std::string& out, td_scan* scan, int count) {
    td_note note;
    for (int i = 0; i < count; ++i) {
        require(td_scan_note(scan, i, &note) == TD_OK, "a note can be had");
        out += note.code;
        out += ' ' + std::to_string(note.count) + ' ' + std::to_string(note.first_offset) + '\n';
    }
}

Found scan(const char* text, std::size_t size, std::int64_t block, std::size_t chunk, int threads = 1) {
    td_scan* scan = td_scan_new(kColumns, block, threads);
    require(scan != nullptr, "a scanner can be had");
    for (const Key& key : kKeys) {
        const std::int64_t length = static_cast<std::int64_t>(std::strlen(key.text));
        require(td_scan_key(scan, key.text, length, key.kind, key.column) == TD_OK, "a key can be named");
    }
    for (std::size_t i = 0; i < size; i += chunk) {
        const std::int64_t length = static_cast<std::int64_t>(std::min(chunk, size - i));
        require(td_scan_feed(scan, text + i, length) == TD_OK, "text is taken");
    }
    require(td_scan_finish(scan) == TD_OK, "text ends");
    td_columns columns;
    require(td_scan_columns(scan, &columns) == TD_OK, "columns can be had");
    Found found;
    found.rows = columns.name.size;
    std::string& out = found.columns;
    print<std::int32_t>(out, "name", columns.name);
    print<std::int32_t>(out, "category", columns.category);
    print<std::int32_t>(out, "track", columns.track);
    print<std::uint8_t>(out, "phase", columns.phase);
    print<std::int64_t>(out, "time", columns.time);
    print<std::int64_t>(out, "duration", columns.duration);
    print<std::uint32_t>(out, "flow", columns.flow_id.rows);
    print<std::int64_t>(out, "id", columns.flow_id.values);
    print<std::int32_t>(out, "pid", columns.track_pid);
    print<std::int32_t>(out, "tid", columns.track_tid);
    print<std::int64_t>(out, "documents", columns.document_rows);
    for (const td_texts* texts : {&columns.names, &columns.categories, &columns.texts, &columns.identities}) {
        print<std::int64_t>(out, "offsets", texts->offsets);
        print_text(out, texts->bytes);
    }
    for (int column = 0; column < kColumns; ++column) {
        td_sparse sparse;
        require(td_scan_argument(scan, column, &sparse) == TD_OK, "a column can be had");
        require(sparse.rows.size == sparse.values.size, "a value for each row");
        const std::uint32_t* rows = static_cast<const std::uint32_t*>(sparse.rows.data);
        for (std::int64_t i = 0; i < sparse.rows.size; ++i) {
            require(rows[i] < found.rows && (i == 0 || rows[i - 1] < rows[i]), "rows ascend");
        }
        print<std::uint32_t>(out, "rows", sparse.rows);
        if (column == 3) print<double>(out, "values", sparse.values);
        else if (column > 3) print<std::int32_t>(out, "values", sparse.values);
        else print<std::int64_t>(out, "values", sparse.values);
    }
    td_top_level entry;
    for (int i = 0; i < columns.top_level_count; ++i) {
        require(td_scan_top_level(scan, i, &entry) == TD_OK, "a top-level key can be had");
        out += std::to_string(entry.document) + '\n';
        print_text(out, entry.key);
        print_text(out, entry.value);
    }
    print_notes(found.notes, scan, columns.note_count);
    td_scan_free(scan);
    return found;
}

std::string repair(const char* text, std::size_t size, std::int64_t block, std::size_t chunk,
                   td_repair_report& report) {
    td_repair* repair = td_repair_new(block);
    require(repair != nullptr, "a repairer can be had");
    std::string out;
    td_array piece;
    for (std::size_t i = 0; i < size; i += chunk) {
        const std::int64_t length = static_cast<std::int64_t>(std::min(chunk, size - i));
        require(td_repair_feed(repair, text + i, length) == TD_OK, "text is taken");
        require(td_repair_output(repair, &piece) == TD_OK, "output can be had");
        out.append(static_cast<const char*>(piece.data), static_cast<std::size_t>(piece.size));
    }
    require(td_repair_finish(repair) == TD_OK, "text ends");
    require(td_repair_output(repair, &piece) == TD_OK, "output can be had");
    out.append(static_cast<const char*>(piece.data), static_cast<std::size_t>(piece.size));
    require(td_repair_report_of(repair, &report) == TD_OK, "a report can be had");
    td_repair_free(repair);
    return out;
}

// Oddities that valid JSON may have.
bool harmless(const std::string& notes) {
    std::size_t line = 0;
    while (line < notes.size()) {
        const std::size_t stop = notes.find('\n', line);
        const std::string code = notes.substr(line, notes.find(' ', line) - line);
        const bool fine = code == "string-number" || code == "integer-overflow" || code == "duplicate-key" ||
                          code == "dropped-event";
        if (!fine) return false;
        line = stop + 1;
    }
    return true;
}

}  // namespace

void check_laws(const char* text, std::size_t size, std::int64_t block, std::size_t chunk) {
    const Found whole = scan(text, size, 0, size + 1);
    const Found cut = scan(text, size, block, chunk);
    require(whole.columns == cut.columns, "columns do not depend on how the text was cut");
    require(whole.notes == cut.notes, "notes do not depend on how the text was cut");
    // Stretches so short that there are many of them.
    constexpr int kThreads = 3;
    const std::int64_t stretch = std::clamp<std::int64_t>(static_cast<std::int64_t>(size / 16), 1, block);
    const Found shared = scan(text, size, stretch * torchdiag::kStretchesEach * kThreads, chunk, kThreads);
    require(whole.columns == shared.columns, "columns do not depend on the number of threads");
    require(whole.notes == shared.notes, "notes do not depend on the number of threads");

    td_repair_report report, report_of_cut, second;
    std::string repaired = repair(text, size, 0, size + 1, report);
    const std::string repaired_cut = repair(text, size, block, chunk, report_of_cut);
    require(repaired == repaired_cut, "repairs do not depend on how the text was cut");
    require(report.kept == report_of_cut.kept && report.mended == report_of_cut.mended, "reports do not depend on it");
    if (repaired.empty()) return;
    std::string padded = repaired + std::string(torchdiag::kPadding, '\0');
    const char* end = padded.data() + repaired.size();
    const char* stop = torchdiag::value_end(padded.data(), end, torchdiag::kDepthLimit + 2);
    require(!torchdiag::stopped(stop) && stop + 1 == end, "repairs are valid JSON");
    if (report.found_events == 0) return;  // no trace, which callers refuse
    const Found again = scan(repaired.data(), repaired.size(), 0, repaired.size());
    require(harmless(again.notes), "there is nothing to mend in a repair");
    require(again.rows == whole.rows, "repairs keep every event");
    require(repair(repaired.data(), repaired.size(), 0, repaired.size(), second) == repaired, "repairs are left alone");
}
