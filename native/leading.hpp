// Finding a place in an order by leaps from where the last one was.
#pragma once

#include <cstdint>

namespace torchdiag {

// The number of leading values for which `holds`. Questions come nearly in order, so the last answer is close.
template <typename Holds>
int64_t leading(int64_t size, int64_t guess, Holds holds) {
  int64_t low = guess, high = guess, leap = 1;
  if (guess < size && holds(guess)) {
    while (high < size && holds(high)) {
      low = high + 1;
      high += leap;
      leap *= 2;
    }
    if (high > size) high = size;
  } else {
    while (low > 0 && !holds(low - 1)) {
      high = low - 1;
      low = low > leap ? low - leap : 0;
      leap *= 2;
    }
  }
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

}  // namespace torchdiag
