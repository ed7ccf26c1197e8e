#include "aside.hpp"

namespace torchdiag {

namespace {

void clear(Columns& columns) {
    columns.name.clear();
    columns.category.clear();
    columns.track.clear();
    columns.phase.clear();
    columns.time.clear();
    columns.duration.clear();
    const auto empty = [](auto& sparse) {
        sparse.rows.clear();
        sparse.values.clear();
    };
    empty(columns.flow_id);
    for (auto& argument : columns.arguments) {
        empty(argument->integers);
        empty(argument->reals);
        empty(argument->texts);
    }
}

template <typename T>
void append(const Array<T>& from, Array<T>& to) {
    to.append(from.data(), from.size());
}

void append(const Array<std::int32_t>& from, const Array<std::int32_t>& codes, Array<std::int32_t>& to) {
    const std::size_t before = to.size();
    to.reserve(before + from.size());
    std::int32_t* target = to.data() + before;
    for (std::size_t i = 0; i < from.size(); ++i) {
        target[i] = from[i] < 0 ? from[i] : codes[static_cast<std::size_t>(from[i])];
    }
    to.set_size(before + from.size());
}

void append_rows(const Array<std::uint32_t>& from, std::uint32_t first, Array<std::uint32_t>& to) {
    const std::size_t before = to.size();
    to.reserve(before + from.size());
    std::uint32_t* target = to.data() + before;
    for (std::size_t i = 0; i < from.size(); ++i) target[i] = from[i] + first;
    to.set_size(before + from.size());
}

template <typename T>
void append(const Sparse<T>& from, std::uint32_t first, Sparse<T>& to) {
    if (from.rows.size() == 0) return;
    append_rows(from.rows, first, to.rows);
    append(from.values, to.values);
}

}  // namespace

void TextList::add_new(const TextTable& table, std::int32_t& known) {
    for (; known < table.size(); ++known) {
        bytes.append(table.text(known), table.length(known));
        ends.push(static_cast<std::int64_t>(bytes.size()));
    }
}

void Aside::define_all_of(const Keys& event_keys, const Keys& argument_keys) {
    event_keys_.define_all_of(event_keys);
    argument_keys_.define_all_of(argument_keys);
}

void Aside::read(Stretch& stretch) {
    clear(stretch.columns);
    write_to(stretch.columns);
    tally = Tally();
    odd_ids_ = false;
    stretch.taken = take(stretch.start, stretch.end, stretch.offset);
    stretch.tally = tally;
    stretch.names.clear();
    stretch.categories.clear();
    stretch.texts.clear();
    stretch.identities.clear();
    stretch.event_keys.clear();
    stretch.argument_keys.clear();
    stretch.names.add_new(names.texts(), names_known_);
    stretch.categories.add_new(categories.texts(), categories_known_);
    stretch.texts.add_new(texts.texts(), texts_known_);
    stretch.identities.add_new(identities, identities_known_);
    stretch.event_keys.add_new(event_keys_.spellings(), event_keys_known_);
    stretch.argument_keys.add_new(argument_keys_.spellings(), argument_keys_known_);
    stretch.track_pid.clear();
    stretch.track_tid.clear();
    stretch.track_pid.append(track_pid.data() + tracks_known_, track_pid.size() - tracks_known_);
    stretch.track_tid.append(track_tid.data() + tracks_known_, track_tid.size() - tracks_known_);
    tracks_known_ = track_pid.size();
    // An id that is no number has become a number that only this reader knows the meaning of, and what is done about
    // keys that are too many depends on all that came before.
    stretch.usable = !odd_ids_ && event_keys_.has_room_for(1) && argument_keys_.has_room_for(1);
}

void append(const Columns& from, const Codes& codes, Columns& to) {
    const std::uint32_t first = static_cast<std::uint32_t>(to.name.size());
    append(from.name, codes.names, to.name);
    append(from.category, codes.categories, to.category);
    append(from.track, codes.tracks, to.track);
    append(from.phase, to.phase);
    append(from.time, to.time);
    append(from.duration, to.duration);
    append(from.flow_id, first, to.flow_id);
    for (std::size_t i = 0; i < from.arguments.size(); ++i) {
        const Argument& argument = *from.arguments[i];
        append(argument.integers, first, to.arguments[i]->integers);
        append(argument.reals, first, to.arguments[i]->reals);
        append_rows(argument.texts.rows, first, to.arguments[i]->texts.rows);
        append(argument.texts.values, codes.texts, to.arguments[i]->texts.values);
    }
}

}  // namespace torchdiag
