// Checks the laws on whole files, for a build with sanitizers: replay FILE...
#include <cstdio>
#include <string>

#include "laws.hpp"

int main(int count, char** files) {
    for (int i = 1; i < count; ++i) {
        std::FILE* file = std::fopen(files[i], "rb");
        if (file == nullptr) {
            std::perror(files[i]);
            return 2;
        }
        std::string text;
        char piece[1 << 16];
        for (std::size_t got; (got = std::fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, got);
        std::fclose(file);
        check_laws(text.data(), text.size(), 1000, 777);
    }
    return 0;
}
