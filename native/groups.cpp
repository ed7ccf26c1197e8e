// Which rows are equal in all of several columns: a table of the groups met so far, looked up by a hash of the values.
#include "groups.h"

#include <new>
#include <vector>

namespace {

class Groups {
public:
  Groups(int32_t columns, const int32_t* const* column, int64_t* first)
      : columns_(columns), column_(column), first_(first), slots_(1024, -1) {}

  int64_t count() const { return count_; }

  int64_t of(int64_t row) {
    // Rows that follow one another are often alike.
    if (last_ >= 0 && equal(row, first_[last_])) return last_;
    uint64_t place = hash(row) & (slots_.size() - 1);
    while (slots_[place] >= 0 && !equal(row, first_[slots_[place]])) place = (place + 1) & (slots_.size() - 1);
    if (slots_[place] < 0) {
      first_[count_] = row;
      slots_[place] = count_++;
      last_ = count_ - 1;
      if (static_cast<uint64_t>(count_) * 2 > slots_.size()) grow();
      return last_;
    }
    return last_ = slots_[place];
  }

private:
  bool equal(int64_t one, int64_t other) const {
    for (int32_t i = 0; i < columns_; ++i)
      if (column_[i][one] != column_[i][other]) return false;
    return true;
  }

  uint64_t hash(int64_t row) const {
    uint64_t hash = 0;
    for (int32_t i = 0; i < columns_; ++i) {
      hash = (hash ^ static_cast<uint32_t>(column_[i][row])) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29;
    }
    return hash;
  }

  void grow() {
    std::vector<int64_t> bigger(slots_.size() * 2, -1);
    for (int64_t group = 0; group < count_; ++group) {
      uint64_t place = hash(first_[group]) & (bigger.size() - 1);
      while (bigger[place] >= 0) place = (place + 1) & (bigger.size() - 1);
      bigger[place] = group;
    }
    slots_.swap(bigger);
  }

  const int32_t columns_;
  const int32_t* const* const column_;
  int64_t* const first_;
  std::vector<int64_t> slots_;
  int64_t count_ = 0, last_ = -1;
};

}  // namespace

int64_t td_groups(int64_t rows, int32_t columns, const int32_t* const* column, int64_t* group, int64_t* first) try {
  Groups groups(columns, column, first);
  for (int64_t row = 0; row < rows; ++row) group[row] = groups.of(row);
  return groups.count();
} catch (const std::bad_alloc&) {
  return -1;
}
