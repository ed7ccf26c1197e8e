// Events to text again: one valid JSON document.
#pragma once

#include "array.hpp"
#include "sink.hpp"
#include "text.hpp"

namespace torchdiag {

// Writes one document whatever it reads: the events of later documents follow those of the first, their top-level keys
// are added where the first did not have them.
class Echo final : public Sink {
public:
    Taken take(const char* p, const char* end, std::int64_t offset) override;
    bool take_mended(const char* text, std::size_t length, std::int64_t offset) override;
    bool take_other(const char* text, std::size_t length) override;
    void begin_document(bool array) override;
    void begin_events() override;
    void top_level(const char* key, std::size_t key_length, const char* value, std::size_t length) override;
    void finish();

    Array<char> output;
    std::int64_t kept = 0;
    std::int64_t mended = 0;

private:
    void write(const char* text);
    void write_element(const char* text, std::size_t length);
    void write_pair(Array<char>& to, bool& first, const char* key, std::size_t key_length, const char* value,
                    std::size_t length);

    int documents_ = 0;
    bool bare_ = false;         // the document is a list
    bool events_open_ = false;  // its events are being written
    bool first_element_ = true;
    bool first_pair_ = true;
    bool first_late_ = true;
    TextTable keys_;     // of the first document and what was added
    std::int32_t keys_before_ = 0;  // how many of them came from earlier documents
    Array<char> late_;   // keys that come after the events are held until no more events can come
    Array<char> no_list_;  // the value of `traceEvents` when that is no list
};

}  // namespace torchdiag
