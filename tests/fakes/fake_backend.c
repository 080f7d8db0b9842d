/* One source, many backends: CMake compiles it once per row of its list, with FAKE_* flags that
 * each bring one defect or trait. Without flags it is a good backend with one device of class
 * other, and every slot that would compute answers BITNET_UNSUPPORTED. */
#define _GNU_SOURCE /* usleep */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "misbehaviour.h"

#ifndef FAKE_NAME
#define FAKE_NAME "good"
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif
#ifndef FAKE_CLASS
#define FAKE_CLASS BITNET_DEVICE_OTHER
#endif
#ifndef FAKE_ALIGNMENT
#define FAKE_ALIGNMENT 64
#endif

#if defined(FAKE_NOTE_RAW)
/* A note of ours whose description is FAKE_NOTE_RAW as it stands. */
__asm__(
    ".pushsection .note.bitnet,\"a\",%note\n.balign 4\n.long 7\n.long 992f - 991f\n.long 1\n"
    ".asciz \"BitNet\"\n.balign 4\n991:\n" FAKE_NOTE_RAW "992:\n.balign 4\n.popsection\n");
#elif !defined(FAKE_NO_NOTE)
#if defined(FAKE_NOTE_FLAGS)
BITNET_BACKEND_NOTE(FAKE_NAME, "1.2.3", "org.example", "CC0-1.0",
                    BITNET_NOTE_FIELD("flags", FAKE_NOTE_FLAGS))
#elif defined(FAKE_NOTE_NAME)
BITNET_BACKEND_NOTE(FAKE_NOTE_NAME, "1.2.3", "org.example", "CC0-1.0", "")
#elif defined(FAKE_NOTE_CLASS)
BITNET_BACKEND_NOTE(FAKE_NAME, "1.2.3", "org.example", "CC0-1.0",
                    BITNET_NOTE_FIELD("class", FAKE_NOTE_CLASS))
#else
BITNET_BACKEND_NOTE(FAKE_NAME, "1.2.3", "org.example", "CC0-1.0", "")
#endif
#ifdef FAKE_TWO_NOTES
BITNET_BACKEND_NOTE("other", "1.2.3", "org.example", "CC0-1.0", "")
#endif
#endif

#ifdef FAKE_STATIC_TLS
__attribute__((tls_model("initial-exec"))) static __thread volatile int thread_room_;
#endif
#ifdef FAKE_TEXTREL /* an address in the code, which only the dynamic linker knows */
__asm__(".text\n.balign 8\n.quad .\n");
#endif
#ifdef FAKE_UNDEFINED /* as with a forgotten library */
extern int bitnet_fake_nowhere(void);
__attribute__((weak)) extern int bitnet_fake_may_be_nowhere(void);
#endif
#ifdef FAKE_THREAD_KEY
#include <pthread.h>
static pthread_key_t key_;
#endif

static bitnet_status reject(bitnet_error* err, bitnet_status status, const char* why) {
  if (err != NULL) {
    err->code = status;
    strncpy(err->message, why, sizeof err->message - 1);
#ifdef FAKE_NATIVE_CODE
    err->native_code = FAKE_NATIVE_CODE;
    strncpy(err->domain, "fake", sizeof err->domain - 1);
#endif
  }
  return status;
}

#define STR(text) ((bitnet_str){text, sizeof text - 1})

/* Where a fake misbehaves: nothing unless CMake says what. */
#ifndef FAKE_AT_ENTRY
#define FAKE_AT_ENTRY
#endif
#ifndef FAKE_AT_ENUMERATE
#define FAKE_AT_ENUMERATE
#endif
#ifndef FAKE_AT_SELF_TEST
#define FAKE_AT_SELF_TEST
#endif
#ifndef FAKE_AT_CLOSE
#define FAKE_AT_CLOSE
#endif
#ifdef FAKE_AT_CONSTRUCTOR
__attribute__((constructor)) static void construct(void) {
  FAKE_AT_CONSTRUCTOR;
}
#endif

struct bitnet_backend { /* one opening */
  bool open;
  const bitnet_host_v0* host;
  uint32_t purpose;
};

/* Not of the heap: a host never closes what it rejected, and that would count as a leak. */
static bitnet_backend openings[64];

static bitnet_backend* take_opening(void) {
  for (size_t i = 0; i < sizeof openings / sizeof *openings; ++i)
    if (!__atomic_test_and_set(&openings[i].open, __ATOMIC_ACQUIRE)) return &openings[i];
  return NULL;
}

