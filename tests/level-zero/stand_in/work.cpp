// Contexts, memory, modules, kernels, lists and events of the stand-in.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "calls.hpp"
#include "objects.hpp"

namespace stand_in {
namespace {

using lock = std::scoped_lock<std::recursive_mutex>;

context& context_of(ze_context_handle_t handle) {
  return as<context>(handle, "context");
}

template <class Object, class Handle>
ze_result_t made(Object* object, const char* kind, context& in, Handle* out) {
  born(object, kind);
  ++in.objects;
  *out = reinterpret_cast<Handle>(object);
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL make_context(ze_driver_handle_t, const ze_context_desc_t*,
                                    ze_context_handle_t* out) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  auto* const object = new context;
  born(object, "context");
  *out = reinterpret_cast<ze_context_handle_t>(object);
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL end_context(ze_context_handle_t handle) {
  entered(__func__);
  const lock held(everything());
  context& c = context_of(handle);
  if (c.objects != 0 || !c.memory.empty())
    complain("a context goes, and " + std::to_string(c.objects) + " objects and " +
             std::to_string(c.memory.size()) + " allocations are left in it");
  dies(&c, "context");
  delete &c;
  return ZE_RESULT_SUCCESS;
}

ze_result_t allocate(ze_context_handle_t handle, size_t size, size_t alignment, void** out) {
  const lock held(everything());
  context& c = context_of(handle);
  if (size > wanted().memory << 19) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
  size_t used = size;
  for (const auto& [at, bytes] : c.memory) used += bytes;
  if (used > wanted().memory << 20) return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  const size_t bytes = (size + alignment - 1) / alignment * alignment;
  auto* const at = static_cast<uint8_t*>(std::aligned_alloc(alignment, bytes));
  if (!at) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  std::memset(at, 0x5a, bytes);  // no zeros that were not asked for
  c.memory[at] = size;
  born(at, "allocation");
  *out = at;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL allocate_device(ze_context_handle_t c,
                                       const ze_device_mem_alloc_desc_t* desc, size_t size,
                                       size_t alignment, ze_device_handle_t device, void** out) {
  BITNET_STAND_IN_CALL;
  if (!device || desc->stype != ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC)
    complain("memory of a device without one");
  return allocate(c, size, alignment, out);
}

ze_result_t ZE_APICALL allocate_host(ze_context_handle_t c, const ze_host_mem_alloc_desc_t* desc,
                                     size_t size, size_t alignment, void** out) {
  BITNET_STAND_IN_CALL;
  if (desc->stype != ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC) complain("another stype");
  return allocate(c, size, alignment, out);
}

ze_result_t ZE_APICALL free_memory(ze_context_handle_t handle, void* at) {
  entered(__func__);
  const lock held(everything());
  context& c = context_of(handle);
  if (c.memory.erase(static_cast<uint8_t*>(at)) != 1) complain("memory is freed that is none");
  dies(at, "allocation");
  std::free(at);
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL make_module(ze_context_handle_t handle, ze_device_handle_t,
                                   const ze_module_desc_t* desc, ze_module_handle_t* out,
                                   ze_module_build_log_handle_t* log) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  context& c = context_of(handle);
  if (desc->format != ZE_MODULE_FORMAT_IL_SPIRV) return ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
  std::vector<constant> constants;
  for (uint32_t i = 0; desc->pConstants && i < desc->pConstants->numConstants; ++i) {
    constant one{desc->pConstants->pConstantIds[i], 0};
    std::memcpy(&one.value, desc->pConstants->pConstantValues[i], sizeof one.value);
    constants.push_back(one);
  }
  std::string said;
  program code = compile(desc->pInputModule, desc->inputSize, constants, said);
  if (log) {
    auto* const text = new std::string(said);
    born(text, "build log");
    *log = reinterpret_cast<ze_module_build_log_handle_t>(text);
  }
  if (!code) return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  return made(new spirv_module{&c, std::move(code)}, "module", c, out);
}

ze_result_t ZE_APICALL end_module(ze_module_handle_t handle) {
  entered(__func__);
  const lock held(everything());
  auto& m = as<spirv_module>(handle, "module");
  if (m.kernels != 0) complain("a module goes before its kernels");
  --m.in->objects;
  dies(&m, "module");
  delete &m;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL log_text(ze_module_build_log_handle_t handle, size_t* size, char* out) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  const auto& text = as<std::string>(handle, "build log");
  if (out) std::memcpy(out, text.c_str(), std::min(*size, text.size() + 1));
  *size = text.size() + 1;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL end_log(ze_module_build_log_handle_t handle) {
  entered(__func__);
  const lock held(everything());
  auto& text = as<std::string>(handle, "build log");
  dies(&text, "build log");
  delete &text;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL make_kernel(ze_module_handle_t handle, const ze_kernel_desc_t* desc,
                                   ze_kernel_handle_t* out) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  auto& m = as<spirv_module>(handle, "module");
  if (!has_entry(*m.code, desc->pKernelName)) return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
  ++m.kernels;
  return made(new kernel{&m, desc->pKernelName, 0, {}}, "kernel", *m.in, out);
}

ze_result_t ZE_APICALL end_kernel(ze_kernel_handle_t handle) {
  entered(__func__);
  const lock held(everything());
  auto& k = as<kernel>(handle, "kernel");
  --k.in->kernels;
  --k.in->in->objects;
  dies(&k, "kernel");
  delete &k;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL set_group(ze_kernel_handle_t handle, uint32_t x, uint32_t y, uint32_t z) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  if (x > wanted().threads || y != 1 || z != 1) return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
  as<kernel>(handle, "kernel").group_size = x;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL set_argument(ze_kernel_handle_t handle, uint32_t index, size_t size,
                                    const void* value) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  auto& k = as<kernel>(handle, "kernel");
  if (k.arguments.size() <= index) k.arguments.resize(index + 1);
  const auto* const bytes = static_cast<const uint8_t*>(value);
  k.arguments[index].assign(bytes, bytes + size);
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL make_list(ze_context_handle_t handle, ze_device_handle_t,
                                 const ze_command_queue_desc_t* desc,
                                 ze_command_list_handle_t* out) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  context& c = context_of(handle);
  if (desc->ordinal != 1) complain("a list is made for queues that run no kernels");
  const bool synchronous = desc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
  return made(new list{&c, synchronous, {}}, "list", c, out);
}

ze_result_t ZE_APICALL end_list(ze_command_list_handle_t handle) {
  entered(__func__);
  const lock held(everything());
  auto& l = as<list>(handle, "list");
  if (!l.waiting.empty()) complain("a list goes while commands of it run");
  --l.in->objects;
  dies(&l, "list");
  delete &l;
  return ZE_RESULT_SUCCESS;
}

void run_now(const command& one) {
  const uint64_t begin = now_ns();
  if (!one.name.empty())
    run(one.run, one.name);
  else if (one.fills)
    std::memset(one.to, one.fill, one.bytes);
  else
    std::memcpy(one.to, one.from, one.bytes);
  signal(one.done, begin, now_ns());
}

ze_result_t append(list& l, command one) {
  if (l.synchronous)
    run_now(one);
  else
    l.waiting.push_back(std::move(one));
  return ZE_RESULT_SUCCESS;
}

event* event_of(ze_event_handle_t handle) {
  return handle ? &as<event>(handle, "event") : nullptr;
}

ze_result_t ZE_APICALL append_barrier(ze_command_list_handle_t handle, ze_event_handle_t done,
                                      uint32_t, ze_event_handle_t*) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  auto& l = as<list>(handle, "list");
  std::for_each(l.waiting.rbegin(), l.waiting.rend(), run_now);
  l.waiting.clear();
  signal(event_of(done), 0, 0);
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL append_copy(ze_command_list_handle_t handle, void* to, const void* from,
                                   size_t bytes, ze_event_handle_t done, uint32_t,
                                   ze_event_handle_t*) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  auto& l = as<list>(handle, "list");
  const bool ours = allocated(*l.in, to, bytes), theirs = allocated(*l.in, from, bytes);
  if (!ours && !(theirs && l.synchronous)) complain("a copy goes past its memory");
  if (!theirs && !l.synchronous) complain("a copy comes from past its memory");
  command one;
  one.to = to;
  one.from = from;
  one.bytes = bytes;
  one.done = event_of(done);
  return append(l, std::move(one));
}

ze_result_t ZE_APICALL append_fill(ze_command_list_handle_t handle, void* to, const void* pattern,
                                   size_t pattern_size, size_t bytes, ze_event_handle_t done,
                                   uint32_t, ze_event_handle_t*) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  auto& l = as<list>(handle, "list");
  if (pattern_size != 1 || !allocated(*l.in, to, bytes)) complain("a fill goes past its memory");
  command one;
  one.to = to;
  one.bytes = bytes;
  one.fills = true;
  one.fill = *static_cast<const uint8_t*>(pattern);
  one.done = event_of(done);
  return append(l, std::move(one));
}

ze_result_t ZE_APICALL append_kernel(ze_command_list_handle_t handle, ze_kernel_handle_t what,
                                     const ze_group_count_t* groups, ze_event_handle_t done,
                                     uint32_t, ze_event_handle_t*) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  auto& l = as<list>(handle, "list");
  auto& k = as<kernel>(what, "kernel");
  if (k.group_size == 0) complain(k.name + " has no size of groups");
  for (size_t i = 0; i < k.arguments.size(); ++i) {
    if (k.arguments[i].empty()) complain(k.name + " lacks an argument");
    uintptr_t address = 0;
    std::memcpy(&address, k.arguments[i].data(), std::min(sizeof address, k.arguments[i].size()));
    if (i % 2 == 0 && i + 1 < k.arguments.size() &&
        !allocated(*l.in, reinterpret_cast<const void*>(address), 4))
      complain(k.name + " is given memory that is not allocated");
  }
  command one;
  one.run = {k.in->code, k.group_size, groups->groupCountX, groups->groupCountY, k.arguments};
  one.name = k.name;
  one.done = event_of(done);
  return append(l, std::move(one));
}

ze_result_t ZE_APICALL make_pool(ze_context_handle_t handle, const ze_event_pool_desc_t* desc,
                                 uint32_t, ze_device_handle_t*, ze_event_pool_handle_t* out) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  context& c = context_of(handle);
  const bool timed = (desc->flags & ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP) != 0;
  return made(new event_pool{&c, timed, std::vector<bool>(desc->count)}, "event pool", c, out);
}

ze_result_t ZE_APICALL end_pool(ze_event_pool_handle_t handle) {
  entered(__func__);
  const lock held(everything());
  auto& p = as<event_pool>(handle, "event pool");
  if (std::count(p.used.begin(), p.used.end(), true) != 0)
    complain("a pool goes before its events");
  --p.in->objects;
  dies(&p, "event pool");
  delete &p;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL make_event(ze_event_pool_handle_t handle, const ze_event_desc_t* desc,
                                  ze_event_handle_t* out) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  auto& p = as<event_pool>(handle, "event pool");
  if (desc->index >= p.used.size() || p.used[desc->index]) complain("a place of a pool is taken");
  p.used[desc->index] = true;
  return made(new event{&p, desc->index}, "event", *p.in, out);
}

ze_result_t ZE_APICALL end_event(ze_event_handle_t handle) {
  entered(__func__);
  const lock held(everything());
  auto& e = as<event>(handle, "event");
  e.in->used[e.index] = false;
  --e.in->in->objects;
  dies(&e, "event");
  delete &e;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL event_status(ze_event_handle_t handle) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  return as<event>(handle, "event").signalled ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

// Commands run as they are appended, up to a barrier: an event that is not signalled never will be.
ze_result_t ZE_APICALL event_wait(ze_event_handle_t handle, uint64_t timeout) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  if (as<event>(handle, "event").signalled) return ZE_RESULT_SUCCESS;
  if (timeout == UINT64_MAX) complain("an event is waited for that nothing signals");
  return ZE_RESULT_NOT_READY;
}

ze_result_t ZE_APICALL event_reset(ze_event_handle_t handle) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  as<event>(handle, "event").signalled = false;
  return ZE_RESULT_SUCCESS;
}

