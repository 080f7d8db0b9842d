/* SPDX-License-Identifier: Apache-2.0 */
/* A program is a checked graph; a binding is the memory that its steps work on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

bitnet_status program_build(bitnet_device* device, const bitnet_build_request* request,
                            bitnet_program** out, bitnet_error* err) {
  NEED(device);
  NEED(out);
  bitnet_build_request r;
  bitnet_program* p = NULL;
  bitnet_status status = receive(request, sizeof r, &r, sizeof r, __func__, err);
  if (status != BITNET_OK) return status;
  NEED(r.n_weights == 0 || r.weights);
  for (uint32_t i = 0; i < r.n_weights; ++i) NEED(r.weights[i]);
  if (is_cancelled(device->backend, r.cancel_token))
    return fail(err, BITNET_CANCELLED, __func__, "cancelled");
  status = read_graph(device, r.graph, r.options, r.weights, r.n_weights, &p, __func__, err);
  if (status == BITNET_OK) *out = p;
  return status;
}

void program_destroy(bitnet_program* program) {
  if (!program) return;
  free(program->values);
  free(program->ops);
  free(program->ports);
  free(program);
}

bitnet_status program_stats(bitnet_program* program, bitnet_kernel_stat* out, uint32_t out_size,
                            uint32_t* count, bitnet_error* err) {
  NEED(program);
  NEED(count);
  NEED(*count == 0 || (out && out_size >= sizeof out->struct_size));
  const uint32_t room = *count;
  *count = 0;
  for (uint32_t i = 0; i < n_kernels; ++i) {
    const uint64_t calls = atomic_load(&program->calls[i]);
    if (calls == 0) continue;
    bitnet_kernel_stat value = {.op = all_kernels[i].op, .calls = calls};
    snprintf(value.id, sizeof value.id, "%s", all_kernels[i].id);
    hand_over_one(&value, sizeof value, out, out_size, (*count)++, room);
  }
  return BITNET_OK;
}

/* ---- bindings ---- */

/* Of the largest step. */
static bool bytes_of_port(const bitnet_program* p, const bitnet_port* port, uint64_t* out) {
  const bitnet_program_options* b = &p->bounds;
  uint64_t numbers = b->max_tokens;
  if (port->value != BITNET_NONE) {
    *out = p->values[port->value].bytes;
    return true;
  }
  if (port->role == BITNET_PORT_OUTPUT_ROWS) numbers = b->max_outputs;
  if (port->role == BITNET_PORT_STATES) numbers = b->max_sequences;
  if (port->role == BITNET_PORT_BLOCK_TABLES) numbers = (uint64_t)b->max_sequences * b->max_blocks;
  return product(numbers, sizeof(int32_t), out);
}

static void note_place(bitnet_binding* to, const bitnet_port* port, char* place) {
  const int32_t* numbers = (const int32_t*)(void*)place;
  switch (port->role) {
    case BITNET_PORT_TOKENS:
      to->facts.tokens = numbers;
      break;
    case BITNET_PORT_POSITIONS:
      to->facts.positions = numbers;
      break;
    case BITNET_PORT_SEQUENCES:
      to->facts.sequences = numbers;
      break;
    case BITNET_PORT_SLOTS:
      to->facts.slots = numbers;
      break;
    case BITNET_PORT_BLOCK_TABLES:
      to->facts.block_tables = numbers;
      break;
    case BITNET_PORT_OUTPUT_ROWS:
      to->facts.output_rows = numbers;
      break;
    case BITNET_PORT_STATES:
      to->facts.states = numbers;
      break;
    default:
      to->values[port->value] = place;
      break;
  }
}

static bitnet_status bind(bitnet_binding* to, const bitnet_bound* bound, const char* where,
                          bitnet_error* err) {
  const bitnet_program* p = to->program;
  for (uint32_t i = 0; i < p->n_ports; ++i) {
    const bitnet_bound* b = &bound[i];
    uint64_t needed;
    if (!b->buffer || b->offset > b->buffer->bytes || b->bytes > b->buffer->bytes - b->offset ||
        b->offset % buffer_alignment != 0 || !bytes_of_port(p, &p->ports[i], &needed) ||
        b->bytes < needed)
      return fail(err, BITNET_INVALID_ARGUMENT, where,
                  "what stands for port %u is missing, too small, odd, or past its buffer", i);
    note_place(to, &p->ports[i], b->buffer->data + b->offset);
  }
  return BITNET_OK;
}

