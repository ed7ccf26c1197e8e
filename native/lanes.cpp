#include "lanes.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>

#include "cursor.hpp"
#include "text.hpp"
#include "vector.hpp"

namespace torchdiag {

namespace {

constexpr std::size_t kLongestMark = 64;
constexpr std::int64_t kMostDistrust = std::int64_t{256} << 20;

// How the event at p begins, up to the end of its first key: others likely begin so too. 0 when that is not to be seen.
std::size_t mark_at(const char* p, const char* end) {
    const char* quote = skip_space(p + 1);
    if (quote >= end || *quote != '"') return 0;
    bool escaped;
    const char* stop = string_end(quote + 1, end, escaped);
    if (stopped(stop)) return 0;
    const std::size_t length = static_cast<std::size_t>(stop + 1 - p);
    return length <= kLongestMark ? length : 0;
}

// The first place from p on where an event seems to begin behind a comma, null when there is none before `end`.
const char* find_event_like(const char* p, const char* end, const char* mark, std::size_t length) {
    for (; static_cast<std::size_t>(end - p) > length; ++p) {
        p = static_cast<const char*>(memmem(p, static_cast<std::size_t>(end - p), mark, length));
        if (p == nullptr) return nullptr;
        const char* before = p - 1;
        while (is_space(*before)) --before;  // `mark` is not the first thing in the text, and a brace is before it
        if (*before == ',') return p;
    }
    return nullptr;
}

// Whether the text was taken up to the event that begins at `border`.
bool reaches(const Taken& taken, const char* border) {
    if (taken.outcome == Taken::unfinished) return taken.at == border;
    if (taken.outcome != Taken::done || taken.at >= border) return false;
    const char* comma = skip_space(taken.at);
    return comma < border && *comma == ',' && skip_space(comma + 1) == border;
}

}  // namespace

Lanes::Lanes(int argument_count, int threads, std::size_t stretch)
    : Events(argument_count),
      argument_count_(argument_count),
      lane_count_(static_cast<std::size_t>(std::max(threads - 1, 0))),
      least_(std::max<std::size_t>(stretch, 1)) {}

Lanes::~Lanes() {
    withdraw();
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        quit_ = true;
    }
    offered_.notify_all();
    for (Lane& lane : lanes_) {
        if (lane.thread.joinable()) lane.thread.join();
    }
}

Taken Lanes::take(const char* p, const char* end, std::int64_t offset) {
    if (!cut(p, end, offset)) return Events::take(p, end, offset);
    struct Offer {
        explicit Offer(Lanes& lanes) : lanes(lanes) { lanes.offer(); }
        ~Offer() { lanes.withdraw(); }
        Lanes& lanes;
    };
    Taken taken{};
    bool lost = false;
    {
        const Offer offer(*this);
        for (std::size_t i = 0; i < count_ && !lost; ++i) {
            Stretch& stretch = *stretches_[i];
            if (claim(i)) {
                taken = Events::take(stretch.start, stretch.end, stretch.offset);
            } else if (join(stretch)) {
                taken = stretch.taken;
            } else {
                taken = {stretch.start, Taken::unfinished};
                lost = true;
            }
            lost = lost || (i + 1 < count_ && !reaches(taken, stretch.end));
        }
    }
    if (!lost) {
        distrust_ = 0;
        return taken;
    }
    // The lanes know texts now that may be in no event. And where the text is odd, it may be so for a while.
    for (Lane& lane : lanes_) renew(lane);
    distrust_ = std::clamp<std::int64_t>(distrust_ * 2, end - p, kMostDistrust);
    in_order_ = offset + (taken.at - p) + distrust_;
    if (taken.outcome != Taken::unfinished) return taken;
    return Events::take(taken.at, end, offset + (taken.at - p));
}

// Cuts the text in stretches. False when it is to be read in one go.
bool Lanes::cut(const char* p, const char* end, std::int64_t offset) {
    const std::size_t length = static_cast<std::size_t>(end - p);
    if (lane_count_ == 0 || length < 4 * least_ || offset < in_order_) return false;
    const std::size_t mark = mark_at(p, end);
    if (mark == 0 || !start()) return false;
    const std::size_t wanted = std::min(length / least_, kStretchesEach * (lane_count_ + 1));
    count_ = 0;
    const char* from = p;
    for (std::size_t i = 1; from != end; ++i) {
        const char* to = i < wanted ? p + length / wanted * i : end;
        if (to <= from) continue;
        if (to != end) to = find_event_like(to, end, p, mark);
        if (to == nullptr) to = end;
        Stretch& stretch = *stretches_[count_++];
        stretch.start = from;
        stretch.end = to;
        stretch.offset = offset + (from - p);
        from = to;
    }
    return count_ > 1;
}

