#include "keys.hpp"

namespace torchdiag {

void Keys::define(const char* text, std::size_t length, Role role, std::int32_t column) {
    if (known_.find(text, length) >= 0) return;
    roles_.reserve(roles_.size() + 1);
    columns_.reserve(columns_.size() + 1);
    known_.find_or_add(text, length);
    roles_.push(role);
    columns_.push(column);
}

void Keys::define_all_of(const Keys& other) {
    for (std::int32_t code = 0; code < other.known_.size(); ++code) {
        const std::size_t at = static_cast<std::size_t>(code);
        define(other.known_.text(code), other.known_.length(code), other.roles_[at], other.columns_[at]);
    }
}

Key* Keys::find(const char* raw, std::size_t length, bool escaped) {
    const std::int32_t spelling = spellings_.find(raw, length);
    if (spelling >= 0) return by_spelling_[static_cast<std::size_t>(spelling)];
    std::int32_t code;
    if (escaped) {
        scratch_.clear();
        unescape(raw, raw + length, scratch_);
        code = known_.find(scratch_.data(), scratch_.size());
    } else {
        code = known_.find(raw, length);
    }
    if (code < 0 && keys_.size() >= kMost) return &keys_.front();
    const Role role = code < 0 ? Role::ignore : roles_[static_cast<std::size_t>(code)];
    by_spelling_.reserve(by_spelling_.size() + 1);
    Key& key = add_key(role, code < 0 ? -1 : columns_[static_cast<std::size_t>(code)]);
    spellings_.find_or_add(raw, length);
    by_spelling_.push(&key);
    return &key;
}

}  // namespace torchdiag
