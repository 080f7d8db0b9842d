// Options that divide a model among devices, and the runtime's part of it.
#include "engine/split.hpp"

#include <fmt/core.h>

#include "api/edge.hpp"
#include "api/objects.hpp"
#include "base/wording.hpp"
#include "select/request.hpp"

using bitnet::say;
using bitnet::word;
using bitnet::select::request;

bitnet::result<bitnet::engine::split_options> bitnet::api::split_options_of(
    const bitnet_model_options& o) {
  bitnet::engine::split_options out;
  if (o.gpu_layers > BITNET_GPU_LAYERS_COUNT)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        fmt::format("gpu_layers must be AUTO, ALL or COUNT, found {}; use a "
                                    "constant of bitnet.h",
                                    o.gpu_layers));
  if (o.gpu_layers != BITNET_GPU_LAYERS_COUNT && o.n_gpu_layers != 0)
    return bitnet::fail(BITNET_INVALID_ARGUMENT,
                        fmt::format("{} is {}, which counts with gpu_layers COUNT only",
                                    say(word::n_gpu_layers), o.n_gpu_layers));
  if (o.gpu_layers == BITNET_GPU_LAYERS_ALL) out.n_layers = UINT32_MAX;
  if (o.gpu_layers == BITNET_GPU_LAYERS_COUNT) out.n_layers = o.n_gpu_layers;
  if (o.split_mode > BITNET_SPLIT_NONE)
    return bitnet::fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("{} must be LAYER or NONE, found {}; use a constant of bitnet.h",
                    say(word::split_mode), o.split_mode));
  out.whole_only = o.split_mode == BITNET_SPLIT_NONE;
  if (auto ok = listed(o.tensor_split, o.n_tensor_split, say(word::tensor_split).c_str()); !ok)
    return std::unexpected(ok.error());
  if (o.n_tensor_split > bitnet::engine::most_split_devices)
    return bitnet::fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("{} has {} shares; expected at most {}", say(word::tensor_split),
                    o.n_tensor_split, bitnet::engine::most_split_devices));
  out.shares.assign(o.tensor_split, o.tensor_split + o.n_tensor_split);
  if (auto ok = bitnet::engine::check_shares(out.shares); !ok) return std::unexpected(ok.error());
  if (out.whole_only && !out.shares.empty())
    return bitnet::fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format("{} shares a model out over devices, and {} keeps it on one; leave "
                    "one of them out",
                    say(word::tensor_split), say(word::split_mode)));
  const auto planned = take_options(o.planned, bitnet_session_defaults, "the planned options");
  if (!planned) return std::unexpected(planned.error());
  auto session = session_options_of(*planned);
  if (!session) return std::unexpected(session.error());
  out.planned = *std::move(session);
  return out;
}

namespace {

// The split option, not the request, says which device of a backend has which share.
bitnet::result<void> check_no_index(const request& wanted) {
  const auto wishes = bitnet::select::parse_request(wanted.text, wanted.requested_by);
  if (!wishes) return std::unexpected(wishes.error());
  for (const auto& w : *wishes)
    if (w.index)
      return bitnet::fail(BITNET_INVALID_ARGUMENT,
                          fmt::format("{} shares layers out over the devices of a backend, and "
                                      "the request names one of them, {}; name the backend alone, "
                                      "and give 0 to devices that get nothing",
                                      say(word::tensor_split), w.text));
  return {};
}

}  // namespace

bitnet::result<bitnet::engine::placement> bitnet_model::place(
    const bitnet::select::choice& wanted) const {
  if (!split.shares.empty())
    if (auto ok = check_no_index(runtime->request); !ok) return std::unexpected(ok.error());
  const auto choose = [&](std::string text) {
    request one;
    one.text = std::move(text);
    one.requested_by = "the split of a model";
    return runtime->choose_other(one, runtime->lost.all());
  };
  const request& general = runtime->request;
  const bool strict = general.require_first || general.strict;
  const bitnet::engine::split_access access = {
      .cpu = [&] { return choose("cpu"); },
      .of_backend =
          [&](uint32_t index) {
            // Indices in requests count devices from the best one.
            for (uint32_t rank = 0; rank < bitnet::engine::most_split_devices; ++rank)
              if (auto c = choose(fmt::format("{}:{}", wanted.backend->name(), rank));
                  c && c->device_index == index && c->backend->name() == wanted.backend->name())
                return c;
            return bitnet::result<bitnet::select::choice>(
                bitnet::fail(BITNET_UNAVAILABLE,
                             fmt::format("backend {} has no device {} that can be used; {} to see "
                                         "what there is",
                                         wanted.backend->name(), index, say(word::probe_all))));
          },
      .may_leave = !strict && (general.text == "auto" || general.allow_fallback),
      .is_required = strict,
      .log = [&](uint32_t level,
                 const std::string& text) { runtime->services.log(level, "model", text); }};
  return bitnet::engine::split(wanted, model, split, budget, copies, access);
}
