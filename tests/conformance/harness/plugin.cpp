#include "harness/plugin.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "harness/named_slots.hpp"
#include "model/one_op.hpp"
#include "model/requests.hpp"

namespace bitnet::conformance {
namespace {

options given_options;  // NOLINT(bugprone-throwing-static-initialization): empty strings and lists

bitnet_error blank() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

}  // namespace

const options& run_options() {
  return given_options;
}
void set_run_options(const options& o) {
  given_options = o;
}

bitnet_backend_entry entry_of_plugin() {
  static void* library = [] {
    const std::string path = std::filesystem::absolute(run_options().file).string();
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    return handle;
  }();
  void* symbol = dlsym(library, BITNET_BACKEND_ENTRY_NAME);
  if (symbol == nullptr)
    throw std::runtime_error(run_options().file + " does not export " BITNET_BACKEND_ENTRY_NAME);
  return reinterpret_cast<bitnet_backend_entry>(symbol);
}

bool inside_plugin(const void* address) {
  Dl_info found{};
  if (run_options().file.empty() || dladdr(address, &found) == 0 || found.dli_fname == nullptr)
    return false;
  std::error_code ignored;
  return std::filesystem::equivalent(found.dli_fname, run_options().file, ignored);
}

guarded_table::guarded_table(uint32_t struct_size) : struct_size_(struct_size) {
  std::fill_n(room_, struct_size, pattern);
  std::fill(room_ + struct_size, std::end(room_), canary);
  get().struct_size = struct_size;
}
uint32_t guarded_table::overrun() const {
  return static_cast<uint32_t>(std::count_if(room_ + struct_size_, std::end(room_),
                                             [](unsigned char b) { return b != canary; }));
}
bool guarded_table::untouched(uint32_t from) const {
  return std::all_of(room_ + std::min(from, struct_size_), room_ + struct_size_,
                     [](unsigned char b) { return b == pattern; });
}

outcome call_entry(bitnet_backend_entry entry, const bitnet_host_v0* host, bitnet_backend_v0& table,
                   const open_how& how) {
  std::vector<bitnet_param> params;
  for (const auto& [key, value] : run_options().settings)
    params.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
  bitnet_open_request request{};
  request.struct_size = sizeof request;
  request.purpose = how.purpose;
  request.abi_minor_min = BITNET_ABI_OLDEST_MINOR;
  request.abi_minor_max = BITNET_ABI_MINOR;
  request.generation = how.generation;
  request.n_params = static_cast<uint32_t>(params.size());
  request.params = params.empty() ? nullptr : params.data();
  if (how.change) how.change(request);
  return attempt([&](bitnet_error* e) { return entry(host, &request, &table, e); });
}

opened::opened(const open_how& how) : host_(how.width) {
  table_.struct_size = sizeof table_;
  const bitnet_backend_entry entry = how.entry != nullptr ? how.entry : entry_of_plugin();
  const outcome o = call_entry(entry, host_.table(), table_, how);
  if (o.status != BITNET_OK) throw call_failed(o);
  name_slots(table_);
}

opened::~opened() {
  bitnet_error err = blank();
  constexpr uint64_t patience_ns = 30'000'000'000;
  if (table_.quiesce != nullptr) table_.quiesce(table_.self, patience_ns, &err);
  if (table_.close != nullptr) table_.close(table_.self);
  host_.forbid("close");
}

opened_device::opened_device(const open_how& how) : backend(how) {
  must([&](bitnet_error* e) { return open_device(table(), run_options().device, &device, e); });
}
opened_device::~opened_device() {
  if (device != nullptr) table().device_close(device);
}

bitnet_device_info opened_device::info() const {
  bitnet_device_info out{};
  out.struct_size = sizeof out;
  must([&](bitnet_error* e) {
    return table().device_info(table().self, run_options().device, &out, e);
  });
  return out;
}

std::vector<uint32_t> opened_device::levels(const model& m) const {
  const std::vector<bitnet_port> ports = m.ports();
  const bitnet_graph graph = m.graph(ports);
  const std::vector<bitnet_tensor_desc> descs = m.descs();
  const bitnet_program_options options = least_options();
  const bitnet_query_request r = query_request(graph, descs, options);
  std::vector<uint32_t> out(m.ops.size(), BITNET_LEVEL_NONE);
  bitnet_graph_estimate estimate{};
  estimate.struct_size = sizeof estimate;
  must([&](bitnet_error* e) { return table().graph_query(device, &r, out.data(), &estimate, e); });
  return out;
}

uint32_t opened_device::level(uint32_t op, uint32_t format) const {
  const model m = one_op_model(op, format);
  const auto is_it = [&](const bitnet_op& o) { return o.op == op; };
  const auto at = std::ranges::find_if(m.ops, is_it) - m.ops.begin();
  return levels(m)[static_cast<std::size_t>(at)];
}

void opened_device::list_kernels() const {
  uint32_t n = 0;
  attempt([&](bitnet_error* e) {
    return table().kernels(table().self, run_options().device, nullptr, 0, &n, e);
  });
}

std::vector<bitnet_kernel_info> opened_device::kernels() const {
  uint32_t n = 0;
  must([&](bitnet_error* e) {
    return table().kernels(table().self, run_options().device, nullptr, 0, &n, e);
  });
  constexpr uint32_t most_kernels = 65536;
  if (n > most_kernels) throw std::runtime_error(std::to_string(n) + " kernels");
  std::vector<bitnet_kernel_info> out(n);
  must([&](bitnet_error* e) {
    return table().kernels(table().self, run_options().device, out.data(),
                           sizeof(bitnet_kernel_info), &n, e);
  });
  out.resize(std::min<std::size_t>(n, out.size()));
  return out;
}

}  // namespace bitnet::conformance
