/* Looking up many values in ascending ones: plain C, arrays in, arrays out. Questions come in any order, best nearly
   ascending: each search begins where the last one ended. */
#ifndef TORCHDIAG_LOOKUP_H
#define TORCHDIAG_LOOKUP_H

#include "torchdiag.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* For each wanted value how many of the ascending keys are less than it. place: room for `wanted_count` values. */
TD_API void td_places(int64_t keys, const int64_t* key, int64_t wanted_count, const int64_t* wanted, int64_t* place);

/* The values of a sparse column (ascending rows, each with a value of `width` bytes, 4 or 8) at some rows, and
   `missing`, a value too, where it has none. found: room for `wanted_count` values. */
TD_API void td_values_at(int64_t rows, const uint32_t* row, const void* value, int32_t width, int64_t wanted_count,
                         const int64_t* wanted, const void* missing, void* found);

/* The kind of each event by its category, 0 for one that is not of phase `complete` or lacks a start or an end not before
   it (INT64_MIN stands for none). category_kind: a kind for -1 (no category), then one for each category.
   kind: room for `rows` values. */
TD_API void td_kinds(int64_t rows, const int32_t* category, const uint8_t* phase, const int64_t* ts, const int64_t* dur,
                     const uint8_t* category_kind, uint8_t complete, uint8_t* kind);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
