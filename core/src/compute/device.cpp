#include "compute/device.hpp"

namespace bitnet::compute {

attempt<device> device::open(const bitnet_backend_v0& table, uint32_t index,
                             const bitnet_device_info& info) {
  bitnet_device_request request{};
  request.struct_size = sizeof request;
  request.index = index;
  auto made = take<bitnet_device>("device_open", table.device_close, [&](auto** out, auto* err) {
    return table.device_open(table.self, &request, out, err);
  });
  if (!made) return std::unexpected(std::move(made.error()));
  return device(table, std::move(*made), info.buffer_alignment_bytes);
}

activity device::status() const {
  activity out;
  if (table_->device_status == nullptr) return out;
  bitnet_device_status s{};
  s.struct_size = sizeof s;
  constexpr const char* slot = "device_status";
  attempt<void> asked;
  try {
    asked = call(slot, [&](bitnet_error* err) { return table_->device_status(get(), &s, err); });
  } catch (...) {  // a report must not fail for an optional part
    asked = sane(slot, "lets an exception out");
  }
  if (!asked && asked.error().status == BITNET_UNSUPPORTED) return out;
  if (asked) asked = sane(slot, bitnet_wrong_device_status(&s));
  if (asked)
    out.reported = s;
  else
    out.rejected =
        fmt::format("{}() {}{}", slot,
                    asked.error().status == BITNET_OK ? "" : "failed: ", asked.error().reason);
  return out;
}

bool device::support::complete(const graph& g) const {
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] == BITNET_LEVEL_NONE && g.ops[i].op < BITNET_OP_FIRST_COMPOSITE) return false;
  return true;
}

attempt<device::support> device::query(const graph& g, std::span<const bitnet_tensor_desc> descs,
                                       const bitnet_program_options& options,
                                       const bitnet_kv_config* kv) const {
  const bitnet_graph seen = g.view();
  bitnet_query_request request{};
  request.struct_size = sizeof request;
  request.desc_size = sizeof(bitnet_tensor_desc);
  request.graph = &seen;
  request.descs = descs.data();
  request.n_descs = static_cast<uint32_t>(descs.size());
  request.options = &options;
  request.kv = kv;
  support out;
  out.levels.assign(g.ops.size(), BITNET_LEVEL_NONE);
  out.needs.struct_size = sizeof out.needs;
  if (auto ok = call("graph_query",
                     [&](bitnet_error* err) {
                       return table_->graph_query(device_.get(), &request, out.levels.data(),
                                                  &out.needs, err);
                     });
      !ok)
    return std::unexpected(std::move(ok.error()));
  const char* wrong =
      bitnet_wrong_levels(out.levels.data(), static_cast<uint32_t>(out.levels.size()));
  if (wrong == nullptr && out.complete(g))
    wrong = bitnet_wrong_estimate(&out.needs, kv != nullptr ? 1 : 0);
  if (auto ok = sane("graph_query", wrong); !ok) return std::unexpected(std::move(ok.error()));
  return out;
}

result<void> check_support(const device& d, const graph& g,
                           std::span<const bitnet_tensor_desc> descs,
                           const bitnet_program_options& options, const bitnet_kv_config* kv) {
  const auto known = as_result(d.query(g, descs, options, kv), "asking what it can compute");
  if (!known) return std::unexpected(known.error());
  for (std::size_t i = 0; i < g.ops.size(); ++i) {
    const bitnet_op& o = g.ops[i];
    if (o.op >= BITNET_OP_FIRST_COMPOSITE || known->levels[i] != BITNET_LEVEL_NONE) continue;
    const uint32_t w = o.weights[0];
    return fail(
        BITNET_UNSUPPORTED,
        fmt::format("it cannot compute {}{}, which is needed; choose another device", op_name(o.op),
                    w != BITNET_NONE ? fmt::format(" on {} weights", format_name(descs[w].format))
                    : o.op == BITNET_OP_ATTN_PAGED && o.ints[4] != 0 ? " with a window of a layer"
                                                                     : ""));
  }
  return {};
}

attempt<weights> weights::create(const device& d, std::span<const bitnet_tensor_desc> descs,
                                 uint64_t cancel_token) {
  const bitnet_backend_v0& t = d.table();
  bitnet_weights_request request{};
  request.struct_size = sizeof request;
  request.desc_size = sizeof(bitnet_tensor_desc);
  request.n = static_cast<uint32_t>(descs.size());
  request.descs = descs.data();
  request.cancel_token = cancel_token;
  auto made = take<bitnet_weights>("weights_create", t.weights_destroy, [&](auto** out, auto* err) {
    return t.weights_create(d.get(), &request, out, err);
  });
  if (!made) return std::unexpected(std::move(made.error()));
  return weights(t, std::move(*made));
}

attempt<void> weights::write(uint32_t index, uint64_t offset, std::span<const std::byte> bytes) {
  return call("weight_write", [&](bitnet_error* err) {
    return table_->weight_write(get(), index, offset, bytes.data(), bytes.size(), err);
  });
}

attempt<void> weights::alias(uint32_t index, std::span<const std::byte> bytes) {
  return call("weight_alias", [&](bitnet_error* err) {
    return table_->weight_alias(get(), index, bytes.data(), bytes.size(), err);
  });
}

attempt<void> weights::seal(uint32_t index) {
  return call("weight_seal",
              [&](bitnet_error* err) { return table_->weight_seal(get(), index, err); });
}

attempt<bitnet_weight_plan> plan(const device& d, const bitnet_tensor_desc& desc) {
  bitnet_weight_plan out{};
  out.struct_size = sizeof out;
  if (auto ok =
          call("weight_plan",
               [&](bitnet_error* err) { return d.table().weight_plan(d.get(), &desc, &out, err); });
      !ok)
    return std::unexpected(std::move(ok.error()));
  if (auto ok = sane("weight_plan", bitnet_wrong_weight_plan(&out)); !ok)
    return std::unexpected(std::move(ok.error()));
  return out;
}

attempt<handle<bitnet_kv_pool>> make_pool(const device& d, const bitnet_kv_config& config) {
  return take<bitnet_kv_pool>(
      "kv_pool_create", d.table().kv_pool_destroy,
      [&](auto** out, auto* err) { return d.table().kv_pool_create(d.get(), &config, out, err); });
}

}  // namespace bitnet::compute
