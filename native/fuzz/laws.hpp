// What holds for every text, damaged or not.
#pragma once

#include <cstddef>
#include <cstdint>

// Reads the text in two ways that differ in how it is cut, repairs it, reads what came out; stops the process where
// they disagree or what came out is no valid JSON.
void check_laws(const char* text, std::size_t size, std::int64_t block, std::size_t chunk);
