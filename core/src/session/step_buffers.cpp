#include "session/step_buffers.hpp"

#include <fmt/core.h>

#include "session/answers.hpp"

namespace bitnet::session {

result<void*> step_buffers::make(uint64_t bytes, bitnet_buffer*& slot) {
  bitnet_error err = blank_error();
  bitnet_buffer* raw = nullptr;
  if (auto ok = check(table_.buffer_create(device_, bytes, &raw, &err), err,
                      fmt::format("making a step buffer of {} bytes", bytes));
      !ok)
    return std::unexpected(std::move(ok.error()));
  handle<bitnet_buffer> made(raw, table_.buffer_destroy);
  if (auto ok = sane(bitnet_wrong_handle(raw), "buffer_create"); !ok)
    return std::unexpected(std::move(ok.error()));
  void* mapped = nullptr;
  void* again = nullptr;
  for (void** to : {&mapped, &again})
    if (auto ok = check(table_.buffer_map(raw, to, &err), err, "mapping a step buffer"); !ok)
      return std::unexpected(std::move(ok.error()));
  if (auto ok = sane(bitnet_wrong_mapping(mapped, again, bytes, alignment_bytes_), "buffer_map");
      !ok)
    return std::unexpected(std::move(ok.error()));
  for (const auto& [place, size] : places_)
    if (auto ok = sane(bitnet_wrong_overlap(place, size, mapped, bytes), "buffer_map"); !ok)
      return std::unexpected(std::move(ok.error()));
  places_.emplace_back(mapped, bytes);
  all_.push_back(std::move(made));
  slot = raw;
  return mapped;
}

}  // namespace bitnet::session
