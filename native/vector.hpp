// Sixteen bytes at a time: SSE2 where there is SSE2, NEON where there is NEON, else plain C++.
#pragma once

#include <cstdint>
#include <cstring>

#include "cursor.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace torchdiag {

// The first byte from p on that a JSON string cannot simply contain: quote, backslash, control character, or a byte
// that is not ASCII (so that its encoding gets checked). The padding after every text holds such bytes.
inline const char* find_special(const char* p) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i blank = _mm_set1_epi8(0x20);
    for (;; p += 16) {
        const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        // The comparison is signed: bytes from 0x80 on are below zero, hence below a blank as well.
        const __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(text, quote), _mm_cmpeq_epi8(text, backslash)),
                                         _mm_cmplt_epi8(text, blank));
        const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(hit));
        if (mask != 0) return p + __builtin_ctz(mask);
    }
#elif defined(__ARM_NEON) && defined(__aarch64__)
    for (;; p += 16) {
        const int8x16_t text = vld1q_s8(reinterpret_cast<const int8_t*>(p));
        const uint8x16_t hit = vorrq_u8(vorrq_u8(vceqq_s8(text, vdupq_n_s8('"')), vceqq_s8(text, vdupq_n_s8('\\'))),
                                        vcltq_s8(text, vdupq_n_s8(0x20)));
        const std::uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(hit), 4)), 0);
        if (mask != 0) return p + (__builtin_ctzll(mask) >> 2);
    }
#else
    while (*p != '"' && *p != '\\' && static_cast<signed char>(*p) >= 0x20) ++p;
    return p;
#endif
}

// The first byte from p on that is no white space.
inline const char* skip_space(const char* p) {
    // Most often there is none or one blank; where there are more, a line was indented.
    if (!is_space(*p) || !is_space(*++p)) return p;
#if defined(__SSE2__)
    for (;; p += 16) {
        const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        const auto is = [&](char c) { return _mm_cmpeq_epi8(text, _mm_set1_epi8(c)); };
        const __m128i space = _mm_or_si128(_mm_or_si128(is(' '), is('\n')), _mm_or_si128(is('\t'), is('\r')));
        const unsigned other = static_cast<unsigned>(_mm_movemask_epi8(space)) ^ 0xFFFF;
        if (other != 0) return p + __builtin_ctz(other);
    }
#else
    while (is_space(*p)) ++p;
    return p;
#endif
}

// Where brackets, quotes and backslashes are among 64 bytes: bit i stands for byte i.
struct Structure {
    std::uint64_t opening = 0, closing = 0, quotes = 0, backslashes = 0;
};

inline Structure structure_of(const char* p) {
    Structure found;
#if defined(__SSE2__)
    const auto bits = [](__m128i equal) { return static_cast<std::uint64_t>(_mm_movemask_epi8(equal)); };
    for (int at = 0; at < 64; at += 16) {
        const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at));
        // One bit apart: `[` and `{`, `]` and `}`.
        const __m128i folded = _mm_or_si128(text, _mm_set1_epi8(0x20));
        found.opening |= bits(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{'))) << at;
        found.closing |= bits(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))) << at;
        found.quotes |= bits(_mm_cmpeq_epi8(text, _mm_set1_epi8('"'))) << at;
        found.backslashes |= bits(_mm_cmpeq_epi8(text, _mm_set1_epi8('\\'))) << at;
    }
#else
    for (int at = 0; at < 64; ++at) {
        const char folded = static_cast<char>(p[at] | 0x20);
        found.opening |= static_cast<std::uint64_t>(folded == '{') << at;
        found.closing |= static_cast<std::uint64_t>(folded == '}') << at;
        found.quotes |= static_cast<std::uint64_t>(p[at] == '"') << at;
        found.backslashes |= static_cast<std::uint64_t>(p[at] == '\\') << at;
    }
#endif
    return found;
}

// Whether the `length` bytes at p equal `bytes`; both may be read up to the next multiple of 16.
inline bool equal_padded(const char* p, const char* bytes, unsigned length) {
#if defined(__SSE2__)
    for (unsigned done = 0;; done += 16) {
        const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + done));
        const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + done));
        const unsigned same = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, right)));
        const unsigned rest = length - done;
        if (rest <= 16) {
            const unsigned wanted = (1U << rest) - 1;
            return (same & wanted) == wanted;
        }
        if (same != 0xFFFF) return false;
    }
#else
    return std::memcmp(p, bytes, length) == 0;
#endif
}

}  // namespace torchdiag
