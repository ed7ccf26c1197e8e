// libFuzzer's way in: clang++ -fsanitize=fuzzer,address,undefined (see tests/native/test_fuzz.py).
#include <cstddef>
#include <cstdint>

#include "laws.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    // The first two bytes say how the text is cut.
    check_laws(reinterpret_cast<const char*>(data) + 2, size - 2, 1 + data[0], std::size_t{1} + data[1]);
    return 0;
}
