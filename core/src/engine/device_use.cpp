#include "engine/device_use.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "bitnet/abi/tensor.h"
#include "trace/kernel_counts.hpp"

namespace bitnet::engine {
namespace {

std::string_view kernel_id(const char (&id)[64]) {
  return {id, strnlen(id, sizeof id)};
}

void add_kernels(std::vector<bitnet_kernel_stat>& to, const std::vector<bitnet_kernel_stat>& more) {
  for (const bitnet_kernel_stat& k : more) {
    const auto same = std::ranges::find_if(
        to, [&](const bitnet_kernel_stat& known) { return trace::is_same_kernel(known, k); });
    if (same == to.end()) {
      to.push_back(k);
      continue;
    }
    same->calls += k.calls;
    same->time_ns += k.time_ns;
    same->bytes += k.bytes;
  }
}

}  // namespace

std::optional<bitnet_kernel_info> device_use::describe(const bitnet_kernel_stat& kernel) const {
  std::optional<bitnet_kernel_info> found;
  if (known == nullptr) return found;
  const auto is_it = [&](const bitnet_kernel_info& k) {
    return kernel_id(k.id) == kernel_id(kernel.id);
  };
  // A part of a composite may be listed by its own op, but counted by the composite's.
  const bool by_op = std::ranges::any_of(
      *known, [&](const bitnet_kernel_info& k) { return is_it(k) && k.op == kernel.op; });
  for (const bitnet_kernel_info& k : *known) {
    if (!is_it(k) || (by_op && k.op != kernel.op)) continue;
    if (!found) {
      found = k;
      continue;
    }
    if (found->format != k.format) found->format = BITNET_FORMAT_NONE;
    found->level = std::min(found->level, k.level);
  }
  return found;
}

device_use use_of(const part& on, std::vector<bitnet_kernel_stat> kernels) {
  const select::choice& by = on.choice();
  return {by.backend->name(), by.backend->version(),     by.build_id, by.device_name(),
          by.device,          by.backend->opened_file(), by.kernels,  std::move(kernels)};
}

void add(std::vector<device_use>& to, const std::vector<device_use>& more) {
  for (const device_use& one : more) {
    const auto same = std::ranges::find_if(to, [&](const device_use& known) {
      return known.library == one.library && known.device == one.device;
    });
    if (same == to.end()) {
      to.push_back(one);
      add_kernels(to.back().kernels = {}, one.kernels);
    } else {
      add_kernels(same->kernels, one.kernels);
    }
  }
}

std::vector<device_use> since(const std::vector<device_use>& before, std::vector<device_use> now) {
  for (device_use& one : now) {
    const auto same = std::ranges::find_if(before, [&](const device_use& known) {
      return known.library == one.library && known.device == one.device;
    });
    if (same != before.end()) one.kernels = trace::since(same->kernels, one.kernels);
  }
  return now;
}

}  // namespace bitnet::engine
