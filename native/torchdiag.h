/* The native part of torchdiag behind a plain C interface.
 *
 * Functions return 0 or one of the codes below and never throw. A reader that has failed stays failed. Pointers handed
 * out stay valid until the reader is freed, those of td_repair_output until the next call on the same reader.
 */
#ifndef TORCHDIAG_H
#define TORCHDIAG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TD_API __attribute__((visibility("default")))

enum { TD_OK = 0, TD_NO_MEMORY = 1, TD_BAD_ARGUMENT = 2 };

/* How an argument is read. */
enum { TD_INTEGER = 0, TD_REAL = 1, TD_TEXT = 2 };

/* An array of `size` values. */
typedef struct {
    const void* data;
    int64_t size;
} td_array;

/* What some rows have: uint32 rows, ascending, and for each an int64, double or int32 (TD_TEXT). */
typedef struct {
    td_array rows;
    td_array values;
} td_sparse;

/* Distinct texts: text i is bytes[offsets[i]] to bytes[offsets[i + 1]] (int64 offsets, one more than texts). */
typedef struct {
    td_array offsets;
    td_array bytes;
} td_texts;

/* One kind of damage: a stable code, how often, and the place in the text where it was first met. */
typedef struct {
    const char* code;
    int64_t count;
    int64_t first_offset;
} td_note;

/* A top-level key (unescaped) and the JSON text of its value. */
typedef struct {
    int32_t document;
    td_array key;
    td_array value;
} td_top_level;

/* Everything but the arguments. */
typedef struct {
    td_array name;           /* int32: code into names, -1 for none */
    td_array category;       /* int32: code into categories, -1 for none */
    td_array track;          /* int32: index into track_pid and track_tid */
    td_array phase;          /* uint8: a character, 0 for none */
    td_array time;           /* int64: nanoseconds, INT64_MIN for none */
    td_array duration;       /* int64: nanoseconds, INT64_MIN for none */
    td_sparse flow_id;       /* int64; an id that is no number is INT64_MIN + 1 + its number among such ids */
    td_texts names;
    td_texts categories;
    td_texts texts;
    td_texts identities;     /* JSON text of pids and tids */
    td_array track_pid;      /* int32: code into identities, -1 for none */
    td_array track_tid;
    td_array document_rows;  /* int64: first row of each document */
    int32_t note_count;
    int32_t top_level_count;
    int32_t found_events;    /* 1 when any document had a list of events */
} td_columns;

typedef struct td_scan td_scan;

/* A reader of traces into columns. `block` is how many bytes are gathered before they are looked at (0: a good size),
 * `threads` how many threads look at them, the calling one included; results depend on neither. NULL when there is no
 * memory. */
TD_API td_scan* td_scan_new(int32_t argument_count, int64_t block, int32_t threads);
/* Names a key of `args` whose values go to argument column `column`; several keys may share one. Before any feed. */
TD_API int td_scan_key(td_scan* scan, const char* key, int64_t length, int32_t kind, int32_t column);
TD_API int td_scan_feed(td_scan* scan, const void* bytes, int64_t length);
TD_API int td_scan_finish(td_scan* scan);
TD_API int td_scan_columns(const td_scan* scan, td_columns* columns);
TD_API int td_scan_argument(const td_scan* scan, int32_t column, td_sparse* sparse);
TD_API int td_scan_note(const td_scan* scan, int32_t index, td_note* note);
TD_API int td_scan_top_level(const td_scan* scan, int32_t index, td_top_level* entry);
TD_API void td_scan_free(td_scan* scan);

/* How many events were copied as they were, changed, and given up. */
typedef struct {
    int64_t kept;
    int64_t mended;
    int64_t dropped;
    int32_t note_count;
    int32_t found_events;
} td_repair_report;

typedef struct td_repair td_repair;

/* A reader that writes what it reads as one valid JSON document. */
TD_API td_repair* td_repair_new(int64_t block);
TD_API int td_repair_feed(td_repair* repair, const void* bytes, int64_t length);
TD_API int td_repair_finish(td_repair* repair);
/* What has been written since the last call of feed or finish. */
TD_API int td_repair_output(const td_repair* repair, td_array* output);
TD_API int td_repair_report_of(const td_repair* repair, td_repair_report* report);
TD_API int td_repair_note(const td_repair* repair, int32_t index, td_note* note);
TD_API void td_repair_free(td_repair* repair);

#ifdef __cplusplus
}
#endif

#endif
