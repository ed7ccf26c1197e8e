// Looking up values that come nearly in order, where a binary search from the middle would miss the cache every time.
#include "lookup.h"

#include "leading.hpp"

namespace {

template <typename Value>
void values_at(int64_t rows, const uint32_t* row, const Value* value, int64_t wanted_count, const int64_t* wanted,
               Value missing, Value* found) {
  int64_t place = 0;
  for (int64_t i = 0; i < wanted_count; ++i) {
    place = torchdiag::leading(rows, place, [&](int64_t at) { return row[at] < wanted[i]; });
    found[i] = place < rows && row[place] == wanted[i] ? value[place] : missing;
  }
}

}  // namespace

void td_places(int64_t keys, const int64_t* key, int64_t wanted_count, const int64_t* wanted, int64_t* place) {
  int64_t guess = 0;
  for (int64_t i = 0; i < wanted_count; ++i) {
    guess = torchdiag::leading(keys, guess, [&](int64_t at) { return key[at] < wanted[i]; });
    place[i] = guess;
  }
}

void td_values_at(int64_t rows, const uint32_t* row, const void* value, int32_t width, int64_t wanted_count,
                  const int64_t* wanted, const void* missing, void* found) {
  if (width == 4) {
    values_at(rows, row, static_cast<const int32_t*>(value), wanted_count, wanted,
              *static_cast<const int32_t*>(missing), static_cast<int32_t*>(found));
  } else {
    values_at(rows, row, static_cast<const int64_t*>(value), wanted_count, wanted,
              *static_cast<const int64_t*>(missing), static_cast<int64_t*>(found));
  }
}

void td_kinds(int64_t rows, const int32_t* category, const uint8_t* phase, const int64_t* ts, const int64_t* dur,
              const uint8_t* category_kind, uint8_t complete, uint8_t* kind) {
  for (int64_t row = 0; row < rows; ++row) {
    const bool usable = phase[row] == complete && dur[row] >= 0 && ts[row] != INT64_MIN;
    kind[row] = usable ? category_kind[category[row] + 1] : 0;
  }
}
