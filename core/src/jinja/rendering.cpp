#include "jinja/rendering.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bitnet::jinja {

value rendering::wrong(bitnet_status status, const std::string& message) {
  if (!trouble_) trouble_ = failure{status, fmt::format("line {}: {}", line_, message)};
  return {};
}

bool rendering::step(uint64_t n) {
  if (!ok()) return false;
  steps_ += n;
  if (steps_ <= bounds_.steps) return true;
  wrong(BITNET_UNSUPPORTED,
        fmt::format("it takes more than {} steps for this conversation, which no template "
                    "may; give it fewer or shorter messages",
                    bounds_.steps));
  return false;
}

bool rendering::look_up(const dict& in, const value& key) {
  return look_up(key.is(value::kind::text) ? key.text().size() : 0, in.entries().size());
}

bool rendering::room(uint64_t bytes) {
  if (!ok()) return false;
  if (bytes <= room_left()) {
    bytes_ += bytes;
    most_bytes_ = std::max(most_bytes_, bytes_);
    return true;
  }
  wrong(BITNET_UNSUPPORTED,
        fmt::format("it makes more than {} MiB of text and values for this conversation, "
                    "which no template may; give it fewer or shorter messages",
                    bounds_.made_bytes >> 20U));
  return false;
}

value rendering::copy(std::string_view of_message) {
  return room(of_message.size()) ? kept({std::string(of_message), origin::message}) : value();
}

value rendering::copy(const marked_text& from, std::string_view piece) {
  return room((from.mixed() ? 2 : 1) * piece.size()) ? kept(from.part(piece)) : value();
}

value rendering::kept(marked_text content) {
  constexpr uint64_t header = 128;
  if (!room(header)) return {};
  return {std::move(content)};
}

value rendering::list(sequence items) {
  return room(items.size() * sizeof(value)) ? kept_list(std::move(items)) : value();
}

value rendering::tuple(sequence items) {
  return room(items.size() * sizeof(value)) ? kept_tuple(std::move(items)) : value();
}

bool rendering::put(dict& to, const value& key, value content) {
  // Entry in the list, which may have just grown, and in the index, which copies the text.
  constexpr uint64_t of_entry = 3 * sizeof(dict::entry) + 112;
  const uint64_t text = key.is(value::kind::text) ? key.text().size() : 0;
  if (!look_up(to, key) || !room(of_entry + text)) return true;
  return to.set(key, std::move(content));
}

bool rendering::put_all(dict& to, const dict& from) {
  for (const auto& [key, content] : from.entries())
    if (!step() || !put(to, key, content)) return false;
  return true;
}

value rendering::map(dict entries) {
  return room(sizeof(dict) + 32) ? counted(value(std::move(entries))) : value();
}

value rendering::code(function f) {
  constexpr uint64_t of_function = 192;  // including its captures
  return room(of_function) ? value(std::move(f)) : value();
}

value rendering::undefined(std::string why) {
  constexpr uint64_t header = 96;
  return room(header + why.size()) ? value::undefined(std::move(why)) : value();
}

value rendering::counted(value made) {
  constexpr uint64_t header = 112;
  if (!room(header)) return {};
  if (made.depth() > bounds_.value_depth)
    return wrong(fmt::format("lists lie more than {} deep in each other", bounds_.value_depth));
  return made;
}

void rendering::too_deep() {
  wrong(BITNET_UNSUPPORTED,
        fmt::format("calls lie more than {} deep in each other", bounds_.depth));
}

}  // namespace bitnet::jinja
