#include "recording.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace bitnet::cuda {

grid launch_api::grid_for(const context& c, const gpu::command& one) noexcept {
  const auto& run = static_cast<const kernel&>(*one.run);
  return grid_of(run.form, run.spec, one.params.data(), one.groups_x, one.groups_y,
                 c.facts.common.compute_units);
}

uint32_t launch_api::groups_among(const context& c, std::span<const gpu::command> joined,
                                  const gpu::command& one) noexcept {
  const auto& run = static_cast<const kernel&>(*one.run);
  if (run.spec.id != gpu::kernel_id::bit_linear) return grid_for(c, one).x;
  uint64_t rows = 0;
  for (const gpu::command& each : joined) {
    gpu::bit_linear_params p{};
    std::memcpy(&p, each.params.data(), sizeof p);
    rows += p.n_rows;
  }
  return grid_of(run.form, run.spec, one.params.data(), one.groups_x, one.groups_y,
                 c.facts.common.compute_units, rows)
      .x;
}

recording::~recording() {
  if (!graph_ && clock_.empty()) return;
  const current mine(context_);
  clear();
}

void recording::clear() noexcept {
  if (ready_) context_.cu.cuGraphExecDestroy(std::exchange(ready_, nullptr));
  if (graph_) context_.cu.cuGraphDestroy(std::exchange(graph_, nullptr));
  for (CUevent e : clock_) context_.cu.cuEventDestroy(e);
  clock_.clear();
  before_ = level_ = {};
  forget_gathered();
  beside_ = false;
}

void recording::next_level() {
  if (level_.nodes.empty()) return;
  before_ = std::exchange(level_, {});
}

bitnet_status recording::build(std::span<const gpu::command> commands,
                               const sdk::reporter& report) {
  // Timed commands run one by one.
  bitnet_status s = make(commands, of_device_.wanted() && !timed_, report);
  if (refused_ != CUDA_SUCCESS) {
    of_device_.refuse(std::exchange(refused_, CUDA_SUCCESS));
    s = make(commands, false, report);
  }
  if (!sdk::failed(s) && beside_) commands_.assign(commands.begin(), commands.end());
  return s;
}

bitnet_status recording::make(std::span<const gpu::command> commands, bool overlap,
                              const sdk::reporter& report) {
  clear();
  overlap_ = overlap;
  const library& cu = context_.cu;
  const CUresult made = cu.cuGraphCreate(&graph_, 0);
  if (made != CUDA_SUCCESS) {
    graph_ = nullptr;
    return context_.check(made, "cuGraphCreate", report);
  }
  if (bitnet_status s = prepare_gathering(commands, report); sdk::failed(s)) return s;
  if (gathered_) {
    if (bitnet_status s =
            add_copy(gathered_->address(), facts_->address(), gathered_->size(), report);
        sdk::failed(s))
      return s;
    next_level();
  }
  if (timed_)
    if (bitnet_status s = add_clock(report); sdk::failed(s)) return s;
  for (size_t i = 0; i < commands.size();) {
    if (commands[i].after || timed_) next_level();
    const size_t n = count_joined(commands.subspan(i));
    if (bitnet_status s = add(commands.subspan(i, n), report); sdk::failed(s)) return s;
    i += n;
    if (!timed_) continue;
    next_level();
    if (bitnet_status s = add_clock(report); sdk::failed(s)) return s;
  }
  return instantiate(report);
}

bitnet_status recording::instantiate(const sdk::reporter& report) {
  const CUresult ready = context_.cu.cuGraphInstantiate(&ready_, graph_, 0);
  if (ready != CUDA_SUCCESS) ready_ = nullptr;
  return check_refusal(ready, "cuGraphInstantiate", report);
}

bool recording::may_be_refusal(CUresult result) const noexcept {
  return beside_ && (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED);
}

bitnet_status recording::check_refusal(CUresult result, const char* call,
                                       const sdk::reporter& report) {
  if (!may_be_refusal(result)) return context_.check(result, call, report);
  refused_ = result;
  return BITNET_UNSUPPORTED;
}

bitnet_status recording::add(std::span<const gpu::command> joined, const sdk::reporter& report) {
  return joined[0].run ? add_kernel(joined, report) : add_copies(joined[0], report);
}

bitnet_status recording::describe(const gpu::command& one, launch& values,
                                  const sdk::reporter& report) const {
  if (bitnet_status s = launch_recording::describe(one, values, report); sdk::failed(s)) return s;
  values.most_looks = kernel_of(one).most_looks;
  const grid how = grid_for(one);
  return how.tiled && how.tiled->tile.boxes ? describe_boxes(one, how.tiled->tile, values, report)
                                            : BITNET_OK;
}

