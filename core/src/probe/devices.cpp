#include "probe/devices.hpp"

#include <fmt/core.h>

#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "plugin/codes/text.hpp"
#include "plugin/loading/foreign_error.hpp"
#include "plugin/loading/running_call.hpp"

namespace bitnet::probe {
namespace {

std::unexpected<plugin::defect> failed(const std::string& call, bitnet_status status,
                                       const bitnet_error& error) {
  const bool absent = status == BITNET_UNAVAILABLE;
  return std::unexpected(plugin::defect{
      absent ? plugin::code::probe_unavailable : plugin::code::probe_failed, BITNET_UNAVAILABLE,
      absent ? plugin::describe(status, error)
             : fmt::format("{} failed: {}", call, plugin::describe(status, error)),
      ""});
}

std::unexpected<plugin::defect> impossible(const std::string& what) {
  return plugin::reject(plugin::code::probe_answer,
                        fmt::format("the backend gives an impossible answer: {}", what));
}

template <std::size_t N>
void clean(char (&text)[N]) {
  const std::string copy = plugin::printable_array(text).substr(0, N - 1);
  std::fill(std::copy(copy.begin(), copy.end(), text), text + N, '\0');
}

// Rejects an array without its NUL, which a host would read past.
template <std::size_t N>
bool ends(const char (&text)[N]) {
  return std::memchr(text, 0, N) != nullptr;
}

plugin::checked<bitnet_device_info> read_info(const bitnet_backend_v0& t, uint32_t index) {
  bitnet_device_info info{};
  info.struct_size = sizeof info;
  bitnet_error error = plugin::blank_error();
  const plugin::running_call now("device_info");
  if (const auto s = t.device_info(t.self, index, &info, &error); s != BITNET_OK)
    return failed(fmt::format("device_info({})", index), s, error);
  if (info.struct_size != sizeof info)
    return impossible(fmt::format("device_info({}) changed struct_size from {} to {}", index,
                                  sizeof info, info.struct_size));
  if (!ends(info.name) || !ends(info.uuid) || !ends(info.pci_address) || !ends(info.arch) ||
      !ends(info.driver_version))
    return impossible(fmt::format("a text of device {} has no end", index));
  if (info.buffer_alignment_bytes != 0 && !std::has_single_bit(info.buffer_alignment_bytes))
    return impossible(fmt::format("device {} wants an alignment of {} bytes", index,
                                  info.buffer_alignment_bytes));
  // Classes of a later minor rank like the last known one.
  if (info.device_class < BITNET_DEVICE_CPU || info.device_class > BITNET_DEVICE_OTHER)
    info.device_class = BITNET_DEVICE_OTHER;
  clean(info.name);
  clean(info.uuid);
  clean(info.pci_address);
  clean(info.arch);
  clean(info.driver_version);
  return info;
}

}  // namespace

plugin::checked<std::vector<bitnet_kernel_info>> list_kernels(const plugin::backend& b,
                                                              uint32_t index) {
  const bitnet_backend_v0& t = b.table();
  const std::string call = fmt::format("kernels({})", index);
  const plugin::running_call now("kernels");
  uint32_t count = 0;
  bitnet_error error = plugin::blank_error();
  if (const auto s = t.kernels(t.self, index, nullptr, sizeof(bitnet_kernel_info), &count, &error);
      s != BITNET_OK)
    return failed(call, s, error);
  if (count > max_kernels) return impossible(fmt::format("{} kernels", count));
  std::vector<bitnet_kernel_info> out(count);
  for (bitnet_kernel_info& k : out) k.struct_size = sizeof k;
  uint32_t again = count;
  error = plugin::blank_error();
  if (const auto s =
          t.kernels(t.self, index, out.data(), sizeof(bitnet_kernel_info), &again, &error);
      s != BITNET_OK)
    return failed(call, s, error);
  if (again != count) return impossible(fmt::format("first {} kernels, then {}", count, again));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!ends(out[i].id))
      return impossible(fmt::format("the id of kernel {} of device {} has no end", i, index));
    clean(out[i].id);
  }
  return out;
}

plugin::checked<std::vector<device_report>> list_devices(const plugin::backend& b) {
  const bitnet_backend_v0& t = b.table();
  uint32_t count = 0;
  bitnet_error error = plugin::blank_error();
  {
    const plugin::running_call now("device_count");
    if (const auto s = t.device_count(t.self, &count, &error); s != BITNET_OK)
      return failed("device_count()", s, error);
  }
  if (count > max_devices) return impossible(fmt::format("{} devices", count));
  if (count == 0)
    return std::unexpected(plugin::defect{plugin::code::probe_no_device, BITNET_UNAVAILABLE,
                                          "no device on this machine", ""});
  std::vector<device_report> out(count);
  for (uint32_t i = 0; i < count; ++i) {
    auto info = read_info(t, i);
    if (!info) return std::unexpected(std::move(info.error()));
    auto kernels = list_kernels(b, i);
    if (!kernels) return std::unexpected(std::move(kernels.error()));
    out[i].info = *info;
    out[i].kernels = std::move(*kernels);
  }
  return out;
}

}  // namespace bitnet::probe
