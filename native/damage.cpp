#include "damage.hpp"

namespace torchdiag {

const char* damage_code(Damage kind) {
    switch (kind) {
        case Damage::truncated_json: return "truncated-json";
        case Damage::dropped_event: return "dropped-event";
        case Damage::damaged_header: return "damaged-header";
        case Damage::damaged_metadata: return "damaged-metadata";
        case Damage::stray_text: return "stray-text";
        case Damage::trailing_garbage: return "trailing-garbage";
        case Damage::several_documents: return "several-documents";
        case Damage::bad_escape: return "bad-escape";
        case Damage::unescaped_quote: return "unescaped-quote";
        case Damage::control_character: return "control-character";
        case Damage::bad_utf8: return "bad-utf8";
        case Damage::bare_word: return "bare-word";
        case Damage::bad_number: return "bad-number";
        case Damage::trailing_comma: return "trailing-comma";
        case Damage::missing_comma: return "missing-comma";
        case Damage::missing_quote: return "missing-quote";
        case Damage::missing_bracket: return "missing-bracket";
        case Damage::deep_nesting: return "deep-nesting";
        case Damage::string_number: return "string-number";
        case Damage::integer_overflow: return "integer-overflow";
        case Damage::duplicate_key: return "duplicate-key";
        case Damage::count: break;
    }
    return "";
}

}  // namespace torchdiag
