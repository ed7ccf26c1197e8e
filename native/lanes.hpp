// Events to columns in several threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "aside.hpp"
#include "events.hpp"

namespace torchdiag {

// Stretches for each thread, when there is enough text: so that none waits long for another.
constexpr std::size_t kStretchesEach = 8;

// Cuts long text where events seem to begin, and lets other threads read what is behind while this one reads the front.
// What they found is joined only if the stretch before turned out to end where theirs begins; else it is read again, in
// order. So a cut in the wrong place costs time and changes nothing, and results are those of one thread.
class Lanes final : public Events {
public:
    // `threads`: how many read, the calling one included. Stretches of about `stretch` bytes.
    Lanes(int argument_count, int threads, std::size_t stretch);
    ~Lanes() override;

    Taken take(const char* p, const char* end, std::int64_t offset) override;

private:
    struct Lane {
        std::unique_ptr<Aside> reader;
        std::thread thread;
    };

    bool cut(const char* p, const char* end, std::int64_t offset);
    bool start();
    void renew(Lane& lane);
    void work(std::size_t number);
    void offer();
    void withdraw();
    bool claim(std::size_t number);
    bool join(Stretch& stretch);

    const int argument_count_;
    const std::size_t lane_count_, least_;
    std::vector<Lane> lanes_;
    std::vector<std::unique_ptr<Stretch>> stretches_;
    std::size_t count_ = 0;          // stretches of the text being taken
    std::size_t first_ = 0;          // the first of them that a lane may read
    std::int64_t in_order_ = 0;      // no cutting before this place in the file
    std::int64_t distrust_ = 0;      // how far it was put off the last time

    std::mutex mutex_;               // guards what follows, and `read` of every stretch
    std::condition_variable offered_, done_;
    std::size_t next_ = 0;           // the next stretch for a lane
    std::size_t limit_ = 0;          // behind the last one
    std::size_t busy_ = 0;
    bool quit_ = false;
};

}  // namespace torchdiag