// Adds a kernel node for one command, or for several joined commands of one kernel.
bitnet_status recording::add_kernel(std::span<const gpu::command> joined,
                                    const sdk::reporter& report) {
  const kernel& run = kernel_of(joined[0]);
  joined_launch values{};
  CUDA_KERNEL_NODE_PARAMS node{};
  const auto of_one = [&](const gpu::command& one, launch& value) {
    return describe(one, value, report);
  };
  if (bitnet_status s = join(joined, values, node.gridDimX, of_one); sdk::failed(s)) return s;
  void* parameters[] = {&values};  // the driver copies it; begins with a `launch`
  const grid how = grid_for(joined[0]);
  const size_t tile = how.tiled ? static_cast<size_t>(how.tiled - run.form.tiled) : 0;
  if (joined.size() > 1)
    node.func = how.tiled ? run.joined_tiled[tile] : run.joined;
  else
    node.func = how.tiled ? run.tiled[tile] : run.function;
  node.gridDimY = how.y;
  node.gridDimZ = 1;
  node.blockDimX = how.tiled ? how.tiled->tile.threads : group_threads;
  node.blockDimY = node.blockDimZ = 1;
  node.sharedMemBytes = how.tiled ? how.tiled->tile.shared_bytes : run.form.shared_bytes;
  node.kernelParams = parameters;
  const bool beside = overlap_ && before_.kernels_only && !before_.nodes.empty();
  CUgraphNode made = nullptr;
  if (bitnet_status s =
          context_.check(context_.cu.cuGraphAddKernelNode(&made, graph_, before_.nodes.data(),
                                                          beside ? 0 : before_.nodes.size(), &node),
                         "cuGraphAddKernelNode", report);
      sdk::failed(s))
    return s;
  level_.nodes.push_back(made);
  return beside ? add_beside(made, report) : BITNET_OK;
}

