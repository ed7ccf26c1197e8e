// A bounded queue of events that any thread may fill and empty without a lock.
//
// Each slot carries a ticket, and a position belongs to slot `position % capacity` in the round that begins at
// `position - position % capacity`. A writer may fill the slot when its ticket is the round, and sets it to round + 1;
// a reader may take it when it is round + 1, and sets it to the next round, for the writer that comes round again
// (after Dmitry Vyukov's bounded queue). Nothing is overwritten: a full buffer turns events away.
//
// There is no constructor: a buffer of zeroes is an empty one. As a static object it is ready for a throw before any
// constructor has run, and memory that no throw touches costs nothing.
#ifndef TORCHDIAG_THROW_BUFFER_HPP
#define TORCHDIAG_THROW_BUFFER_HPP

#include <atomic>
#include <cstdint>
#include <cstring>

#include "throw_probe.h"

namespace torchdiag {

class ThrowBuffer {
 public:
  bool put(const td_throw_event& event, const char* name) noexcept {
    uint64_t position = written_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[position % TD_THROW_CAPACITY];
      const uint64_t round = position - position % TD_THROW_CAPACITY;
      const uint64_t ticket = slot.ticket.load(std::memory_order_acquire);
      if (ticket == round) {
        if (written_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          fill(slot.event, event, name);
          slot.ticket.store(round + 1, std::memory_order_release);
          return true;
        }
      } else if (ticket < round) {
        return false;  // full: what was written a round ago has not been read
      } else {
        position = written_.load(std::memory_order_relaxed);
      }
    }
  }

  bool take(td_throw_event& out) noexcept {
    uint64_t position = read_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[position % TD_THROW_CAPACITY];
      const uint64_t round = position - position % TD_THROW_CAPACITY;
      const uint64_t ticket = slot.ticket.load(std::memory_order_acquire);
      if (ticket == round + 1) {
        if (read_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          std::memcpy(&out, &slot.event, sizeof(out));
          slot.ticket.store(round + TD_THROW_CAPACITY, std::memory_order_release);
          return true;
        }
      } else if (ticket <= round) {
        return false;
      } else {
        position = read_.load(std::memory_order_relaxed);
      }
    }
  }

  // Only while no other thread can be at work: in a child that was just forked.
  void clear() noexcept {
    const uint64_t used = written_.load(std::memory_order_relaxed);
    const uint64_t slots = used < TD_THROW_CAPACITY ? used : TD_THROW_CAPACITY;
    for (uint64_t i = 0; i < slots; ++i) slots_[i].ticket.store(0, std::memory_order_relaxed);
    written_.store(0, std::memory_order_relaxed);
    read_.store(0, std::memory_order_release);
  }

 private:
  struct Slot {
    std::atomic<uint64_t> ticket;
    td_throw_event event;
  };

  static void fill(td_throw_event& into, const td_throw_event& event, const char* name) noexcept {
    into.time_ns = event.time_ns;
    into.object = event.object;
    into.caller = event.caller;
    into.thread_id = event.thread_id;
    into.kind = event.kind;
    const size_t length = name == nullptr ? 0 : std::strlen(name);
    into.name_length = static_cast<uint16_t>(length < UINT16_MAX ? length : UINT16_MAX);
    if (length != 0) std::memcpy(into.name, name, length < TD_THROW_NAME ? length : TD_THROW_NAME);
  }

  alignas(64) std::atomic<uint64_t> written_;
  alignas(64) std::atomic<uint64_t> read_;
  alignas(64) Slot slots_[TD_THROW_CAPACITY];
};

}  // namespace torchdiag

#endif