static void say(const bitnet_backend* self, const char* what) {
  self->host->log(self->host->self, BITNET_LOG_INFO, STR(FAKE_NAME),
                  (bitnet_str){what, strlen(what)});
}

/* To a host that may know a shorter form of the struct, and keeps its struct_size. */
static void hand_over(void* out, uint32_t room, const void* value, size_t size) {
  memcpy((char*)out + sizeof room, (const char*)value + sizeof room,
         (room < size ? room : size) - sizeof room);
}

static void close_backend(bitnet_backend* self) {
  FAKE_AT_CLOSE;
  say(self, "closed");
  __atomic_clear(&self->open, __ATOMIC_RELEASE);
}

static bitnet_status info(bitnet_backend* self, bitnet_backend_info* out, bitnet_error* err) {
  (void)self;
#ifdef FAKE_INFO_FAILS
  return reject(err, BITNET_INTERNAL, "lost my papers");
#endif
  (void)err;
  bitnet_backend_info i = {0};
#ifdef FAKE_LIFE
  i.life_flags = FAKE_LIFE;
#else
  i.life_flags = BITNET_LIFE_THREAD_FREE;
#endif
#ifdef FAKE_INFO_NAME
  i.name = STR(FAKE_INFO_NAME);
#else
  i.name = STR(FAKE_NAME);
#endif
  i.version = STR("1.2.3");
#ifdef FAKE_INFO_NULL
  i.version.data = NULL;
#endif
  i.vendor = STR("org.example");
  i.license = STR("CC0-1.0");
#ifdef FAKE_INFO_LONG
  static char long_text[4096];
  memset(long_text, 'x', sizeof long_text);
  i.license = (bitnet_str){long_text, sizeof long_text};
#endif
#ifdef FAKE_INFO_NO_VENDOR
  i.vendor = STR("");
#endif
#ifdef FAKE_INFO_NO_DRIVER /* bytes of nowhere */
  i.driver = (bitnet_str){NULL, 7};
#endif
  hand_over(out, out->struct_size, &i, sizeof i);
#ifdef FAKE_INFO_SIZE
  out->struct_size = FAKE_INFO_SIZE;
#endif
  return BITNET_OK;
}

static bitnet_status device_count(bitnet_backend* self, uint32_t* out, bitnet_error* err) {
  const uint32_t purpose_ = self->purpose;
  (void)purpose_;
#ifdef FAKE_UNAVAILABLE
  return reject(err, BITNET_UNAVAILABLE, FAKE_UNAVAILABLE);
#endif
#ifdef FAKE_COUNT_FAILS
  return reject(err, BITNET_INTERNAL, "cannot count");
#endif
  (void)err;
  FAKE_AT_ENUMERATE;
  *out = FAKE_DEVICES;
#ifdef FAKE_SHRINKS /* a device that goes away between the probe and the load */
  if (purpose_ == BITNET_PURPOSE_LOAD) *out = FAKE_DEVICES - 1;
#endif
  return BITNET_OK;
}

static bitnet_status device_info(bitnet_backend* self, uint32_t index, bitnet_device_info* out,
                                 bitnet_error* err) {
  (void)self;
#ifdef FAKE_NO_MEMORY_AT
  if (index >= FAKE_NO_MEMORY_AT) return reject(err, BITNET_OUT_OF_MEMORY, "no memory is left");
#endif
#ifdef FAKE_DEVICE_FAILS
  return reject(err, BITNET_DEVICE_LOST, "it fell off the bus");
#endif
  if (index >= FAKE_DEVICES) return reject(err, BITNET_INVALID_ARGUMENT, "there is no such device");
  bitnet_device_info d = {0};
  d.device_class = FAKE_CLASS;
  strcpy(d.name, "fake device");
#ifdef FAKE_RUDE_NAME /* an escape sequence, as long as can be */
  memset(d.name, 'x', sizeof d.name - 1);
  memcpy(d.name, "\033[2J", 4);
#endif
#ifdef FAKE_RAW_NAME /* not terminated */
  memset(d.name, 'x', sizeof d.name);
#endif
#ifndef FAKE_UUID
#define FAKE_UUID FAKE_NAME
#endif
  snprintf(d.uuid, sizeof d.uuid, "%s-%u", FAKE_UUID, index);
  strcpy(d.arch, "none");
  d.memory_total_bytes = 1u << 20;
  d.compute_units = 1;
  d.buffer_alignment_bytes = FAKE_ALIGNMENT;
  hand_over(out, out->struct_size, &d, sizeof d);
#ifdef FAKE_DEVICE_SIZE
  out->struct_size = FAKE_DEVICE_SIZE;
#endif
  return BITNET_OK;
}

