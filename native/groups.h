/* Rows that are equal in several columns: plain C, arrays in, arrays out. */
#ifndef TORCHDIAG_GROUPS_H
#define TORCHDIAG_GROUPS_H

#include "torchdiag.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Numbers the groups of rows that are equal in all columns, in the order of their first rows.
   column: `columns` pointers to `rows` values each. group: room for `rows` values, the number of each row's group.
   first: room for `rows` values, the first row of each group. Returns the number of groups, -1 when memory runs out. */
TD_API int64_t td_groups(int64_t rows, int32_t columns, const int32_t* const* column, int64_t* group, int64_t* first);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
