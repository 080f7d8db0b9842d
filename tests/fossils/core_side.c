/* The core's side of the contract in one small program: opens a plugin's entry, agrees on a minor,
 * lists its devices, computes a few numbers where it can, and closes. Kept as a binary of each ABI
 * (scripts/make-fossil), it shows that later plugins still work with an early core.
 *
 *   core_side PLUGIN     prints what it found; exits 1 and says why when something is not as agreed
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bitnet/abi/backend.h"

static bitnet_error err;

static void stop(const char* what) {
  fprintf(stderr, "%s: %s\n", what, err.message);
  exit(1);
}

static void must(bitnet_status status, const char* what) {
  if (status != BITNET_OK) stop(what);
}

static void agree(int fine, const char* what) {
  if (!fine) stop(what);
}

/* ---- the host: one thread, no log ---- */

static void host_log(void* self, uint32_t level, bitnet_str component, bitnet_str message) {
  (void)self, (void)level, (void)component, (void)message;
}
static uint32_t host_width(void* self) {
  (void)self;
  return 1;
}
static bitnet_status host_run(void* self, uint32_t n_workers, bitnet_task task, void* arg) {
  (void)self;
  if (n_workers != 1) return BITNET_INVALID_ARGUMENT;
  task(arg, 0, 1);
  return BITNET_OK;
}
static uint32_t host_cancelled(void* self, uint64_t token) {
  (void)self, (void)token;
  return 0;
}
static uint64_t host_now(void* self) {
  struct timespec now;
  (void)self;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const bitnet_host_v0 host = {
    .struct_size = sizeof host,
    .log = host_log,
    .parallel_width = host_width,
    .parallel_run = host_run,
    .cancelled = host_cancelled,
    .now_ns = host_now,
};

/* The table, and bytes behind it that must stay untouched. */
static struct {
  bitnet_backend_v0 table;
  uint64_t canary;
} out;
static const bitnet_backend_v0* const t = &out.table;

static void open_backend(const char* file) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) snprintf(err.message, sizeof err.message, "%s", dlerror());
  agree(library != NULL, "dlopen");
  bitnet_backend_entry entry;
  *(void**)&entry = dlsym(library, BITNET_BACKEND_ENTRY_NAME);
  agree(entry != NULL, "no entry");
  const bitnet_open_request request = {.struct_size = sizeof request,
                                       .purpose = BITNET_PURPOSE_LOAD,
                                       .abi_minor_min = BITNET_ABI_OLDEST_MINOR,
                                       .abi_minor_max = BITNET_ABI_MINOR,
                                       .generation = 1};
  out.table.struct_size = sizeof out.table;
  out.canary = 0x5a5a5a5a5a5a5a5a;
  must(entry(&host, &request, &out.table, &err), "entry");
  agree(out.canary == 0x5a5a5a5a5a5a5a5a, "the plugin wrote behind the table");
  agree(t->struct_size == sizeof out.table && t->filled_size <= sizeof out.table &&
            t->filled_size >= offsetof(bitnet_backend_v0, query_interface),
        "filled_size");
  agree(t->abi_minor >= BITNET_ABI_OLDEST_MINOR && t->abi_minor <= BITNET_ABI_MINOR, "abi_minor");
  agree(t->reserved_0 == 0, "reserved_0");
  /* From the first slot to the last required one. */
  void* slot;
  for (size_t at = offsetof(bitnet_backend_v0, info);
       at < offsetof(bitnet_backend_v0, query_interface); at += sizeof slot) {
    memcpy(&slot, (const char*)t + at, sizeof slot);
    agree(slot != NULL, "a required slot is empty");
  }
}

static void describe(void) {
  bitnet_backend_info info = {.struct_size = sizeof info};
  must(t->info(t->self, &info, &err), "info");
  printf("%.*s %.*s, ABI 0.%u\n", (int)info.name.size, info.name.data, (int)info.version.size,
         info.version.data, t->abi_minor);
}

/* ---- EMBED_GATHER, RELU2, GATHER_ROWS on two tokens, where a device has them ---- */

