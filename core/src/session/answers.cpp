#include "session/answers.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "session/engine.hpp"

namespace bitnet::session {

result<void> sane(const char* wrong, const char* slot) {
  if (wrong == nullptr) return {};
  return fail(BITNET_REJECTED, fmt::format("{}() {}: the backend breaks its contract; request "
                                           "another device, and report it to the backend's author",
                                           slot, wrong));
}

result<std::vector<bitnet_kernel_stat>> stats_of(const bitnet_backend_v0& table,
                                                 bitnet_program* program) {
  bitnet_error err = blank_error();
  uint32_t count = 0;
  std::vector<bitnet_kernel_stat> out;
  const auto ask = [&]() -> result<void> {
    if (auto ok = check(table.program_stats(program, out.empty() ? nullptr : out.data(),
                                            sizeof(bitnet_kernel_stat), &count, &err),
                        err, "asking what ran");
        !ok)
      return ok;
    return sane(bitnet_wrong_count(count), "program_stats");
  };
  if (auto ok = ask(); !ok) return std::unexpected(std::move(ok.error()));
  out.resize(count);
  for (bitnet_kernel_stat& s : out) s.struct_size = sizeof s;
  if (auto ok = ask(); !ok) return std::unexpected(std::move(ok.error()));
  out.resize(std::min<std::size_t>(count, out.size()));
  for (const bitnet_kernel_stat& s : out)
    if (auto ok = sane(bitnet_wrong_stat(&s), "program_stats"); !ok)
      return std::unexpected(std::move(ok.error()));
  return out;
}

}  // namespace bitnet::session
