// Which host event is innermost when: the loops that numpy has no words for. Nothing here knows what events mean; the
// caller has decided.

#include "innermost.h"

#include <algorithm>
#include <new>
#include <vector>

#include "leading.hpp"

namespace {

using torchdiag::leading;

// Events of one thread in the order in which one hides another.
struct Thread {
  int64_t events;
  const int64_t* row;
  const int64_t* ts;
  const int64_t* dur;

  int64_t start(int64_t event) const { return ts[row[event]]; }
  int64_t end(int64_t event) const { return ts[row[event]] + dur[row[event]]; }
  int64_t begun(int64_t instant, int64_t guess) const {
    return leading(events, guess, [&](int64_t event) { return start(event) <= instant; });
  }
};

}  // namespace

int64_t td_touching(int64_t rows, const uint8_t* kind, const int32_t* track, const int64_t* ts, const int64_t* dur,
                    const uint8_t* kind_wanted, const uint8_t* track_wanted, int64_t stretches,
                    const int64_t* stretch_start, const int64_t* stretch_end, int64_t* found) {
  int64_t count = 0, guess = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (!kind_wanted[kind[row]] || !track_wanted[track[row]] || dur[row] <= 0) continue;
    const int64_t start = ts[row], end = start + dur[row];
    guess = leading(stretches, guess, [&](int64_t stretch) { return stretch_end[stretch] <= start; });
    if (guess < stretches && stretch_start[guess] < end) found[count++] = row;
  }
  return count;
}

void td_outlasting(int64_t events, const int64_t* row, const int64_t* ts, const int64_t* dur, int32_t* outlasting) {
  const Thread thread{events, row, ts, dur};
  for (int64_t event = 0; event < events; ++event) {
    const int64_t end = thread.end(event);
    int64_t earlier = event - 1;
    while (earlier >= 0 && thread.end(earlier) <= end) earlier = outlasting[earlier];
    outlasting[event] = static_cast<int32_t>(earlier);
  }
}

void td_innermost_at(int64_t events, const int64_t* row, const int64_t* ts, const int64_t* dur,
                     const int32_t* outlasting, int64_t instants, const int64_t* instant, int64_t* found) {
  const Thread thread{events, row, ts, dur};
  int64_t begun = 0;
  for (int64_t question = 0; question < instants; ++question) {
    begun = thread.begun(instant[question], begun);
    int64_t event = begun - 1;
    while (event >= 0 && thread.end(event) <= instant[question]) event = outlasting[event];
    found[question] = event < 0 ? -1 : row[event];
  }
}

int64_t td_innermost(int64_t events, const int64_t* row, const int64_t* ts, const int64_t* dur,
                     const int32_t* outlasting, int64_t stretches, const int64_t* stretch_start,
                     const int64_t* stretch_end, int64_t* piece_start, int64_t* piece_end, int64_t* piece_row,
                     int64_t* piece_stretch) try {
  if (stretches == 0) return 0;
  const Thread thread{events, row, ts, dur};
  // The innermost event is the last begun that has not ended. Of those begun before the first stretch only they can
  // come to light that outlast all that began after them. An ended one may lie below the top where events cross; it is
  // dropped when it comes to the top.
  int64_t next = thread.begun(stretch_start[0], 0), pieces = 0;
  std::vector<int64_t> open;
  for (int64_t event = next - 1; event >= 0; event = outlasting[event]) open.push_back(event);
  std::reverse(open.begin(), open.end());
  for (int64_t stretch = 0; stretch < stretches; ++stretch) {
    int64_t now = stretch_start[stretch];
    const int64_t until = stretch_end[stretch];
    int64_t current = -2;  // no piece of this stretch yet
    while (now < until) {
      for (; next < events && thread.start(next) <= now; ++next)
        if (thread.end(next) > now) open.push_back(next);
      while (!open.empty() && thread.end(open.back()) <= now) open.pop_back();
      const int64_t innermost = open.empty() ? -1 : open.back();
      int64_t change = until;
      if (innermost >= 0 && thread.end(innermost) < change) change = thread.end(innermost);
      if (next < events && thread.start(next) < change) change = thread.start(next);
      if (innermost == current) {
        piece_end[pieces - 1] = change;
      } else {
        piece_start[pieces] = now;
        piece_end[pieces] = change;
        piece_row[pieces] = innermost < 0 ? -1 : row[innermost];
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
