// The C interface of the reader that writes valid JSON.
#include "document.hpp"
#include "echo.hpp"
#include "guard.hpp"
#include "torchdiag.h"

using namespace torchdiag;

struct td_repair {
    explicit td_repair(std::size_t block) : document(echo, block) {}

    Echo echo;
    Document document;
    int failed = TD_OK;
};

td_repair* td_repair_new(int64_t block) {
    if (block < 0) return nullptr;
    td_repair* repair = nullptr;
    guarded([&] { repair = new td_repair(block == 0 ? kGoodBlock : static_cast<std::size_t>(block)); });
    return repair;
}

int td_repair_feed(td_repair* repair, const void* bytes, int64_t length) {
    if (repair->failed != TD_OK) return repair->failed;
    repair->echo.output.clear();
    if (length > 0) {
        repair->failed = guarded(
            [&] { repair->document.feed(static_cast<const char*>(bytes), static_cast<std::size_t>(length)); });
    }
    return repair->failed;
}

int td_repair_finish(td_repair* repair) {
    if (repair->failed != TD_OK) return repair->failed;
    repair->echo.output.clear();
    repair->failed = guarded([&] {
        repair->document.finish();
        repair->echo.finish();
    });
    return repair->failed;
}

int td_repair_output(const td_repair* repair, td_array* output) {
    if (repair->failed != TD_OK) return repair->failed;
    *output = {repair->echo.output.data(), static_cast<int64_t>(repair->echo.output.size())};
    return TD_OK;
}

int td_repair_report_of(const td_repair* repair, td_repair_report* report) {
    if (repair->failed != TD_OK) return repair->failed;
    const Tally& tally = repair->echo.tally;
    *report = {repair->echo.kept, repair->echo.mended, tally.counts[static_cast<int>(Damage::dropped_event)],
               notes_in(tally), repair->document.found_events() ? 1 : 0};
    return TD_OK;
}

int td_repair_note(const td_repair* repair, int32_t index, td_note* note) {
    return note_at(repair->echo.tally, index, note);
}

void td_repair_free(td_repair* repair) { delete repair; }
