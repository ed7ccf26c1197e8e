// The innermost event at every instant of some stretches of one thread's time, and the search for the events that
// matter there. Arrays in, arrays out; what an event is, and which of two that start together is the inner one, the
// caller has decided.

#include "innermost.h"

#include <new>
#include <vector>

namespace {

// The first stretch that ends after `instant`. Events come nearly in order of time, so the last answer is close.
int64_t first_ending_after(int64_t instant, const int64_t* stretch_end, int64_t stretches, int64_t guess) {
  int64_t low = guess, high = guess, leap = 1;
  if (guess < stretches && stretch_end[guess] <= instant) {
    while (high < stretches && stretch_end[high] <= instant) {
      low = high + 1;
      high += leap;
      leap *= 2;
    }
    if (high > stretches) high = stretches;
  } else {
    while (low > 0 && stretch_end[low - 1] > instant) {
      high = low - 1;
      low = low > leap ? low - leap : 0;
      leap *= 2;
    }
  }
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (stretch_end[middle] > instant) high = middle;
    else low = middle + 1;
  }
  return low;
}

}  // namespace

int64_t td_touching(int64_t rows, const uint8_t* kind, const int32_t* track, const int64_t* ts, const int64_t* dur,
                    const uint8_t* kind_wanted, const uint8_t* track_wanted, int64_t stretches,
                    const int64_t* stretch_start, const int64_t* stretch_end, int64_t* found) {
  int64_t count = 0, guess = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (!kind_wanted[kind[row]] || !track_wanted[track[row]] || dur[row] <= 0) continue;
    const int64_t start = ts[row], end = start + dur[row];
    guess = first_ending_after(start, stretch_end, stretches, guess);
    if (guess < stretches && stretch_start[guess] < end) found[count++] = row;
  }
  return count;
}

int64_t td_innermost(int64_t events, const int64_t* row, const int64_t* ts, const int64_t* dur, int64_t stretches,
                     const int64_t* stretch_start, const int64_t* stretch_end, int64_t* piece_start,
                     int64_t* piece_end, int64_t* piece_row, int64_t* piece_stretch) try {
  // Events come in the order in which one hides another, so the innermost is the last begun that has not ended. An
  // ended one may lie below it where events cross; it is dropped when it comes to the top.
  std::vector<int64_t> open;
  int64_t next = 0, pieces = 0;
  for (int64_t stretch = 0; stretch < stretches; ++stretch) {
    int64_t now = stretch_start[stretch];
    const int64_t until = stretch_end[stretch];
    int64_t current = -2;  // no piece of this stretch yet
    while (now < until) {
      for (; next < events && ts[row[next]] <= now; ++next)
        if (ts[row[next]] + dur[row[next]] > now) open.push_back(row[next]);
      while (!open.empty() && ts[open.back()] + dur[open.back()] <= now) open.pop_back();
      const int64_t innermost = open.empty() ? -1 : open.back();
      int64_t change = until;
      if (innermost >= 0 && ts[innermost] + dur[innermost] < change) change = ts[innermost] + dur[innermost];
      if (next < events && ts[row[next]] < change) change = ts[row[next]];
      if (innermost == current) {
        piece_end[pieces - 1] = change;
      } else {
        piece_start[pieces] = now;
        piece_end[pieces] = change;
        piece_row[pieces] = innermost;
        piece_stretch[pieces] = stretch;
        ++pieces;
        current = innermost;
      }
      now = change;
    }
  }
  return pieces;
} catch (const std::bad_alloc&) {
  return -1;
}
