#include "plan/pins.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/forms.hpp"
#include "settings/value.hpp"

namespace bitnet::host::plans {
namespace {

constexpr uint32_t most_devices = 64;  // that a model can be divided among

std::unexpected<failure> cannot_cut(const std::string& why) {
  return fail(exit_code::not_kept,
              fmt::format("the plan cannot be kept to: {}; a model is cut into layers for the cpu, "
                          "from the first one on, and layers for the devices of one other backend, "
                          "by their indices",
                          why));
}

}  // namespace

std::optional<uint32_t> device_index(std::string_view device) {
  const std::size_t colon = device.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto n = parse_integer(device.substr(colon + 1));
  if (!n || *n < 0 || *n >= most_devices) return std::nullopt;
  return static_cast<uint32_t>(*n);
}

result<pins> pins_of(const plan& of) {
  const std::string& backend = of.parts.back().backend;
  const auto first = std::ranges::find(of.parts, backend, &part::backend);
  if (std::any_of(first, of.parts.end(), [&](const part& p) { return p.backend != backend; }) ||
      first - of.parts.begin() > 1)
    return cannot_cut("its parts are on more than two backends, or in another order");
  if (first != of.parts.begin() && of.parts.front().backend != "cpu")
    return cannot_cut(fmt::format("its first layers are on {}", of.parts.front().device));
  pins out{.backend = backend, .all_layers = first == of.parts.begin()};
  for (auto p = first; p != of.parts.end(); ++p) {
    const auto index = device_index(p->device);
    if (!index || *index < out.shares.size())
      return cannot_cut(
          fmt::format("{} comes behind a device with a larger index, or twice", p->device));
    out.shares.resize(*index + 1, 0);
    // The shares cannot express a device with only the head or the embedding.
    if (p->n_layers == 0) return cannot_cut(fmt::format("{} has no layers", p->device));
    out.shares.back() = static_cast<float>(p->n_layers);
    out.n_layers += p->n_layers;
  }
  out.params = of.forms;
  const bool says_isa = std::ranges::any_of(
      of.forms, [](const std::string& one) { return one.starts_with("cpu.isa="); });
  for (const part& p : of.parts)
    if (const std::string isa = isa_of(p); !isa.empty() && !says_isa)
      out.params.push_back("cpu.isa=" + isa);
  return out;
}

}  // namespace bitnet::host::plans
