/* The innermost host event at every instant of some stretches of time: plain C, arrays in, arrays out. */
#ifndef TORCHDIAG_INNERMOST_H
#define TORCHDIAG_INNERMOST_H

#include "torchdiag.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Rows whose event overlaps one of the stretches (disjoint, ascending), on a wanted track and of a wanted kind.
   kind, track, ts, dur: columns of `rows` values. kind_wanted, track_wanted: 0 or 1 for each kind (256) and track.
   found: room for `rows` values. Returns how many were found, ascending. */
TD_API int64_t td_touching(int64_t rows, const uint8_t* kind, const int32_t* track, const int64_t* ts, const int64_t* dur,
                    const uint8_t* kind_wanted, const uint8_t* track_wanted, int64_t stretches,
                    const int64_t* stretch_start, const int64_t* stretch_end, int64_t* found);

/* For each event of one thread the number of the nearest earlier one that ends later, -1 where none does.
   row: events of one thread (less than 2^31), by start, and of those that start together the inner one later. ts, dur:
   whole columns, every duration positive. outlasting: room for `events` values. */
TD_API void td_outlasting(int64_t events, const int64_t* row, const int64_t* ts, const int64_t* dur,
                          int32_t* outlasting);

/* The row of the innermost event at each instant, -1 where no event covers it. row, ts, dur, outlasting: as above.
   Instants come in any order, best in that of time. found: room for `instants` values. */
TD_API void td_innermost_at(int64_t events, const int64_t* row, const int64_t* ts, const int64_t* dur,
                            const int32_t* outlasting, int64_t instants, const int64_t* instant, int64_t* found);

/* Cuts stretches (disjoint, ascending, not empty) into pieces with one innermost event each.
   row, ts, dur, outlasting: as above. piece_row is a row, or -1 where no event covers the piece. Neighbouring pieces
   of one stretch differ in row. Room for 2 * events + stretches pieces. Returns the number of pieces, -1 when memory
   runs out. */
TD_API int64_t td_innermost(int64_t events, const int64_t* row, const int64_t* ts, const int64_t* dur,
                            const int32_t* outlasting, int64_t stretches, const int64_t* stretch_start,
                            const int64_t* stretch_end, int64_t* piece_start, int64_t* piece_end, int64_t* piece_row,
                            int64_t* piece_stretch);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
