#include "jinja/rendering.hpp"

#include <fmt/format.h>

namespace bitnet::jinja {

value rendering::wrong(bitnet_status status, const std::string& message) {
  if (!trouble_) trouble_ = failure{status, fmt::format("line {}: {}", line_, message)};
  return {};
}

bool rendering::step(uint64_t n) {
  if (!ok()) return false;
  steps_ += n;
  if (steps_ <= bounds_.steps) return true;
  wrong(BITNET_UNSUPPORTED, fmt::format("it takes more than {} steps", bounds_.steps));
  return false;
}

bool rendering::room(uint64_t bytes) {
  if (!ok()) return false;
  if (bytes <= bounds_.made_bytes - bytes_) {
    bytes_ += bytes;
    return true;
  }
  wrong(BITNET_UNSUPPORTED,
        fmt::format("it makes more than {} MiB of text and values", bounds_.made_bytes >> 20U));
  return false;
}

value rendering::text(marked_text content) {
  constexpr uint64_t header = 48;
  if (!room(header + content.cost())) return {};
  return {std::move(content)};
}

value rendering::counted(value made) {
  constexpr uint64_t of_item = sizeof(value);
  constexpr uint64_t of_entry = 2 * sizeof(value) + 96;  // with its place in the index
  const uint64_t bytes = made.is_sequence() ? made.items().size() * of_item
                                            : made.entries().entries().size() * of_entry;
  if (!room(64 + bytes)) return {};
  if (made.depth() > bounds_.value_depth)
    return wrong(fmt::format("lists lie more than {} deep in each other", bounds_.value_depth));
  return made;
}

void rendering::too_deep() {
  wrong(BITNET_UNSUPPORTED,
        fmt::format("calls lie more than {} deep in each other", bounds_.depth));
}

}  // namespace bitnet::jinja
