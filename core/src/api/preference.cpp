#include "api/preference.hpp"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "plugin/codes/text.hpp"

namespace bitnet::api {

result<preference> find_preference(bitnet_runtime& runtime, const select::choice& here,
                                   const char* list, const char* function, const char* what) {
  preference out;
  out.wanted = runtime.request;
  out.wanted.text = list;
  out.wanted.requested_by = function;
  out.wanted.require_first = false;
  std::vector<std::string> late;
  auto choice = runtime.choose_other(out.wanted, {}, &late);
  if (!choice) return std::unexpected(std::move(choice.error()));
  out.to = *std::move(choice);
  out.stays = here.backend == out.to.backend && here.device_index == out.to.device_index;
  if (late.empty()) return out;
  const std::string text = fmt::format(
      "{} has not answered yet, so the {} {} {}; ask again once bitnet_runtime_wait_probes "
      "says that it has",
      plugin::join(late, ", "), what, out.stays ? "stays on" : "goes to", out.to.device_name());
  if (out.stays) return fail(BITNET_TIMEOUT, text);
  runtime.services.log(BITNET_LOG_WARN, what, text);
  return out;
}

}  // namespace bitnet::api