ze_result_t ZE_APICALL event_times(ze_event_handle_t handle, ze_kernel_timestamp_result_t* out) {
  BITNET_STAND_IN_CALL;
  const lock held(everything());
  const auto& e = as<event>(handle, "event");
  if (!e.in->timed) complain("an event without time stamps is asked for them");
  if (!e.signalled) return ZE_RESULT_NOT_READY;
  constexpr uint64_t bits = UINT32_MAX;  // that the device says count
  out->context = out->global = {e.begin_ns & bits, e.end_ns & bits};
  return ZE_RESULT_SUCCESS;
}

}  // namespace

void fill(ze_context_dditable_t& to) {
  to.pfnCreate = make_context;
  to.pfnDestroy = end_context;
}
void fill(ze_mem_dditable_t& to) {
  to.pfnAllocDevice = allocate_device;
  to.pfnAllocHost = allocate_host;
  to.pfnFree = free_memory;
}
void fill(ze_module_dditable_t& to) {
  to.pfnCreate = make_module;
  to.pfnDestroy = end_module;
}
void fill(ze_module_build_log_dditable_t& to) {
  to.pfnGetString = log_text;
  to.pfnDestroy = end_log;
}
void fill(ze_kernel_dditable_t& to) {
  to.pfnCreate = make_kernel;
  to.pfnDestroy = end_kernel;
  to.pfnSetGroupSize = set_group;
  to.pfnSetArgumentValue = set_argument;
}
void fill(ze_command_list_dditable_t& to) {
  to.pfnCreateImmediate = make_list;
  to.pfnDestroy = end_list;
  to.pfnAppendBarrier = append_barrier;
  to.pfnAppendMemoryCopy = append_copy;
  to.pfnAppendMemoryFill = append_fill;
  to.pfnAppendLaunchKernel = append_kernel;
}
void fill(ze_event_pool_dditable_t& to) {
  to.pfnCreate = make_pool;
  to.pfnDestroy = end_pool;
}
void fill(ze_event_dditable_t& to) {
  to.pfnCreate = make_event;
  to.pfnDestroy = end_event;
  to.pfnQueryStatus = event_status;
  to.pfnHostSynchronize = event_wait;
  to.pfnHostReset = event_reset;
  to.pfnQueryKernelTimestamp = event_times;
}

}  // namespace stand_in
