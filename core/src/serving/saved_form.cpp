#include "serving/saved_form.hpp"

#include <fmt/core.h>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/wording.hpp"
#include "compute/kv_types.hpp"

namespace bitnet::serving {
namespace {

constexpr const char* compute_again = "compute the prompt again and save it";

// The cpu backend gives the same bits on every processor; on other devices they depend on the
// driver.
std::string device_of(const engine::part& p) {
  const bitnet_device_info& d = p.choice().device;
  if (d.device_class == BITNET_DEVICE_CPU) return "";
  const auto text = [](const auto& field) {
    return std::string_view(field, ::strnlen(field, sizeof field));
  };
  return fmt::format(" on {} with driver {}", text(d.name), text(d.driver_version));
}

std::string computed_by(const engine::engine& e) {
  std::string out;
  for (const auto& p : e.parts())
    out +=
        fmt::format("{}{} {}{}, layers {} to {}", out.empty() ? "" : "; ", p->backend_name(),
                    p->choice().backend->version(), device_of(*p), p->what().first, p->what().last);
  return out;
}

std::string rotation_of(const model::rotation& r) {
  return fmt::format("base {} scale {} magnitude {} divisors {}", r.base, r.scale, r.magnitude,
                     static_cast<int64_t>(static_cast<int32_t>(r.divisors)));
}

// Text from outside becomes one line of printable characters.
std::string printable(std::string text) {
  for (char& c : text)
    if (c < 0x20 || c >= 0x7f) c = '?';
  return text;
}

}  // namespace

kv::saved_form form_of(const runner::model_runner& runner, const engine::session_options& options) {
  const engine::engine& on = *runner.on();
  const model::hyperparameters& shape = on.model().shape();
  const auto type = [](uint32_t dtype) -> std::string {
    return compute::find_kv_type(dtype)->name;
  };
  kv::saved_form out;
  out.block_bytes = runner.block_bytes();
  out.state_bytes = shape.state_elements() * sizeof(float);
  const schedule::step_limits& most = runner.limits();
  const std::string k = say(word::kv_k), v = say(word::kv_v);
  out.facts = {
      {.name = "kv_k",
       .value = type(options.dtype_k),
       .advice = "open the scheduler with that " + k,
       .called = k},
      {.name = "kv_v",
       .value = type(options.dtype_v),
       .advice = "open the scheduler with that " + v,
       .called = v},
      {.name = "window",
       .value = fmt::format("{}, keep {}", most.window, most.window_keep),
       .advice = "open the scheduler with that window and " + say(word::window_keep)},
      {.name = "deterministic",
       .value = options.deterministic ? "1" : "0",
       .advice = "open the scheduler with that value of deterministic"},
      {.name = "products",
       .value = fmt::format("{}", options.precisions),
       .advice = "open the scheduler with its precision"},
      {.name = "rotation",
       .value = rotation_of(on.model().rotation_of(most.n_context)),
       .advice = fmt::format("open the scheduler with the {} that it was saved with",
                             say(word::n_context))},
      {.name = "computed by", .value = computed_by(on), .advice = compute_again},
  };
  for (kv::fact& one : out.facts) one.value = printable(one.value);
  return out;
}

}  // namespace bitnet::serving
