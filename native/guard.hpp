// What the C interfaces of the readers share.
#pragma once

#include <cstddef>
#include <new>

#include "damage.hpp"
#include "torchdiag.h"

namespace torchdiag {

// Fits in the second-level cache beside the columns being filled.
constexpr std::size_t kGoodBlock = std::size_t{256} << 10;

// Nothing is thrown across the C boundary; lack of memory is the only thing that is thrown at all.
template <typename Work>
int guarded(Work&& work) noexcept {
    try {
        work();
        return TD_OK;
    } catch (...) {
        return TD_NO_MEMORY;
    }
}

inline std::int32_t notes_in(const Tally& tally) {
    std::int32_t count = 0;
    for (const std::int64_t times : tally.counts) count += times > 0;
    return count;
}

// The `index`-th kind of damage that was met at all.
inline int note_at(const Tally& tally, std::int32_t index, td_note* note) {
    for (int kind = 0; kind < kDamageKinds; ++kind) {
        if (tally.counts[kind] == 0 || index-- != 0) continue;
        *note = {damage_code(static_cast<Damage>(kind)), tally.counts[kind], tally.first_offsets[kind]};
        return TD_OK;
    }
    return TD_BAD_ARGUMENT;
}

}  // namespace torchdiag