// Starts the threads, once. False when there are none to be had.
bool Lanes::start() {
    if (!lanes_.empty()) return lanes_.front().thread.joinable();
    lanes_ = std::vector<Lane>(lane_count_);
    for (Lane& lane : lanes_) renew(lane);
    while (stretches_.size() < kStretchesEach * (lane_count_ + 1)) {
        stretches_.push_back(std::make_unique<Stretch>(static_cast<std::size_t>(argument_count_)));
    }
    try {
        for (std::size_t i = 0; i < lane_count_; ++i) lanes_[i].thread = std::thread([this, i] { work(i); });
    } catch (const std::system_error&) {
        // Those that have started will do.
    }
    return lanes_.front().thread.joinable();
}

void Lanes::renew(Lane& lane) {
    lane.reader = std::make_unique<Aside>(argument_count_);
    lane.reader->define_all_of(event_keys_, argument_keys_);
}

// What a lane does: stretch after stretch, in their order.
void Lanes::work(std::size_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        offered_.wait(lock, [this] { return quit_ || next_ < limit_; });
        if (quit_) return;
        Stretch& stretch = *stretches_[next_++];
        ++busy_;
        lock.unlock();
        stretch.reader = number;
        stretch.failed = false;
        try {
            lanes_[number].reader->read(stretch);
        } catch (...) {
            stretch.failed = true;
        }
        lock.lock();
        --busy_;
        stretch.read = true;
        done_.notify_one();
    }
}

// The calling thread begins at the front, the lanes where its share ends.
void Lanes::offer() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (std::size_t i = 0; i < count_; ++i) stretches_[i]->read = false;
        first_ = next_ = std::max<std::size_t>(count_ / (lane_count_ + 1), 1);
        limit_ = count_;
    }
    offered_.notify_all();
}

void Lanes::withdraw() {
    std::unique_lock<std::mutex> lock(mutex_);
    next_ = limit_ = 0;
    done_.wait(lock, [this] { return busy_ == 0; });
}

// Whether the calling thread has to read this stretch: no lane has begun with it.
bool Lanes::claim(std::size_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (number >= first_ && number < next_) return false;
    next_ = std::max(next_, number + 1);
    return true;
}

// Waits for a stretch and adds what was found in it. False when it has to be read in order.
bool Lanes::join(Stretch& stretch) {
    {
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [&] { return stretch.read; });
    }
    if (stretch.failed || stretch.columns.name.size() > UINT32_MAX - row_) throw std::bad_alloc();
    if (!stretch.usable || !event_keys_.has_room_for(stretch.event_keys.ends.size()) ||
        !argument_keys_.has_room_for(stretch.argument_keys.ends.size())) {
        return false;
    }
    Codes& codes = lanes_[stretch.reader].reader->codes;
    const auto add = [](const TextList& list, auto& table, Array<std::int32_t>& known) {
        list.each([&](const char* text, std::size_t length) { known.push(table.add_plain(text, length)); });
    };
    add(stretch.names, names, codes.names);
    add(stretch.categories, categories, codes.categories);
    add(stretch.texts, texts, codes.texts);
    stretch.identities.each([&](const char* text, std::size_t length) {
        codes.identities.push(identities.find_or_add(text, length));
    });
    const auto identity = [&](std::int32_t code) {
        return code < 0 ? code : codes.identities[static_cast<std::size_t>(code)];
    };
    for (std::size_t i = 0; i < stretch.track_pid.size(); ++i) {
        codes.tracks.push(track_of(identity(stretch.track_pid[i]), identity(stretch.track_tid[i])));
    }
    const auto learn = [](const TextList& list, Keys& keys) {
        list.each([&](const char* text, std::size_t length) {
            keys.find(text, length, std::memchr(text, '\\', length) != nullptr);
        });
    };
    learn(stretch.event_keys, event_keys_);
    learn(stretch.argument_keys, argument_keys_);
    append(stretch.columns, codes, columns);
    row_ = static_cast<std::uint32_t>(columns.name.size());
    tally.add(stretch.tally);
    return true;
}

}  // namespace torchdiag
