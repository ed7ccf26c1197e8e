#include "throw_probe.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <typeinfo>
#include <unistd.h>
#include <unwind.h>

#include "throw_buffer.hpp"

#define TD_EXPORT __attribute__((visibility("default")))

namespace {

using Throw = void (*)(void*, std::type_info*, void (*)(void*));
using BeginCatch = void* (*)(void*);

// How many exceptions a thread may have under way at once (thrown while another unwinds) for their catches to be seen.
constexpr unsigned kMostPending = 8;
constexpr const char* kRuntimes[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"};

struct ThreadState {
  int32_t id;          // 0 until asked for
  uint32_t session;    // the pending ones are of this session
  unsigned pending;    // number of objects
  void* object[kMostPending];
};

torchdiag::ThrowBuffer buffer;
std::atomic<uint32_t> enabled{0};  // 0 when off, else the number of the session
std::atomic<uint32_t> sessions{0};
std::atomic<uint64_t> thrown{0};
std::atomic<uint64_t> dropped{0};
std::atomic<Throw> real_throw{nullptr};
std::atomic<BeginCatch> real_begin_catch{nullptr};
thread_local ThreadState state;

uint64_t now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// The function behind ours. The C++ runtime may come with a library that Python loads privately, where RTLD_NEXT does
// not look; but whoever throws has it loaded, so asking for it by name finds it.
void* find_next(const char* name) noexcept {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  for (const char* library : kRuntimes) {
    if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
      if (void* found = dlsym(handle, name)) return found;
    }
  }
  static const char message[] = "torchdiag: the C++ runtime behind the throw probe cannot be found; run without it\n";
  (void)!write(STDERR_FILENO, message, sizeof(message) - 1);
  abort();
}

template <typename Function>
Function next(std::atomic<Function>& cached, const char* name) noexcept {
  Function function = cached.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = reinterpret_cast<Function>(find_next(name));
    cached.store(function, std::memory_order_release);
  }
  return function;
}

int32_t thread_id() noexcept {
  if (state.id == 0) state.id = static_cast<int32_t>(syscall(SYS_gettid));
  return state.id;
}

__attribute__((noinline)) void note_thrown(uint32_t session, void* object, const std::type_info* type,
                                           void* caller) noexcept {
  thrown.fetch_add(1, std::memory_order_relaxed);
  td_throw_event event;
  event.time_ns = now_ns();
  event.object = reinterpret_cast<uint64_t>(object);
  event.caller = reinterpret_cast<uint64_t>(caller);
  event.thread_id = thread_id();
  event.kind = TD_THROWN;
  // Copied, not pointed to: its library may be unloaded by the time the event is read.
  if (!buffer.put(event, type == nullptr ? nullptr : type->name())) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (state.session != session) {
    state.session = session;
    state.pending = 0;
  }
  if (state.pending == kMostPending) {
    std::memmove(&state.object[0], &state.object[1], sizeof(void*) * (kMostPending - 1));
    --state.pending;
  }
  state.object[state.pending++] = object;
}

__attribute__((noinline)) void note_caught(uint32_t session, void* object) noexcept {
  if (state.session != session) return;
  for (unsigned i = state.pending; i-- > 0;) {
    if (state.object[i] != object) continue;
    state.pending = i;  // whatever was thrown later is over
    td_throw_event event;
    event.time_ns = now_ns();
    event.object = reinterpret_cast<uint64_t>(object);
    event.caller = 0;
    event.thread_id = thread_id();
    event.kind = TD_CAUGHT;
    buffer.put(event, nullptr);
    return;
  }
}

void forget_in_child() noexcept {
  buffer.clear();
  thrown.store(0, std::memory_order_relaxed);
  dropped.store(0, std::memory_order_relaxed);
  state.id = 0;
  state.pending = 0;
}

__attribute__((constructor)) void prepare() noexcept { pthread_atfork(nullptr, nullptr, forget_in_child); }

void copy_text(const char* from, char* to, size_t size) noexcept {
  if (size == 0) return;
  size_t length = from == nullptr ? 0 : std::strlen(from);
  if (length >= size) length = size - 1;
  if (length != 0) std::memcpy(to, from, length);
  to[length] = 0;
}

}  // namespace

extern "C" {

// Not declared noreturn, so that the compiler jumps to the real function as the last thing: a call would leave a frame
// here that every exception is unwound through, which costs a fifth of a throw.
TD_EXPORT void __cxa_throw(void* object, std::type_info* type, void (*destroy)(void*)) {
  const uint32_t session = enabled.load(std::memory_order_relaxed);
  if (__builtin_expect(session != 0, 0)) note_thrown(session, object, type, __builtin_return_address(0));
  next(real_throw, "__cxa_throw")(object, type, destroy);
}

TD_EXPORT void* __cxa_begin_catch(void* unwind_exception) noexcept {
  const uint32_t session = enabled.load(std::memory_order_relaxed);
  if (__builtin_expect(session != 0, 0) && state.pending != 0) {
    // The C++ ABI puts the thrown object right behind the unwinder's header.
    note_caught(session, static_cast<char*>(unwind_exception) + sizeof(_Unwind_Exception));
  }
  return next(real_begin_catch, "__cxa_begin_catch")(unwind_exception);
}

TD_EXPORT uint32_t td_throw_version(void) { return TD_THROW_VERSION; }

TD_EXPORT int32_t td_throw_enable(int32_t on) {
  uint32_t session = 0;
  if (on != 0) {
    do {
      session = sessions.fetch_add(1, std::memory_order_relaxed) + 1;
    } while (session == 0);
  }
  return enabled.exchange(session, std::memory_order_relaxed) != 0;
}

TD_EXPORT size_t td_throw_drain(td_throw_event* out, size_t capacity) {
  size_t count = 0;
  while (count < capacity && buffer.take(out[count])) ++count;
  return count;
}

TD_EXPORT uint64_t td_throw_thrown(void) { return thrown.load(std::memory_order_relaxed); }

TD_EXPORT uint64_t td_throw_dropped(void) { return dropped.load(std::memory_order_relaxed); }

TD_EXPORT int32_t td_throw_locate(uint64_t address, char* library, size_t library_size, char* symbol,
                                  size_t symbol_size, uint64_t* library_offset) {
  Dl_info found;
  // A call is the last instruction before its return address, which may belong to the next function already.
  if (address == 0 || dladdr(reinterpret_cast<void*>(address - 1), &found) == 0) return 0;
  copy_text(found.dli_fname, library, library_size);
  copy_text(found.dli_sname, symbol, symbol_size);
  *library_offset = address - reinterpret_cast<uint64_t>(found.dli_fbase);
  return 1;
}

}  // extern "C"
