#include "recover.hpp"

#include <cstring>

#include "cursor.hpp"
#include "text.hpp"
#include "vector.hpp"

namespace torchdiag {

namespace {

// White space is passed; reaching the end decides nothing.
Sight expect(const char*& p, const char* end, char wanted) {
    p = skip_space(p);
    if (p >= end) return Sight::unclear;
    return *p == wanted ? Sight::yes : Sight::no;
}

// Whether p is the given key, its quotes and a colon; `p` moves behind the colon.
Sight expect_key(const char*& p, const char* end, const char* key) {
    const char* at = p;
    for (const char* c = key; *c != 0; ++c, ++at) {
        if (at >= end) return Sight::unclear;
        if (*at != *c) return Sight::no;
    }
    const Sight sight = expect(at, end, ':');
    if (sight == Sight::yes) p = at + 1;
    return sight;
}

Sight any_key(const char* p, const char* end, const char* const* keys, std::size_t count) {
    Sight best = Sight::no;
    for (std::size_t i = 0; i < count; ++i) {
        const char* at = p;
        const Sight sight = expect_key(at, end, keys[i]);
        if (sight == Sight::yes) return sight;
        if (sight == Sight::unclear) best = sight;
    }
    return best;
}

// `id` is not among the keys a lost reader takes for an event: the devices in the header start with it.
constexpr const char* kEventKeys[] = {
    "\"ph\"", "\"name\"", "\"cat\"", "\"ts\"", "\"dur\"", "\"pid\"", "\"tid\"", "\"args\"", "\"bp\"", "\"s\"", "\"id\"",
};
constexpr std::size_t kEventKeyCount = sizeof kEventKeys / sizeof *kEventKeys;

}  // namespace

Sight event_key(const char* p, const char* end) { return any_key(p, end, kEventKeys, kEventKeyCount); }

Sight event_starts(const char* p, const char* end, bool surely) {
    if (*p != '{') return Sight::no;
    ++p;
    const Sight sight = expect(p, end, '"');
    if (sight != Sight::yes) return sight;
    return any_key(p, end, kEventKeys, surely ? 1 : kEventKeyCount - 1);
}

Sight events_start(const char* p, const char* end, const char*& inside) {
    Sight sight = expect_key(p, end, "\"traceEvents\"");
    if (sight != Sight::yes) return sight;
    sight = expect(p, end, '[');
    inside = p + 1;
    return sight;
}

Sight key_at(const char* p, const char* end) {
    bool escaped;
    const char* quote = string_end(p + 1, end, escaped);
    if (stopped(quote)) return quote == starved() ? Sight::unclear : Sight::no;
    ++quote;
    return expect(quote, end, ':');
}

Sight events_end(const char* p, const char* end) {
    ++p;
    p = skip_space(p);
    if (p >= end) return Sight::unclear;
    if (*p == '}') return Sight::yes;
    if (*p != ',') return Sight::no;
    ++p;
    return expect(p, end, '"');
}

}  // namespace torchdiag
