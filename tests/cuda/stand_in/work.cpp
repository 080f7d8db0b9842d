// Modules, streams, events and graphs.

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "calls.hpp"
#include "warp_groups.hpp"

using namespace stand_in;

namespace {

template <class Handle>
auto* as(Handle handle, kind what, const char* call) {
  objects().check(handle, what, call);
  return reinterpret_cast<void*>(handle);
}
stream* stream_of(CUstream s, const char* call) {
  return static_cast<stream*>(as(s, kind::stream, call));
}
event* event_of(CUevent e, const char* call) {
  return static_cast<event*>(as(e, kind::event, call));
}

template <class To, class Handle>
CUresult destroy(Handle handle, kind what, const char* call) {
  const CUresult answer = begin(call);
  objects().remove(handle, what, call);
  jobs().wait_for_all();
  delete reinterpret_cast<To*>(handle);
  return answer;
}

size_t place_of(const graph& of, CUgraphNode handle, const char* call) {
  size_t at = 0;
  while (at < of.nodes.size() && of.nodes[at] != reinterpret_cast<node*>(handle)) ++at;
  if (at == of.nodes.size()) give_up("%s: a node of another graph", call);
  return at;
}

// A new node behind those it depends on, which are the graph's own.
node* add_node(CUgraphNode* out, CUgraph handle, const CUgraphNode* after, size_t count,
               const char* call) {
  auto* of = static_cast<graph*>(as(handle, kind::graph, call));
  auto* made = new node;
  for (size_t i = 0; i < count; ++i) made->after.push_back({place_of(*of, after[i], call), false});
  of->nodes.push_back(made);
  *out = reinterpret_cast<CUgraphNode>(made);
  return made;
}

// What the driver's header says of edges. A driver would answer that they are invalid, and the
// plugin would go on without them; here it is a mistake.
bool is_beside(const CUgraphEdgeData& edge, const node& from, const node& to, const char* call) {
  for (const unsigned char one : edge.reserved)
    if (one != 0) give_up("%s: reserved bytes of an edge are not zeros", call);
  if (edge.to_port != 0) give_up("%s: port %d of a node that waits", call, edge.to_port);
  if (edge.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) {
    if (edge.from_port != 0) give_up("%s: port %d of a plain edge", call, edge.from_port);
    return false;
  }
  if (edge.type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
      edge.from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC)
    give_up("%s: an edge of type %d from port %d", call, edge.type, edge.from_port);
  if (!from.run || !to.run) give_up("%s: a programmatic edge, and not between kernels", call);
  if (wanted().arch < 90) give_up("%s: a programmatic edge on sm_%d", call, wanted().arch);
  return true;
}

// Of the graph that was instantiated last: edges, and kernels and copies.
std::atomic<uint64_t> edges[2], nodes[2];

}  // namespace

