/* A graph of instants that wait for one another, and when each comes: plain C, arrays in, arrays out.
   Nodes are numbers from 0. The edges into node i are first[i] up to first[i + 1]; `first` has nodes + 1 values, from 0
   to `edges`, none smaller than the one before. Functions return TD_OK, TD_NO_MEMORY or TD_BAD_ARGUMENT. */
#ifndef TORCHDIAG_REPLAY_H
#define TORCHDIAG_REPLAY_H

#include "torchdiag.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A lag of an edge that does not count. */
#define TD_NO_EDGE INT64_MIN

/* The nodes in an order in which every node comes after the sources of its edges, and otherwise as near to `wish` (a
   permutation of the nodes) as that allows. Where edges run in a circle one of them is left out.
   source: a node for each edge. order: room for `nodes` values. kept: room for `edges` values, 0 for an edge that was
   left out, else 1. */
TD_API int td_replay_order(int64_t nodes, const int64_t* first, int64_t edges, const int64_t* source,
                           const int64_t* wish, int64_t* order, uint8_t* kept);

/* When each node comes: the latest of its floor and, over its edges, time[source] + lag. Every source is a smaller
   number than its node. Sums beyond 64 bits become the largest or the smallest number.
   floor: a value for each node. time: room for `nodes` values. */
TD_API int td_replay_times(int64_t nodes, const int64_t* first, int64_t edges, const int64_t* source,
                           const int64_t* lag, const int64_t* floor, int64_t* time);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