/* Whether the pool, NULL if there is none, is one for the program. */
static bitnet_status check_pool(const bitnet_program* p, const bitnet_kv_pool* pool,
                                const char* where, bitnet_error* err) {
  if (p->kv_width == 0 && p->state_elements == 0) return BITNET_OK;
  if (!pool) return fail(err, BITNET_INVALID_ARGUMENT, where, "the program needs a pool");
  const bitnet_kv_config* c = &pool->is;
  if (c->state_elements < p->state_elements ||
      (p->kv_width != 0 &&
       (c->n_layers < p->kv_layers || (uint64_t)c->n_kv_heads * c->head_dim_k != p->kv_width ||
        (p->n_kv_heads != 0 && c->n_kv_heads != p->n_kv_heads) ||
        c->block_tokens != p->bounds.block_tokens)))
    return fail(
        err, BITNET_INVALID_ARGUMENT, where,
        "a pool of %u layers, %u heads of %u, blocks of %u tokens and states of %u elements "
        "is not one for this program",
        c->n_layers, c->n_kv_heads, c->head_dim_k, c->block_tokens, c->state_elements);
  return BITNET_OK;
}

/* Memory of this binding alone for what no port brings or takes. */
static bitnet_status make_arena(bitnet_binding* b, const char* where, bitnet_error* err) {
  const bitnet_program* p = b->program;
  const uint64_t unit = buffer_alignment;
  char* at = b->arena = aligned_alloc(unit, p->arena_bytes);
  if (!at)
    return fail(err, BITNET_OUT_OF_MEMORY, where, "no memory for %llu bytes",
                (unsigned long long)p->arena_bytes);
  for (uint32_t i = 0; i < p->n_values; ++i) {
    const struct value* v = &p->values[i];
    if (!v->written || v->has_port) continue;
    b->values[i] = at;
    at += (v->bytes + unit - 1) / unit * unit;
  }
  b->scratch = (float*)(void*)at;
  return BITNET_OK;
}

bitnet_status program_bind(bitnet_program* program, const bitnet_bind_request* request,
                           bitnet_binding** out, bitnet_error* err) {
  NEED(program);
  NEED(out);
  bitnet_bind_request r;
  void* bound = NULL;
  bitnet_status status = receive(request, sizeof r, &r, sizeof r, __func__, err);
  if (status != BITNET_OK) return status;
  if (r.reserved_0 != 0)
    return fail(err, BITNET_UNSUPPORTED, __func__, "reserved_0 of the request is not 0");
  if (r.n_bound != program->n_ports)
    return fail(err, BITNET_INVALID_ARGUMENT, __func__, "%u buffers for %u ports", r.n_bound,
                program->n_ports);
  status =
      receive_array(r.bound, r.bound_size, r.n_bound, &bound, sizeof(bitnet_bound), __func__, err);
  if (status != BITNET_OK) return status;
  struct bitnet_binding* b = calloc(1, sizeof *b + program->n_values * sizeof b->values[0]);
  if (!b) {
    free(bound);
    return fail(err, BITNET_OUT_OF_MEMORY, __func__, "out of memory");
  }
  b->program = program;
  b->facts.max_blocks = program->bounds.max_blocks;
  b->facts.block_tokens = program->bounds.block_tokens;
  b->facts.pool = r.kv_pool;
  status = bind(b, bound, __func__, err);
  free(bound);
  if (status == BITNET_OK) status = check_pool(program, r.kv_pool, __func__, err);
  if (status == BITNET_OK) status = make_arena(b, __func__, err);
  if (status == BITNET_OK)
    *out = b;
  else
    binding_destroy(b);
  return status;
}

bitnet_status binding_prepare(bitnet_binding* binding, const bitnet_prepare_request* request,
                              bitnet_error* err) {
  NEED(binding);
  bitnet_prepare_request r;
  const bitnet_status status =
      receive(request, offsetof(bitnet_prepare_request, n_sequences), &r, sizeof r, __func__, err);
  if (status != BITNET_OK) return status;
  if (r.reserved_0 != 0 || r.reserved_1 != 0)
    return fail(err, BITNET_UNSUPPORTED, __func__, "a reserved member is not 0");
  const bitnet_program_options* b = &binding->program->bounds;
  if (is_cancelled(binding->program->device->backend, r.cancel_token))
    return fail(err, BITNET_CANCELLED, __func__, "cancelled");
  if (r.n_tokens <= b->max_tokens && r.n_outputs <= b->max_outputs &&
      r.n_sequences <= b->max_sequences)
    return BITNET_OK; /* ready since program_bind */
  return fail(err, BITNET_INVALID_ARGUMENT, __func__,
              "%u tokens, %u outputs and %u sequences, of %u, %u and %u", r.n_tokens, r.n_outputs,
              r.n_sequences, b->max_tokens, b->max_outputs, b->max_sequences);
}

void binding_destroy(bitnet_binding* binding) {
  if (binding) free(binding->arena);
  free(binding); /* every step has ended when queue_submit returns */
}