// Describes the matrices of linear_ternary to the copy engine: bindings 1 (activations) and 3
// (weights). The number of rows of activations is that of the binding; a step may use fewer.
bitnet_status recording::describe_boxes(const gpu::command& one, const tile_form& tile,
                                        launch& values, const sdk::reporter& report) const {
  gpu::linear_ternary_params p{};
  std::memcpy(&p, values.params, sizeof p);
  const uint64_t of_token = 4 * gpu::i8_row_words(p.k), of_row = uint64_t{4} * p.row_words;
  const struct {
    uint32_t binding;
    uint64_t row_bytes, rows;
    uint32_t box_bytes, box_rows;
    CUtensorMapSwizzle turned;
  } matrices[] = {{.binding = 1,
                   .row_bytes = of_token,
                   .rows = one.bindings[1].bytes / of_token,
                   .box_bytes = 128,
                   .box_rows = tile.tokens,
                   .turned = CU_TENSOR_MAP_SWIZZLE_128B},
                  {.binding = 3,
                   .row_bytes = of_row,
                   .rows = p.n_rows,
                   .box_bytes = 64,
                   .box_rows = tile.rows,
                   .turned = CU_TENSOR_MAP_SWIZZLE_64B}};
  // CUtensorMap is aligned to 64 bytes in headers before CUDA 13; driver and copy engine need 64.
  static_assert(sizeof values.boxes[0] == sizeof(CUtensorMap) &&
                alignof(tensor_map) % alignof(CUtensorMap) == 0);
  for (size_t i = 0; i < std::size(matrices); ++i) {
    const auto& m = matrices[i];
    const cuuint64_t size[2] = {m.row_bytes, m.rows}, stride[1] = {m.row_bytes};
    const cuuint32_t box[2] = {m.box_bytes, m.box_rows}, each[2] = {1, 1};
    CUtensorMap made;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the call takes a device address as a pointer
    void* const address = reinterpret_cast<void*>(values.memory[m.binding]);
    const CUresult result = context_.cu.cuTensorMapEncodeTiled(
        &made, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, address, size, stride, box, each,
        CU_TENSOR_MAP_INTERLEAVE_NONE, m.turned, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (bitnet_status s = context_.check(result, "cuTensorMapEncodeTiled", report); sdk::failed(s))
      return s;
    std::memcpy(&values.boxes[i], &made, sizeof made);
  }
  return BITNET_OK;
}

// Adds programmatic edges from the previous level to `made`: the driver may launch the kernel as
// soon as every group of the kernels before it has begun.
//
// Order     as with full edges. Before its wait (BITNET_KERNEL_BY) a kernel accesses no memory, but
//           may request weights (BITNET_KERNEL_JOINED), which no command writes. The wait ends
//           when the kernels that it has an edge from are complete and their writes visible. Those
//           kernels have waited for the level before them, so all earlier levels are complete.
// Progress  at most two levels are on the device, since kernels of a third level are launched only
//           after the wait of the second. A waiting kernel cannot starve the kernels that it waits
//           for: their groups are already resident.
// Limits    copies and event records are no kernels, so a level that has one keeps full edges.
bitnet_status recording::add_beside(CUgraphNode made, const sdk::reporter& report) {
  beside_ = true;
  const size_t count = before_.nodes.size();
  CUgraphEdgeData edge{};
  edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  const std::vector<CUgraphNode> to(count, made);
  const std::vector<CUgraphEdgeData> edges(count, edge);
  return check_refusal(context_.cu.cuGraphAddDependencies_v2(graph_, before_.nodes.data(),
                                                             to.data(), edges.data(), count),
                       "cuGraphAddDependencies", report);
}

bitnet_status recording::add_copies(const gpu::command& one, const sdk::reporter& report) {
  // Copy ranges are offsets in whole buffers, not in bindings.
  const device_buffer* from = memory_of(one.bindings[0]);
  const device_buffer* to = memory_of(one.bindings[1]);
  constexpr uint64_t most = uint64_t{1} << 30;  // of one node, whose width is also its pitch
  for (const gpu::copy_range& r : one.copies)
    for (uint64_t done = 0; done < r.bytes; done += most) {
      const uint64_t bytes = std::min(most, r.bytes - done);
      if (bitnet_status s =
              add_copy(from->address() + r.from + done, to->address() + r.to + done, bytes, report);
          sdk::failed(s))
        return s;
    }
  return BITNET_OK;
}

bitnet_status recording::add_copy(CUdeviceptr from, CUdeviceptr to, uint64_t bytes,
                                  const sdk::reporter& report) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = bytes;
  copy.srcHeight = copy.dstHeight = copy.Height = 1;
  copy.Depth = 1;
  CUgraphNode made = nullptr;
  if (bitnet_status s = context_.check(
          context_.cu.cuGraphAddMemcpyNode(&made, graph_, before_.nodes.data(),
                                           before_.nodes.size(), &copy, context_.handle),
          "cuGraphAddMemcpyNode", report);
      sdk::failed(s))
    return s;
  level_.nodes.push_back(made);
  level_.kernels_only = false;
  return BITNET_OK;
}

bitnet_status recording::add_clock(const sdk::reporter& report) {
  const library& cu = context_.cu;
  clock_.reserve(clock_.size() + 1);
  CUevent event = nullptr;
  if (bitnet_status s =
          context_.check(cu.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate", report);
      sdk::failed(s))
    return s;
  clock_.push_back(event);
  CUgraphNode made = nullptr;
  if (bitnet_status s =
          context_.check(cu.cuGraphAddEventRecordNode(&made, graph_, before_.nodes.data(),
                                                      before_.nodes.size(), event),
                         "cuGraphAddEventRecordNode", report);
      sdk::failed(s))
    return s;
  level_.nodes.push_back(made);
  level_.kernels_only = false;
  return BITNET_OK;
}

// A driver may accept a graph with overlap and reject its first launch: the documentation does not
// say when the driver checks a graph, and cuGraphUpload does not promise that a launch will
// succeed. So the commands are kept until a launch succeeded, and a rejected graph is built again
// without overlap.
bitnet_status recording::launch_on(CUstream stream, const sdk::reporter& report) {
  if (ready_) {
    gather();
    const CUresult begun = context_.cu.cuGraphLaunch(ready_, stream);
    if (begun == CUDA_SUCCESS) forget_commands();
    if (commands_.empty() || !may_be_refusal(begun))
      return context_.check(begun, "cuGraphLaunch", report);
    of_device_.refuse(begun);
  }
  // If this fails there is no graph, and the next launch tries again.
  if (bitnet_status s = make(commands_, false, report); sdk::failed(s)) return s;
  forget_commands();
  gather();
  return context_.check(context_.cu.cuGraphLaunch(ready_, stream), "cuGraphLaunch", report);
}

}  // namespace bitnet::cuda
