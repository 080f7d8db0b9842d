// A whole backend that computes models, and gives one wrong answer when it is loaded to stay: its
// setting "lie" says which. The probe never sees it lie, so that the host meets it unprepared;
// but for "status-probed".

#include <fenv.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "bitnet/abi/answers.h"

#define TIER0_NAME "liar"
#undef BITNET_BACKEND_ENTRY
#define BITNET_BACKEND_ENTRY honest_entry
#include "../parity/tier0_backend.cpp"
#include "../parity/tier0_variant.cpp"
#undef BITNET_BACKEND_ENTRY

namespace {

std::string lie;
bitnet_backend_v0 honest;
int maps = 0, steps = 0;
void* first_map = nullptr;
bitnet_buffer* first_buffer = nullptr;

bool is(const char* name) {
  return lie == name;
}

template <class Object>
bitnet_status nothing(bitnet_status status, Object** out) {
  if (status == BITNET_OK) *out = nullptr;
  return status;
}

bitnet_status map(bitnet_buffer* b, void** out, bitnet_error* err) {
  const bitnet_status status = honest.buffer_map(b, out, err);
  if (status != BITNET_OK) return status;
  ++maps;
  if (is("map-null")) *out = nullptr;
  if (is("map-odd")) *out = static_cast<char*>(*out) + 1;
  if (is("map-moves") && maps % 2 == 0) *out = static_cast<char*>(*out) + 64;
  if (is("map-same")) {
    if (first_map == nullptr) first_map = *out;
    *out = first_map;
  }
  return status;
}

bitnet_status plan(bitnet_device* d, const bitnet_tensor_desc* t, bitnet_weight_plan* out,
                   bitnet_error* err) {
  const bitnet_status status = honest.weight_plan(d, t, out, err);
  if (is("plan-blank")) out->layout_id[0] = 0;
  if (is("plan-endless")) std::memset(out->layout_id, 'x', sizeof out->layout_id);
  if (is("plan-alignment")) out->accepts_alias = 1, out->alignment_bytes = 48;
  if (is("plan-nothing")) out->accepts_alias = 0, out->packed_bytes = 0;
  if (is("plan-size")) out->struct_size = 4;
  return status;
}

bitnet_status query(bitnet_device* d, const bitnet_query_request* r, uint32_t* levels,
                    bitnet_graph_estimate* out, bitnet_error* err) {
  const bitnet_status status = honest.graph_query(d, r, levels, out, err);
  if (is("levels")) levels[r->graph->n_ops - 1] = 99;
  if (is("estimate-size")) out->struct_size = 4;
  return status;
}

bitnet_status stats(bitnet_program* p, bitnet_kernel_stat* out, uint32_t size, uint32_t* count,
                    bitnet_error* err) {
  const bitnet_status status = honest.program_stats(p, out, size, count, err);
  if (is("stats-many")) *count = 4'000'000'000;
  if (is("stats-endless") && out != nullptr) std::memset(out->id, 'x', sizeof out->id);
  return status;
}

// Fails as a driver would, with a number of its own.
bitnet_status fail_natively(bitnet_error* err, const char (&domain)[17]) {
  const uint32_t size = err->struct_size;
  *err = {};
  err->struct_size = size;
  err->code = BITNET_INTERNAL;
  err->native_code = -4;
  std::memcpy(err->domain, domain, sizeof err->domain);
  std::strcpy(err->message, "the device fell off");
  return BITNET_INTERNAL;
}

bitnet_status status_of(bitnet_device*, bitnet_device_status* out, bitnet_error* err) {
  if (is("status-throws")) throw std::runtime_error("out of its slot");
  if (is("status-fails")) return fail_natively(err, "vulkan\0\0\0\0\0\0\0\0\0\0");
  if (is("status-unsupported")) return BITNET_UNSUPPORTED;
  out->known = BITNET_STATUS_MEMORY | BITNET_STATUS_POOL | BITNET_STATUS_UTILISATION |
               BITNET_STATUS_TEMPERATURE | BITNET_STATUS_THROTTLED | BITNET_STATUS_HEALTH;
  out->memory_total_bytes = 1000, out->memory_free_bytes = 400;
  out->pool_bytes = 300, out->pool_used_bytes = 200;
  out->utilisation_percent = 0;
  out->temperature_millicelsius = -5000;
  out->throttled = BITNET_THROTTLED_HEAT;
  out->health = BITNET_HEALTH_GOOD;
  if (is("status-free") || is("status-probed")) out->memory_free_bytes = 1001;
  if (is("status-none")) out->memory_total_bytes = out->memory_free_bytes = 0;
  if (is("status-pool")) out->pool_used_bytes = 301;
  if (is("status-load")) out->utilisation_percent = 101;
  if (is("status-cold")) out->temperature_millicelsius = -300'000;
  if (is("status-slow")) out->throttled = 1u << 31;
  if (is("status-health")) out->health = 0;
  if (is("status-must")) out->known |= 1u << 16;
  if (is("status-hint")) out->known |= 1u << 15;
  if (is("status-reserved")) out->reserved_0 = 1;
  if (is("status-size")) out->struct_size = 4;
  return BITNET_OK;
}

// Says that it lists the largest logits; their port is the last one that the core adds.
bool lists() {
  return lie.starts_with("list-");
}
bitnet_buffer* last_port = nullptr;
bitnet_status device_that_lists(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                                bitnet_error* err) {
  const bitnet_status status = honest.device_info(self, index, out, err);
  if (status == BITNET_OK) out->logits_flags |= BITNET_LOGITS_LARGEST;
  return status;
}
bitnet_status bind_last_port(bitnet_program* p, const bitnet_bind_request* r, bitnet_binding** out,
                             bitnet_error* err) {
  last_port = r->bound[r->n_bound - 1].buffer;
  return honest.program_bind(p, r, out, err);
}
void list_wrongly() {
  void* at = nullptr;
  if (honest.buffer_map(last_port, &at, nullptr) != BITNET_OK) return;
  auto* row = static_cast<bitnet_largest*>(at);
  row->count = is("list-few") ? 0 : 2;
  row->ids[0] = is("list-outside") ? -1 : 7;
  row->ids[1] = 7;
  row->logits[0] = row->logits[1] = 1;
}

bitnet_status submit(bitnet_queue* q, const bitnet_step* s, bitnet_error* err) {
  ++steps;
  if (is("fails")) return fail_natively(err, "vulkan\0\0\0\0\0\0\0\0\0\0");
  if (is("fails-endless")) return fail_natively(err, "\x1b[31mendless....");
  if (is("fails-nameless")) return fail_natively(err, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
  if (is("silent")) return BITNET_OK;
  if (is("exits") && steps == 6) exit(0);
  const bitnet_status status = honest.queue_submit(q, s, err);
  if (lists() && s->top_logits != 0) list_wrongly();
  if (is("rounds-up")) fesetround(FE_UPWARD);
  if (is("blocks-signals")) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }
  if (is("closes-descriptors") && steps == 2)
    for (int fd = 3; fd < 256; ++fd) close(fd);
  return status;
}
bitnet_status wait(bitnet_queue* q, uint64_t value, uint64_t timeout_ns, bitnet_error* err) {
  if (is("silent")) return BITNET_OK;
  if (!is("hangs")) return honest.queue_wait(q, value, timeout_ns, err);
  usleep(static_cast<useconds_t>(std::min<uint64_t>(timeout_ns / 1000, 10'000'000)));
  err->code = BITNET_TIMEOUT;
  return BITNET_TIMEOUT;
}
// A driver's queue that hangs would never come back from here.
void destroy(bitnet_queue* q) {
  if (is("hangs") && steps > 0) abort();
  honest.queue_destroy(q);
}
bitnet_status poll(bitnet_queue* q, uint64_t* out, bitnet_error* err) {
  const bitnet_status status = honest.queue_poll(q, out, err);
  if (is("poll-behind")) *out = 0;
  if (is("silent")) *out = UINT64_MAX;
  return status;
}

bitnet_status open_device(bitnet_backend* self, const bitnet_device_request* request,
                          bitnet_device** out, bitnet_error* err) {
  if (is("moves-folder") && chdir("/") != 0) return BITNET_INTERNAL;
  if (is("opens-modes")) umask(0);
  if (is("device-null")) return *out = nullptr, BITNET_OK;
  return honest.device_open(self, request, out, err);
}

void close_slowly(bitnet_backend* self) {
  if (is("close-hangs"))
    for (;;) pause();
  honest.close(self);
}

const bitnet_tuning_v1 no_tuning{{sizeof no_tuning, 1}, nullptr, nullptr, nullptr};
const bitnet_packed_weights_v1 no_packed{{sizeof no_packed, 1}, nullptr, nullptr, nullptr};
const bitnet_interface_header* interfaces(bitnet_backend*, bitnet_str name, uint32_t) {
  if (is("tuning-null") && bitnet::sdk::to_view(name) == BITNET_INTERFACE_TUNING)
    return &no_tuning.header;
  if (is("packed-null") && bitnet::sdk::to_view(name) == BITNET_INTERFACE_PACKED_WEIGHTS)
    return &no_packed.header;
  return nullptr;
}

// Slots that make an object, without one.
bitnet_status no_buffer(bitnet_device*, const bitnet_buffer_request*, bitnet_buffer** out,
                        bitnet_error*) {
  return nothing(BITNET_OK, out);
}
// The first one again, which the core would give back twice.
bitnet_status same_buffer(bitnet_device* d, const bitnet_buffer_request* r, bitnet_buffer** out,
                          bitnet_error* err) {
  if (first_buffer == nullptr)
    return honest.buffer_create(d, r, &first_buffer, err) == BITNET_OK
               ? (*out = first_buffer, BITNET_OK)
               : BITNET_OUT_OF_MEMORY;
  return *out = first_buffer, BITNET_OK;
}
bitnet_status no_weights(bitnet_device*, const bitnet_weights_request*, bitnet_weights** out,
                         bitnet_error*) {
  return nothing(BITNET_OK, out);
}
bitnet_status no_pool(bitnet_device*, const bitnet_kv_config*, bitnet_kv_pool** out,
                      bitnet_error*) {
  return nothing(BITNET_OK, out);
}
bitnet_status no_program(bitnet_device*, const bitnet_build_request*, bitnet_program** out,
                         bitnet_error*) {
  return nothing(BITNET_OK, out);
}
bitnet_status no_binding(bitnet_program*, const bitnet_bind_request*, bitnet_binding** out,
                         bitnet_error*) {
  return nothing(BITNET_OK, out);
}
bitnet_status no_queue(bitnet_device*, const bitnet_queue_request*, bitnet_queue** out,
                       bitnet_error*) {
  return nothing(BITNET_OK, out);
}

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
bitnet_backend_abi0(const bitnet_host_v0* host, const bitnet_open_request* request,
                    bitnet_backend_v0* out, bitnet_error* err) {
  const bitnet_status opened = honest_entry(host, request, out, err);
  if (opened != BITNET_OK) return opened;
  lie.clear();
  maps = steps = 0;
  first_map = nullptr;
  first_buffer = nullptr;
  for (uint32_t i = 0; i < request->n_params; ++i)
    if (bitnet::sdk::to_view(request->params[i].key) == "lie")
      lie = bitnet::sdk::to_view(request->params[i].value);
  honest = *out;
  if (lists()) out->device_info = device_that_lists;
  if (request->purpose != BITNET_PURPOSE_LOAD) {
    if (!is("status-probed")) return opened;
    out->device_status = status_of;
    out->filled_size = sizeof *out;
    return opened;
  }
  out->buffer_map = map;
  out->weight_plan = plan;
  out->graph_query = query;
  out->program_stats = stats;
  out->queue_submit = submit;
  out->queue_wait = wait;
  out->queue_poll = poll;
  out->queue_destroy = destroy;
  out->device_open = open_device;
  out->close = close_slowly;
  out->query_interface = interfaces;
  if (!is("status-null")) out->device_status = status_of;
  out->filled_size = sizeof *out;
  if (is("buffer-null")) out->buffer_create = no_buffer;
  if (is("buffer-same")) out->buffer_create = same_buffer;
  if (is("weights-null")) out->weights_create = no_weights;
  if (is("pool-null")) out->kv_pool_create = no_pool;
  if (is("program-null")) out->program_build = no_program;
  if (is("binding-null")) out->program_bind = no_binding;
  if (lists()) out->program_bind = bind_last_port;
  if (is("queue-null")) out->queue_create = no_queue;
  return opened;
}
