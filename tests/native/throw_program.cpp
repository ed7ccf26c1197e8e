// Throws in the ways that the tests of the throw probe ask for, and prints what the probe has recorded.
#include <dlfcn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "throw_probe.h"

// Looked up while running, so that the same program runs with the probe preloaded and without it.
template <typename Function>
static Function find(const char* name) { return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name)); }
#define PROBE(name) find<decltype(&name)>(#name)

namespace shop { struct Sold { int n; }; }

__attribute__((noinline)) void sell(int n) { throw shop::Sold{n}; }

struct Cleaner {
  ~Cleaner() { try { throw 1; } catch (int) {} }
};

static std::vector<td_throw_event> drained() {
  std::vector<td_throw_event> all(200000);
  all.resize(PROBE(td_throw_drain)(all.data(), all.size()));
  return all;
}

static void report(const char* what, const std::vector<td_throw_event>& events) {
  unsigned long throws = 0, catches = 0, wrong = 0;
  std::map<int, uint64_t> last;
  for (const auto& event : events) {
    (event.kind == TD_THROWN ? throws : catches) += 1;
    if (event.time_ns < last[event.thread_id]) ++wrong;
    last[event.thread_id] = event.time_ns;
  }
  const unsigned long thrown = PROBE(td_throw_thrown)(), dropped = PROBE(td_throw_dropped)();
  std::printf("%s thrown=%lu dropped=%lu throws=%lu catches=%lu threads=%zu disorder=%lu\n", what, thrown, dropped,
              throws, catches, last.size(), wrong);
  std::fflush(stdout);
}

static void sell_many(int times) {
  for (int i = 0; i < times; ++i) {
    try { sell(i); } catch (const shop::Sold& sold) { if (sold.n != i) std::abort(); }
  }
}

static void from_threads(int threads, int times) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back([times] { sell_many(times); });
  for (auto& thread : all) thread.join();
}

static double nanoseconds_a_throw(int times) {
  timespec began, ended;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  sell_many(times);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
  return (static_cast<double>(ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec)) / times;
}

int main(int, char** arguments) {
  const std::string what = arguments[1];
  if (what == "off") {
    from_threads(4, 100);
    report("off", drained());
  } else if (what == "exact") {
    PROBE(td_throw_enable)(1);
    from_threads(4, 2000);
    PROBE(td_throw_enable)(0);
    sell_many(10);
    report("exact", drained());
  } else if (what == "overflow") {
    PROBE(td_throw_enable)(1);
    from_threads(4, 20000);
    report("full", drained());
    sell_many(5);
    report("again", drained());
  } else if (what == "while") {
    PROBE(td_throw_enable)(1);
    std::atomic<bool> over{false};
    std::vector<td_throw_event> all;
    std::thread reader([&] {
      while (true) {
        const bool last = over;
        const auto some = drained();
        all.insert(all.end(), some.begin(), some.end());
        if (last && some.empty()) break;
      }
    });
    from_threads(4, 20000);
    over = true;
    reader.join();
    report("while", all);
  } else if (what == "fork") {
    PROBE(td_throw_enable)(1);
    sell_many(3);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      report("child", drained());
      sell_many(2);
      const auto events = drained();
      report("child", events);
      std::printf("pid %d\n", events[0].thread_id == getpid());
      std::fflush(stdout);
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    report("parent", drained());
    return status;
  } else if (what == "nested") {
    PROBE(td_throw_enable)(1);
    try { Cleaner cleaner; throw std::runtime_error("outer"); } catch (const std::exception&) {}
    for (const auto& event : drained()) {
      std::printf("%d %.*s %lx\n", event.kind, event.name_length, event.name, (unsigned long)event.object);
    }
  } else if (what == "rethrow") {
    PROBE(td_throw_enable)(1);
    std::exception_ptr kept;
    try {
      try { sell(1); } catch (...) { throw; }
    } catch (...) { kept = std::current_exception(); }
    try { std::rethrow_exception(kept); } catch (const shop::Sold&) {}
    report("rethrow", drained());
  } else if (what == "place") {
    PROBE(td_throw_enable)(1);
    sell_many(1);
    const auto event = drained()[0];
    char library[512], symbol[512];
    uint64_t offset = 0;
    const int found = PROBE(td_throw_locate)(event.caller, library, sizeof library, symbol, sizeof symbol, &offset);
    std::printf("%d %s %s %d %d\n", found, library, symbol, offset > 0, (int)event.name_length);
    std::printf("%.*s\n", event.name_length, event.name);
    char little[4];
    std::printf("%d %s\n", PROBE(td_throw_locate)(event.caller, little, sizeof little, symbol, 1, &offset), little);
    std::printf("%d\n", PROBE(td_throw_locate)(0, little, sizeof little, symbol, 1, &offset));
  } else if (what == "terminate") {
    PROBE(td_throw_enable)(1);
    std::set_terminate([] { report("terminate", drained()); std::_Exit(7); });
    sell(1);
  } else if (what == "cost") {
    // "on" and "off" alternate, and the best round of each counts, so that a busy machine disturbs neither more.
    double best[2] = {1e9, 1e9};
    for (int round = 0; round < 40; ++round) {
      const int on = round % 2;
      if (find<decltype(&td_throw_enable)>("td_throw_enable") != nullptr) PROBE(td_throw_enable)(on), drained();
      best[on] = std::min(best[on], nanoseconds_a_throw(2000));
    }
    std::printf("%.0f %.0f\n", best[0], best[1]);
  }
  return 0;
}