enum { width = 3, vocabulary = 4, tokens = 2, block_tokens = 64 };

static bitnet_buffer* make_buffer(bitnet_device* device, uint64_t elements, int32_t step,
                                  void** mapped) {
  bitnet_buffer* buffer;
  const bitnet_buffer_request request = {.struct_size = sizeof request,
                                         .usage = BITNET_BUFFER_HOST_WRITES,
                                         .bytes = elements * sizeof(int32_t)};
  must(t->buffer_create(device, &request, &buffer, &err), "buffer_create");
  must(t->buffer_map(buffer, mapped, &err), "buffer_map");
  for (uint64_t i = 0; i < elements; ++i) ((int32_t*)*mapped)[i] = (int32_t)i * step;
  return buffer;
}

/* What is computed: the tables and the structs that point to them. */
static struct {
  bitnet_value values[3];
  bitnet_op ops[3];
  float rows[vocabulary * width];
  bitnet_tensor_desc desc;
  bitnet_graph graph;
  bitnet_program_options options;
} model;

static void make_model(void) {
  static const uint32_t ids[3] = {BITNET_OP_EMBED_GATHER, BITNET_OP_RELU2, BITNET_OP_GATHER_ROWS};
  static const bitnet_port ports[] = {{BITNET_PORT_TOKENS, BITNET_NONE},
                                      {BITNET_PORT_OUTPUT_ROWS, BITNET_NONE},
                                      {BITNET_PORT_LOGITS, 2}};
  static const uint32_t buckets[] = {tokens};
  memset(&model, 0, sizeof model);
  for (uint32_t i = 0; i < 3; ++i) {
    bitnet_op* const op = &model.ops[i];
    model.values[i] = (bitnet_value){
        BITNET_DTYPE_F32, 0, {i == 2 ? BITNET_DIM_OUTPUTS : BITNET_DIM_TOKENS, width}};
    op->op = ids[i];
    memset(op->inputs, 0xff, sizeof op->inputs);
    memset(op->outputs, 0xff, sizeof op->outputs);
    memset(op->weights, 0xff, sizeof op->weights);
    if (i > 0) op->inputs[0] = i - 1;
    op->outputs[0] = i;
  }
  model.ops[0].weights[0] = 0;
  for (int i = 0; i < vocabulary * width; ++i) model.rows[i] = (float)(i % 2 ? -i : i);
  model.desc = (bitnet_tensor_desc){.struct_size = sizeof model.desc,
                                    .format = BITNET_FORMAT_F32,
                                    .rank = 2,
                                    .ne = {width, vocabulary, 1, 1},
                                    .data_bytes = sizeof model.rows,
                                    .name = {"rows", 4}};
  model.graph = (bitnet_graph){sizeof model.graph,
                               sizeof model.values[0],
                               sizeof model.ops[0],
                               sizeof ports[0],
                               3,
                               3,
                               3,
                               0,
                               model.values,
                               model.ops,
                               ports};
  model.options = (bitnet_program_options){.struct_size = sizeof model.options,
                                           .max_tokens = tokens,
                                           .max_sequences = 1,
                                           .max_outputs = tokens,
                                           .max_blocks = 1,
                                           .block_tokens = block_tokens,
                                           .n_buckets = 1,
                                           .buckets = buckets};
}

static int can_compute(bitnet_device* device) {
  uint32_t levels[3];
  const bitnet_query_request query = {.struct_size = sizeof query,
                                      .desc_size = sizeof model.desc,
                                      .graph = &model.graph,
                                      .descs = &model.desc,
                                      .options = &model.options,
                                      .n_descs = 1};
  bitnet_graph_estimate needs = {.struct_size = sizeof needs};
  must(t->graph_query(device, &query, levels, &needs, &err), "graph_query");
  for (int i = 0; i < 3; ++i)
    if (levels[i] == BITNET_LEVEL_NONE) return 0;
  return 1;
}

