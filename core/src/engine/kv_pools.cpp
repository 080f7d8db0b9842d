#include "engine/kv_pools.hpp"

#include <fmt/core.h>

#include <utility>

#include "compute/kv_types.hpp"
#include "plugin/loading/kept_state.hpp"

namespace bitnet::engine {

result<std::shared_ptr<const kv_pools>> kv_pools::make(const engine& e,
                                                       const bitnet_kv_config& config) {
  std::shared_ptr<kv_pools> all(new kv_pools(config));
  const model::hyperparameters& shape = e.model().shape();
  for (const auto& p : e.parts()) {
    const bool has_keys = shape.n_attending(p->what()) != 0;
    pool one{pool_of(config, shape, p->what()), has_keys, {nullptr, p->table().kv_pool_destroy}};
    if (has_keys || one.has_states()) {
      const plugin::kept_process kept(p->choice().backend->complaints());
      auto made = as_result(
          compute::make_pool(p->device(), one.config),
          fmt::format("backend {}: making room for the keys and values of {} tokens",
                      p->backend_name(), uint64_t{config.n_blocks} * config.block_tokens));
      if (!made) return std::unexpected(std::move(made.error()));
      one.made = std::move(*made);
    }
    all->pools_.push_back(std::move(one));
  }
  return std::shared_ptr<const kv_pools>(std::move(all));
}

uint64_t kv_pools::pool::block_bytes() const {
  if (!has_keys) return 0;
  const auto bytes = [&](uint32_t dtype) {
    return compute::kv_head_bytes(*compute::find_kv_type(dtype), config.head_dim_k);
  };
  return uint64_t{config.block_tokens} * config.n_layers * config.n_kv_heads *
         (bytes(config.dtype_k) + bytes(config.dtype_v));
}

}  // namespace bitnet::engine