static bitnet_status kernels(bitnet_backend* self, uint32_t index, bitnet_kernel_info* out,
                             uint32_t out_size, uint32_t* count, bitnet_error* err) {
  (void)self;
  if (index >= FAKE_DEVICES) return reject(err, BITNET_INVALID_ARGUMENT, "there is no such device");
  const uint32_t capacity = *count;
#ifdef FAKE_KERNELS_FAIL
  if ((capacity != 0) == FAKE_KERNELS_FAIL) return reject(err, BITNET_INTERNAL, "no list");
#endif
#ifdef FAKE_KERNELS
  *count = FAKE_KERNELS;
  if (capacity != 0) *count = 0;
  return BITNET_OK;
#endif
  *count = 1;
  if (capacity == 0) return BITNET_OK;
  bitnet_kernel_info k = {sizeof k, BITNET_OP_RMS_NORM, 0, BITNET_LEVEL_REFERENCE, 0,
                          0,        "rms_norm.fake"};
  memcpy(out, &k, out_size < sizeof k ? out_size : sizeof k);
  return BITNET_OK;
}

#define UNSUPPORTED                                                              \
  {                                                                              \
    return reject(err, BITNET_UNSUPPORTED, "the fake backend computes nothing"); \
  }

static bitnet_status device_open(bitnet_backend* self, const bitnet_device_request* request,
                                 bitnet_device** out, bitnet_error* err) {
  (void)self;
  if (request->index >= FAKE_DEVICES)
    return reject(err, BITNET_INVALID_ARGUMENT, "there is no such device");
  FAKE_AT_SELF_TEST;
  *out = (bitnet_device*)"live";
  return BITNET_OK;
}
static void device_close(bitnet_device* device) {
  (void)device;
}
static bitnet_status buffer_create(bitnet_device* d, const bitnet_buffer_request* r,
                                   bitnet_buffer** o, bitnet_error* err) {
  (void)d, (void)r, (void)o;
  UNSUPPORTED
}
static bitnet_status buffer_map(bitnet_buffer* b, void** o, bitnet_error* err) {
  (void)b, (void)o;
  UNSUPPORTED
}
static void buffer_destroy(bitnet_buffer* b) {
  (void)b;
}
static bitnet_status weight_plan(bitnet_device* d, const bitnet_tensor_desc* t,
                                 bitnet_weight_plan* o, bitnet_error* err) {
  (void)d, (void)t, (void)o;
  UNSUPPORTED
}
static bitnet_status weights_create(bitnet_device* d, const bitnet_weights_request* r,
                                    bitnet_weights** o, bitnet_error* err) {
  (void)d, (void)r, (void)o;
  UNSUPPORTED
}
static bitnet_status weight_write(bitnet_weights* w, uint32_t i, uint64_t at, const void* p,
                                  uint64_t n, bitnet_error* err) {
  (void)w, (void)i, (void)at, (void)p, (void)n;
  UNSUPPORTED
}
static bitnet_status weight_alias(bitnet_weights* w, uint32_t i, const void* p, uint64_t n,
                                  bitnet_error* err) {
  (void)w, (void)i, (void)p, (void)n;
  UNSUPPORTED
}
static bitnet_status weight_seal(bitnet_weights* w, uint32_t i, bitnet_error* err) {
  (void)w, (void)i;
  UNSUPPORTED
}
static void weights_destroy(bitnet_weights* w) {
  (void)w;
}
/* Every op has level NONE. */
static bitnet_status graph_query(bitnet_device* d, const bitnet_query_request* r, uint32_t* levels,
                                 bitnet_graph_estimate* o, bitnet_error* err) {
  (void)d, (void)o, (void)err;
  memset(levels, 0, r->graph->n_ops * sizeof *levels);
  return BITNET_OK;
}
static bitnet_status program_build(bitnet_device* d, const bitnet_build_request* r,
                                   bitnet_program** o, bitnet_error* err) {
  (void)d, (void)r, (void)o;
  UNSUPPORTED
}
static bitnet_status program_bind(bitnet_program* p, const bitnet_bind_request* r,
                                  bitnet_binding** o, bitnet_error* err) {
  (void)p, (void)r, (void)o;
  UNSUPPORTED
}
static bitnet_status binding_prepare(bitnet_binding* b, const bitnet_prepare_request* r,
                                     bitnet_error* err) {
  (void)b, (void)r;
  UNSUPPORTED
}
static void binding_destroy(bitnet_binding* b) {
  (void)b;
}
static bitnet_status program_stats(bitnet_program* p, bitnet_kernel_stat* o, uint32_t s,
                                   uint32_t* n, bitnet_error* err) {
  (void)p, (void)o, (void)s, (void)n;
  UNSUPPORTED
}
static void program_destroy(bitnet_program* p) {
  (void)p;
}
static bitnet_status kv_pool_create(bitnet_device* d, const bitnet_kv_config* c, bitnet_kv_pool** o,
                                    bitnet_error* err) {
  (void)d, (void)c, (void)o;
  UNSUPPORTED
}
static bitnet_status kv_copy(bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* from,
                             const uint32_t* to, uint32_t n, uint64_t signal, bitnet_error* err) {
  (void)q, (void)p, (void)from, (void)to, (void)n, (void)signal;
  UNSUPPORTED
}
static bitnet_status kv_export(bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks,
                               uint32_t n, void* o, uint64_t bytes, uint64_t signal,
                               bitnet_error* err) {
  (void)q, (void)p, (void)blocks, (void)n, (void)o, (void)bytes, (void)signal;
  UNSUPPORTED
}
static bitnet_status kv_import(bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks,
                               uint32_t n, const void* d, uint64_t bytes, uint64_t signal,
                               bitnet_error* err) {
  (void)q, (void)p, (void)blocks, (void)n, (void)d, (void)bytes, (void)signal;
  UNSUPPORTED
}
static void kv_pool_destroy(bitnet_kv_pool* p) {
  (void)p;
}
static bitnet_status queue_create(bitnet_device* d, const bitnet_queue_request* r, bitnet_queue** o,
                                  bitnet_error* err) {
  (void)d, (void)r, (void)o;
  UNSUPPORTED
}
static bitnet_status queue_submit(bitnet_queue* q, const bitnet_step* s, bitnet_error* err) {
  (void)q, (void)s;
  UNSUPPORTED
}
static bitnet_status queue_wait(bitnet_queue* q, uint64_t v, uint64_t t, bitnet_error* err) {
  (void)q, (void)v, (void)t;
  UNSUPPORTED
}
static bitnet_status queue_poll(bitnet_queue* q, uint64_t* o, bitnet_error* err) {
  (void)q, (void)o;
  UNSUPPORTED
}
static void queue_destroy(bitnet_queue* q) {
  (void)q;
}
static bitnet_status quiesce(bitnet_backend* self, uint64_t t, bitnet_error* err) {
  (void)self, (void)t, (void)err;
  return BITNET_OK;
}