extern "C" {

uint64_t bitnet_stand_in_nodes(int copies) {
  return nodes[copies != 0 ? 1 : 0];
}
uint64_t bitnet_stand_in_edges(int programmatic) {
  return edges[programmatic != 0 ? 1 : 0];
}

CUresult cuModuleLoadData(CUmodule* out, const void* data) {
  STAND_IN_BEGIN_IN_CONTEXT();
  uint32_t magic = 0;
  std::memcpy(&magic, data, sizeof magic);
  if (magic != 0xba55ed50u) return CUDA_ERROR_INVALID_IMAGE;  // of a fat binary
  auto* made = new module;
  objects().add(made, kind::module);
  *out = reinterpret_cast<CUmodule>(made);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule handle) {
  const CUresult answer = begin(__func__);
  objects().remove(handle, kind::module, __func__);
  jobs().wait_for_all();
  auto* one = reinterpret_cast<module*>(handle);
  for (function* f : one->functions) {
    objects().remove(f, kind::function, __func__);
    delete f;
  }
  delete one;
  return answer;
}
CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
  STAND_IN_BEGIN_IN_CONTEXT();
  auto* from = static_cast<module*>(as(handle, kind::module, __func__));
  Dl_info me{};
  dladdr(reinterpret_cast<void*>(cuModuleGetFunction), &me);
  void* self = dlopen(me.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  void* found = dlsym(self, name);
  dlclose(self);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  auto* made = new function{name, found, std::string_view(name).ends_with("_joined")};
  from->functions.push_back(made);
  objects().add(made, kind::function);
  *out = reinterpret_cast<CUfunction>(made);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute what, int value) {
  STAND_IN_BEGIN_IN_CONTEXT();
  constexpr int most = 227 << 10;  // of sm_90
  auto* of = static_cast<function*>(as(handle, kind::function, __func__));
  if (what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    give_up("%s: attribute %d is not known", __func__, static_cast<int>(what));
  if (value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
  of->most_shared = static_cast<unsigned int>(value);
  return CUDA_SUCCESS;
}
// What the driver's header says of tensor maps of two dimensions and single bytes; more is not
// asked for.
CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* size, const cuuint64_t* stride,
                                const cuuint32_t* box, const cuuint32_t* each,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  STAND_IN_BEGIN();
  if (type != CU_TENSOR_MAP_DATA_TYPE_UINT8 || rank != 2 ||
      interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    give_up("%s: a kind of map that is not known", __func__);
  constexpr uint32_t spans[] = {0, 32, 64, 128}, most = 256;
  const uint32_t span = static_cast<unsigned int>(swizzle) < 4 ? spans[swizzle] : ~0u;
  const bool wrong = span == ~0u || reinterpret_cast<uintptr_t>(address) % 16 != 0 ||
                     reinterpret_cast<uintptr_t>(out) % alignof(CUtensorMap) != 0 || size[0] == 0 ||
                     size[1] == 0 || size[0] > uint64_t{1} << 32 || size[1] > uint64_t{1} << 32 ||
                     stride[0] % 16 != 0 || stride[0] < size[0] || stride[0] >= uint64_t{1} << 40 ||
                     box[0] == 0 || box[1] == 0 || box[0] > most || box[1] > most ||
                     box[0] % 16 != 0 || (span != 0 && box[0] > span) || each[0] != 1 ||
                     each[1] != 1;
  if (wrong) return CUDA_ERROR_INVALID_VALUE;
  objects().check_memory(reinterpret_cast<uint64_t>(address), stride[0] * (size[1] - 1) + size[0],
                         __func__);
  const simt::box_map made{simt::box_magic, static_cast<const unsigned char*>(address),
                           size[0],         size[1],
                           stride[0],       box[0],
                           box[1],          span};
  static_assert(sizeof made <= sizeof *out);
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &made, sizeof made);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* out, unsigned int) {
  STAND_IN_BEGIN_IN_CONTEXT();
  auto* made = new stream;
  objects().add(made, kind::stream);
  *out = reinterpret_cast<CUstream>(made);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream handle) {
  return destroy<stream>(handle, kind::stream, __func__);
}
CUresult cuStreamSynchronize(CUstream handle) {
  const CUresult answer = begin(__func__);
  jobs().wait(stream_of(handle, __func__)->last);
  return answer;
}
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned int value, size_t count, CUstream on) {
  STAND_IN_BEGIN_IN_CONTEXT();
  objects().check_memory(at, 4 * count, __func__);
  stream_of(on, __func__)->last = jobs().add([=] {
    for (size_t i = 0; i < count; ++i)
      std::memcpy(reinterpret_cast<char*>(at) + 4 * i, &value, sizeof value);
  });
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream on) {
  STAND_IN_BEGIN_IN_CONTEXT();
  objects().check_memory(to, bytes, __func__);
  stream_of(on, __func__)->last =
      jobs().add([=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream on) {
  STAND_IN_BEGIN_IN_CONTEXT();
  objects().check_memory(from, bytes, __func__);
  stream_of(on, __func__)->last =
      jobs().add([=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
  STAND_IN_BEGIN_IN_CONTEXT();
  objects().check_memory(to, bytes, __func__);
  objects().check_memory(from, bytes, __func__);
  stream_of(on, __func__)->last = jobs().add([=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  STAND_IN_BEGIN_IN_CONTEXT();
  auto* made = new event;
  made->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  objects().add(made, kind::event);
  *out = reinterpret_cast<CUevent>(made);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent handle) {
  return destroy<event>(handle, kind::event, __func__);
}
CUresult cuEventRecord(CUevent handle, CUstream on) {
  STAND_IN_BEGIN_IN_CONTEXT();
  event* e = event_of(handle, __func__);
  e->ticket = jobs().add([] {});
  stream_of(on, __func__)->last = e->ticket;
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent handle) {
  STAND_IN_BEGIN_IN_CONTEXT();
  return jobs().is_done(event_of(handle, __func__)->ticket) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventElapsedTime(float* ms, CUevent from, CUevent to) {
  STAND_IN_BEGIN_IN_CONTEXT();
  const event *a = event_of(from, __func__), *b = event_of(to, __func__);
  if (!a->timed || !b->timed) return CUDA_ERROR_INVALID_HANDLE;
  if (a->reached_ns == 0 || b->reached_ns == 0) return CUDA_ERROR_NOT_READY;
  *ms = static_cast<float>(b->reached_ns - a->reached_ns) / 1e6f;
  return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph* out, unsigned int) {
  STAND_IN_BEGIN_IN_CONTEXT();
  auto* made = new graph;
  objects().add(made, kind::graph);
  *out = reinterpret_cast<CUgraph>(made);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph handle) {
  const CUresult answer = begin(__func__);
  objects().remove(handle, kind::graph, __func__);
  auto* one = reinterpret_cast<graph*>(handle);
  for (const node* n : one->nodes) delete n;
  delete one;
  return answer;
}
CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* after,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS* what) {
  STAND_IN_BEGIN_IN_CONTEXT();
  constexpr unsigned int most_y = 65535, most_threads = 1024;
  const auto* run = static_cast<function*>(as(what->func, kind::function, __func__));
  if (what->gridDimX == 0 || what->gridDimY == 0 || what->gridDimY > most_y ||
      what->gridDimZ != 1 || what->blockDimY != 1 || what->blockDimZ != 1 ||
      what->blockDimX > most_threads || what->sharedMemBytes > run->most_shared)
    return CUDA_ERROR_INVALID_VALUE;
  node* made = add_node(out, handle, after, count, __func__);
  made->run = run;
  std::memcpy(&made->arguments, what->kernelParams[0],
              run->joined ? sizeof made->arguments : sizeof made->arguments.of[0]);
  made->groups_x = what->gridDimX;
  made->groups_y = what->gridDimY;
  made->threads = what->blockDimX;
  made->shared_bytes = what->sharedMemBytes;
  return CUDA_SUCCESS;
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* after,
                              size_t count, const CUDA_MEMCPY3D* what, CUcontext context) {
  STAND_IN_BEGIN_IN_CONTEXT();
  objects().check(context, kind::context, __func__);
  if (what->srcMemoryType != CU_MEMORYTYPE_UNIFIED ||
      what->dstMemoryType != CU_MEMORYTYPE_UNIFIED || what->Height != 1 || what->Depth != 1 ||
      what->WidthInBytes == 0 || what->srcPitch < what->WidthInBytes ||
      what->dstPitch < what->WidthInBytes)
    return CUDA_ERROR_INVALID_VALUE;
  node* made = add_node(out, handle, after, count, __func__);
  made->from = what->srcDevice;
  made->to = what->dstDevice;
  made->bytes = what->WidthInBytes;
  return CUDA_SUCCESS;
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* after,
                                   size_t count, CUevent clock) {
  STAND_IN_BEGIN_IN_CONTEXT();
  event* e = event_of(clock, __func__);
  add_node(out, handle, after, count, __func__)->clock = e;
  return CUDA_SUCCESS;
}
CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* data, size_t count) {
  STAND_IN_BEGIN_IN_CONTEXT();
  const auto* of = static_cast<graph*>(as(handle, kind::graph, __func__));
  for (size_t i = 0; i < count; ++i) {
    const size_t before = place_of(*of, from[i], __func__), behind = place_of(*of, to[i], __func__);
    if (before >= behind) give_up("%s: an edge to a node that was there first", __func__);
    node& made = *of->nodes[behind];
    for (const node::edge& e : made.after)
      if (e.from == before) give_up("%s: an edge that is there already", __func__);
    const bool beside = data && is_beside(data[i], *of->nodes[before], made, __func__);
    if (beside && wanted().beside != 0) return static_cast<CUresult>(wanted().beside);
    made.after.push_back({before, beside});
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph handle, unsigned long long) {
  STAND_IN_BEGIN_IN_CONTEXT();
  const auto* of = static_cast<graph*>(as(handle, kind::graph, __func__));
  nodes[0] = nodes[1] = 0;
  for (const node* n : of->nodes) {
    if (n->run) ++nodes[0];
    if (n->bytes != 0) ++nodes[1];
  }
  uint64_t found[2] = {};
  for (const node* n : of->nodes)
    for (const node::edge& e : n->after) ++found[e.beside ? 1 : 0];
  if (found[1] != 0 && wanted().ready != 0) return static_cast<CUresult>(wanted().ready);
  for (const int i : {0, 1}) edges[i] = found[i];
  auto* made = new ready;
  for (const node* n : of->nodes) made->nodes.push_back(*n);
  made->beside = found[1] != 0;
  objects().add(made, kind::ready);
  *out = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return destroy<ready>(handle, kind::ready, __func__);
}
CUresult cuGraphLaunch(CUgraphExec handle, CUstream on) {
  STAND_IN_BEGIN_IN_CONTEXT();
  const auto* what = static_cast<ready*>(as(handle, kind::ready, __func__));
  if (what->beside && wanted().launch != 0) return static_cast<CUresult>(wanted().launch);
  stream_of(on, __func__)->last = jobs().add([what] { run_nodes(what->nodes); });
  return CUDA_SUCCESS;
}

}  // extern "C"
