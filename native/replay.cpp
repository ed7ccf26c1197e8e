// The two loops of a replay that numpy has no words for. Nothing here knows what nodes and edges stand for.

#include "replay.h"

#include <cstddef>
#include <new>
#include <vector>

namespace {

// Whether `first` divides the edges among the nodes.
bool divides(int64_t nodes, const int64_t* first, int64_t edges) {
  if (nodes < 0 || edges < 0 || first[0] != 0 || first[nodes] != edges) return false;
  for (int64_t node = 0; node < nodes; ++node)
    if (first[node] > first[node + 1]) return false;
  return true;
}

bool within(int64_t count, const int64_t* values, int64_t limit) {
  for (int64_t i = 0; i < count; ++i)
    if (values[i] < 0 || values[i] >= limit) return false;
  return true;
}

int64_t sum(int64_t time, int64_t lag) {
  int64_t total;
  if (!__builtin_add_overflow(time, lag, &total)) return total;
  return lag < 0 ? INT64_MIN : INT64_MAX;
}

enum State : uint8_t { FRESH, OPEN, DONE };

}  // namespace

int td_replay_order(int64_t nodes, const int64_t* first, int64_t edges, const int64_t* source, const int64_t* wish,
                    int64_t* order, uint8_t* kept) try {
  if (!divides(nodes, first, edges) || !within(edges, source, nodes) || !within(nodes, wish, nodes))
    return TD_BAD_ARGUMENT;
  // Depth first, into the sources, without recursion: `next` is the edge to look at when a node is on top again.
  std::vector<uint8_t> state(static_cast<std::size_t>(nodes), FRESH);
  std::vector<int64_t> next(first, first + nodes), open;
  int64_t count = 0;
  for (int64_t wished = 0; wished < nodes; ++wished) {
    if (state[wish[wished]] != FRESH) continue;
    open.push_back(wish[wished]);
    state[wish[wished]] = OPEN;
    while (!open.empty()) {
      const int64_t node = open.back();
      if (next[node] == first[node + 1]) {
        state[node] = DONE;
        order[count++] = node;
        open.pop_back();
        continue;
      }
      const int64_t edge = next[node]++, from = source[edge];
      kept[edge] = state[from] != OPEN;
      if (state[from] == FRESH) {
        state[from] = OPEN;
        open.push_back(from);
      }
    }
  }
  return count == nodes ? TD_OK : TD_BAD_ARGUMENT;  // a wish that names a node twice leaves another one out
} catch (const std::bad_alloc&) {
  return TD_NO_MEMORY;
}

int td_replay_times(int64_t nodes, const int64_t* first, int64_t edges, const int64_t* source, const int64_t* lag,
                    const int64_t* floor, int64_t* time) {
  if (!divides(nodes, first, edges)) return TD_BAD_ARGUMENT;
  for (int64_t node = 0; node < nodes; ++node) {
    int64_t latest = floor[node];
    for (int64_t edge = first[node]; edge < first[node + 1]; ++edge) {
      const int64_t from = source[edge];
      if (from < 0 || from >= node) return TD_BAD_ARGUMENT;
      if (lag[edge] == TD_NO_EDGE) continue;
      const int64_t arrival = sum(time[from], lag[edge]);
      if (arrival > latest) latest = arrival;
    }
    time[node] = latest;
  }
  return TD_OK;
}