#ifndef FAKE_ENTRY
#define FAKE_ENTRY BITNET_BACKEND_ENTRY
#endif

#ifdef FAKE_EXTRA_EXPORT
BITNET_BACKEND_EXPORT int bitnet_fake_stranger = 1;
#endif

#ifdef FAKE_UNIQUE
BITNET_BACKEND_EXPORT int bitnet_fake_unique = 1;
__asm__(".type bitnet_fake_unique, @gnu_unique_object");
#endif

static void fill(bitnet_backend* self, uint32_t newest_of_host, bitnet_backend_v0* out) {
  bitnet_backend_v0 table = {0};
  table.self = self;
  table.need_minor_min = BITNET_ABI_OLDEST_MINOR;
  table.need_minor_max = BITNET_ABI_MINOR;
  table.abi_minor = newest_of_host < BITNET_ABI_MINOR ? newest_of_host : BITNET_ABI_MINOR;
  table.filled_size = out->struct_size < sizeof table ? out->struct_size : sizeof table;
#define FILL(slot) table.slot = slot
  FILL(info);
  FILL(device_count);
  FILL(device_info);
  FILL(kernels);
  FILL(device_open);
  FILL(device_close);
  FILL(buffer_create);
  FILL(buffer_map);
  FILL(buffer_destroy);
  FILL(weight_plan);
  FILL(weights_create);
  FILL(weight_write);
  FILL(weight_alias);
  FILL(weight_seal);
  FILL(weights_destroy);
  FILL(graph_query);
  FILL(program_build);
  FILL(program_bind);
  FILL(binding_prepare);
  FILL(binding_destroy);
  FILL(program_stats);
  FILL(program_destroy);
  FILL(kv_pool_create);
  FILL(kv_copy);
  FILL(kv_export);
  FILL(kv_import);
  FILL(kv_pool_destroy);
  FILL(queue_create);
  FILL(queue_submit);
  FILL(queue_wait);
  FILL(queue_poll);
  FILL(queue_destroy);
  FILL(quiesce);
  table.close = close_backend;
  hand_over(out, out->struct_size, &table, sizeof table);
}

