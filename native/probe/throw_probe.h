/* Every C++ exception thrown in this process, recorded: plain C, to be preloaded (LD_PRELOAD) on Linux.

   The library puts itself before the C++ runtime's __cxa_throw and __cxa_begin_catch. Off (as it starts) it adds one
   load and one branch to each; where nothing throws it adds nothing at all. All functions may be called from any
   thread, also while others throw; in a forked child the buffer starts empty and the counts at 0.

   Not seen: throws and catches in code that has a C++ runtime linked into it statically (and hidden) or that was loaded
   with RTLD_DEEPBIND; rethrows (`throw;`, std::rethrow_exception), which are no new exceptions; other languages'
   unwinding. */
#ifndef TORCHDIAG_THROW_PROBE_H
#define TORCHDIAG_THROW_PROBE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TD_THROW_VERSION 1u
#define TD_THROW_CAPACITY 32768u /* events */
#define TD_THROW_NAME 152u       /* bytes */

#define TD_THROWN 0
#define TD_CAUGHT 1

/* A throw, or the first catch of a throw by the same thread (which has no name and no caller). */
typedef struct {
  uint64_t time_ns;     /* CLOCK_MONOTONIC */
  uint64_t object;      /* the exception object, which joins a throw and its catch; reused once it is gone */
  uint64_t caller;      /* return address of the throw: inside the function that threw */
  int32_t thread_id;    /* gettid() */
  uint16_t kind;        /* TD_THROWN or TD_CAUGHT */
  uint16_t name_length; /* bytes of the type's mangled name; above TD_THROW_NAME where `name` holds only its start */
  char name[TD_THROW_NAME];
} td_throw_event;

/* TD_THROW_VERSION of the library that is loaded. */
uint32_t td_throw_version(void);

/* Records from now on (1) or no more (0); returns what it was. */
int32_t td_throw_enable(int32_t on);

/* Moves up to `capacity` recorded events to `out`, oldest first, and returns how many. One thread's are in order. */
size_t td_throw_drain(td_throw_event* out, size_t capacity);

/* Exceptions thrown while it was on, and how many of them found the buffer full. Since the process began. */
uint64_t td_throw_thrown(void);
uint64_t td_throw_dropped(void);

/* Where an address lies: the path of its library in `library`, the exported function around it in `symbol` (empty if
   there is none), both cut to their size and ended by 0; *library_offset is its distance from the library's load
   address. Returns 0 if it lies in no library that is loaded. */
int32_t td_throw_locate(uint64_t address, char* library, size_t library_size, char* symbol, size_t symbol_size,
                        uint64_t* library_offset);

#ifdef __cplusplus
}
#endif

#endif