static bitnet_weights* upload(bitnet_device* device) {
  const bitnet_weights_request wanted = {
      .struct_size = sizeof wanted, .desc_size = sizeof model.desc, .n = 1, .descs = &model.desc};
  bitnet_weights* weights;
  must(t->weights_create(device, &wanted, &weights, &err), "weights_create");
  must(t->weight_write(weights, 0, 0, model.rows, sizeof model.rows, &err), "weight_write");
  must(t->weight_seal(weights, 0, &err), "weight_seal");
  return weights;
}

static void run(bitnet_device* device, bitnet_program* program) {
  void *mapped, *logits;
  const bitnet_bound bound[] = {
      {make_buffer(device, tokens, 1, &mapped), 0, tokens * sizeof(int32_t)},
      {make_buffer(device, tokens, 1, &mapped), 0, tokens * sizeof(int32_t)},
      {make_buffer(device, tokens * width, 0, &logits), 0, tokens * width * sizeof(float)}};
  const bitnet_bind_request bind = {
      .struct_size = sizeof bind, .bound_size = sizeof bound[0], .n_bound = 3, .bound = bound};
  bitnet_binding* binding;
  must(t->program_bind(program, &bind, &binding, &err), "program_bind");
  const bitnet_prepare_request size = {.struct_size = sizeof size,
                                       .n_tokens = tokens,
                                       .n_outputs = tokens,
                                       .n_sequences = t->abi_minor < 2 ? 0 : 1};
  must(t->binding_prepare(binding, &size, &err), "binding_prepare");
  const bitnet_queue_request in_order = {.struct_size = sizeof in_order};
  bitnet_queue* queue;
  must(t->queue_create(device, &in_order, &queue, &err), "queue_create");
  const bitnet_step step = {.struct_size = sizeof step,
                            .n_tokens = tokens,
                            .n_sequences = 1,
                            .n_outputs = tokens,
                            .binding = binding,
                            .signal_value = 1};
  must(t->queue_submit(queue, &step, &err), "queue_submit");
  must(t->queue_wait(queue, 1, UINT64_MAX, &err), "queue_wait");
  for (int i = 0; i < tokens * width; ++i) {
    const float x = model.rows[i];
    agree(((float*)logits)[i] == (x > 0 ? x * x : 0), "a wrong number");
  }
  t->queue_destroy(queue);
  t->binding_destroy(binding);
  for (int i = 0; i < 3; ++i) t->buffer_destroy(bound[i].buffer);
}

static int compute(bitnet_device* device) {
  make_model();
  if (!can_compute(device)) return 0;
  bitnet_weights* weights = upload(device);
  const bitnet_build_request build = {.struct_size = sizeof build,
                                      .n_weights = 1,
                                      .graph = &model.graph,
                                      .weights = &weights,
                                      .options = &model.options};
  bitnet_program* program;
  must(t->program_build(device, &build, &program, &err), "program_build");
  run(device, program);
  t->program_destroy(program);
  t->weights_destroy(weights);
  return 1;
}

static void list_devices(void) {
  uint32_t n = 0;
  const bitnet_status status = t->device_count(t->self, &n, &err);
  if (status == BITNET_UNAVAILABLE) {
    printf("unavailable: %s\n", err.message);
    return;
  }
  must(status, "device_count");
  printf("%u devices\n", n);
  for (uint32_t i = 0; i < n; ++i) {
    bitnet_device_info info = {.struct_size = sizeof info};
    must(t->device_info(t->self, i, &info, &err), "device_info");
    uint32_t count = 0;
    must(t->kernels(t->self, i, NULL, sizeof(bitnet_kernel_info), &count, &err), "kernels");
    bitnet_device* device;
    const bitnet_device_request request = {.struct_size = sizeof request, .index = i};
    must(t->device_open(t->self, &request, &device, &err), "device_open");
    printf("device %u: %s, %u kernels, %s\n", i, info.name, count,
           compute(device) ? "relu2 right" : "nothing computed");
    t->device_close(device);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: core_side PLUGIN\n");
    return 2;
  }
  err.struct_size = sizeof err;
  open_backend(argv[1]);
  describe();
  list_devices();
  must(t->quiesce(t->self, 1000000000u, &err), "quiesce");
  t->close(t->self);
  return 0;
}