/* What is wrong with the table that a host was given. */
static void spoil(bitnet_backend_v0* out) {
  (void)out;
#ifdef FAKE_SHORT
  out->filled_size = offsetof(bitnet_backend_v0, queue_create);
#endif
#ifdef FAKE_TOO_LONG
  out->filled_size = sizeof *out + 8;
#endif
#ifdef FAKE_STRUCT_SIZE
  out->struct_size = FAKE_STRUCT_SIZE;
#endif
#ifdef FAKE_OVERRUN /* a plugin of a newer minor that forgets to look at struct_size */
  memset((char*)out + sizeof *out, 0, 16);
#endif
#ifdef FAKE_NULL_SLOT
  out->FAKE_NULL_SLOT = NULL;
#endif
#ifdef FAKE_RESERVED
  out->reserved_0 = 0xdeadbeef;
#endif
#ifdef FAKE_FEATURES
  out->features_used[3] = 1;
#endif
#ifdef FAKE_MINOR
  out->abi_minor = FAKE_MINOR;
#endif
}

BITNET_BACKEND_EXPORT bitnet_status FAKE_ENTRY(const bitnet_host_v0* host,
                                               const bitnet_open_request* request,
                                               bitnet_backend_v0* out, bitnet_error* err);
BITNET_BACKEND_EXPORT bitnet_status FAKE_ENTRY(const bitnet_host_v0* host,
                                               const bitnet_open_request* request,
                                               bitnet_backend_v0* out, bitnet_error* err) {
#ifdef FAKE_STATIC_TLS
  thread_room_ = 1;
#endif
#ifdef FAKE_THREAD_KEY
  pthread_key_create(&key_, NULL);
#endif
#ifdef FAKE_UNDEFINED
  if (bitnet_fake_may_be_nowhere != NULL) bitnet_fake_nowhere();
#endif
  FAKE_AT_ENTRY;
  for (uint32_t i = 0; i < request->n_params; ++i)
    host->log(host->self, BITNET_LOG_INFO, request->params[i].key, request->params[i].value);
#ifdef FAKE_ENTRY_FAILS
  return reject(err, FAKE_ENTRY_FAILS, "not today");
#endif
#ifdef FAKE_NEEDS_MINOR
  out->need_minor_min = FAKE_NEEDS_MINOR;
#ifndef FAKE_NEEDS_MINOR_AT_MOST
#define FAKE_NEEDS_MINOR_AT_MOST FAKE_NEEDS_MINOR + 3
#endif
  out->need_minor_max = FAKE_NEEDS_MINOR_AT_MOST;
  return reject(err, BITNET_INCOMPATIBLE, "minor");
#endif
  if (out->struct_size < offsetof(bitnet_backend_v0, self))
    return reject(err, BITNET_INVALID_ARGUMENT, "the table is too short");
  out->need_minor_min = BITNET_ABI_OLDEST_MINOR;
  out->need_minor_max = BITNET_ABI_MINOR;
  if (request->abi_minor_min > BITNET_ABI_MINOR || request->abi_minor_max < BITNET_ABI_OLDEST_MINOR)
    return reject(err, BITNET_INCOMPATIBLE, "the host speaks another minor");
  bitnet_backend* self = take_opening();
  if (self == NULL) return reject(err, BITNET_OUT_OF_MEMORY, "it is open too often");
  self->host = host;
  self->purpose = request->purpose;
  fill(self, request->abi_minor_max, out);
  spoil(out);
  say(self, request->purpose == BITNET_PURPOSE_PROBE ? "opened to probe" : "opened to load");
  return BITNET_OK;
}
