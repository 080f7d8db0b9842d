/* SPDX-License-Identifier: Apache-2.0 */
/* A program is a checked graph with memory for its values; a step runs its ops in order. */
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
  status = read_graph(device, r.graph, r.options, r.weights, r.n_weights, &p, __func__, err);
  if (status != BITNET_OK) return status;
  for (uint32_t i = 0; i < p->n_values && status == BITNET_OK; ++i) {
    struct value* v = &p->values[i];
    if (v->written && !(v->data = malloc(v->bytes)))
      status = fail(err, BITNET_OUT_OF_MEMORY, __func__, "no memory for %llu bytes",
                    (unsigned long long)v->bytes);
  }
  if (status == BITNET_OK)
    *out = p;
  else
    program_destroy(p);
  return status;
}

void program_destroy(bitnet_program* program) {
  if (!program) return;
  for (uint32_t i = 0; i < program->n_values; ++i) free(program->values[i].data);
  pthread_mutex_destroy(&program->one_at_a_time);
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
  pthread_mutex_lock(&program->one_at_a_time);
  for (uint32_t i = 0; i < n_kernels; ++i) {
    if (program->calls[i] == 0) continue;
    bitnet_kernel_stat value = {.op = all_kernels[i].op, .calls = program->calls[i]};
    snprintf(value.id, sizeof value.id, "%s", all_kernels[i].id);
    hand_over_one(&value, sizeof value, out, out_size, (*count)++, room);
  }
  pthread_mutex_unlock(&program->one_at_a_time);
  return BITNET_OK;
}

/* ---- bindings ---- */

struct bitnet_binding {
  bitnet_program* program;
  const int32_t *tokens, *output_rows; /* NULL where no op reads them */
  char* places[];                      /* (n_ports) */
};

/* Of the largest step. */
static bool bytes_of_port(const bitnet_program* p, const bitnet_port* port, uint64_t* out) {
  const bitnet_program_options* b = &p->bounds;
  uint64_t numbers = b->max_tokens;
  if (port->value != BITNET_NONE) {
    *out = p->values[port->value].bytes;
    return true;
  }
  if (port->role == BITNET_PORT_OUTPUT_ROWS) numbers = b->max_outputs;
  if (port->role == BITNET_PORT_BLOCK_TABLES) numbers = (uint64_t)b->max_sequences * b->max_blocks;
  return product(numbers, sizeof(int32_t), out);
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
    to->places[i] = b->buffer->data + b->offset;
    if (p->ports[i].role == BITNET_PORT_TOKENS) to->tokens = (const int32_t*)(void*)to->places[i];
    if (p->ports[i].role == BITNET_PORT_OUTPUT_ROWS)
      to->output_rows = (const int32_t*)(void*)to->places[i];
  }
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
  struct bitnet_binding* b = calloc(1, sizeof *b + r.n_bound * sizeof b->places[0]);
  if (!b) {
    free(bound);
    return fail(err, BITNET_OUT_OF_MEMORY, __func__, "out of memory");
  }
  b->program = program;
  status = bind(b, bound, __func__, err);
  free(bound);
  if (status == BITNET_OK)
    *out = b;
  else
    free(b);
  return status;
}

bitnet_status binding_prepare(bitnet_binding* binding, const bitnet_prepare_request* request,
                              bitnet_error* err) {
  NEED(binding);
  bitnet_prepare_request r;
  const bitnet_status status = receive(request, sizeof r, &r, sizeof r, __func__, err);
  if (status != BITNET_OK) return status;
  if (r.reserved_0 != 0) return fail(err, BITNET_UNSUPPORTED, __func__, "reserved_0 is not 0");
  const bitnet_program_options* b = &binding->program->bounds;
  if (r.n_tokens <= b->max_tokens && r.n_outputs <= b->max_outputs)
    return BITNET_OK; /* ready since program_build */
  return fail(err, BITNET_INVALID_ARGUMENT, __func__, "%u tokens and %u outputs, of %u and %u",
              r.n_tokens, r.n_outputs, b->max_tokens, b->max_outputs);
}

void binding_destroy(bitnet_binding* binding) {
  free(binding); /* every step has ended when queue_submit returns */
}

/* ---- running ---- */

bitnet_status queue_create(bitnet_device* device, const bitnet_queue_request* request,
                           bitnet_queue** out, bitnet_error* err) {
  NEED(out);
  bitnet_queue_request r;
  const bitnet_status status = receive(request, sizeof r, &r, sizeof r, __func__, err);
  if (status != BITNET_OK) return status;
  struct bitnet_queue* q = calloc(1, sizeof *q);
  if (!q) return fail(err, BITNET_OUT_OF_MEMORY, __func__, "out of memory");
  *out = q;
  return BITNET_OK;
}

void queue_destroy(bitnet_queue* queue) {
  free(queue);
}

bitnet_status check_signal(bitnet_queue* queue, uint64_t signal, const char* where,
                           bitnet_error* err) {
  if (signal > atomic_load(&queue->timeline)) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "the timeline has passed %llu",
              (unsigned long long)signal);
}

static bitnet_status check_step(const bitnet_binding* on, const bitnet_step* s, const char* where,
                                bitnet_error* err) {
  const bitnet_program* p = on->program;
  if (s->window != 0 || s->reserved_0 != 0)
    return fail(err, BITNET_UNSUPPORTED, where, "steps have no window here");
  if (s->n_tokens > p->bounds.max_tokens || s->n_sequences > p->bounds.max_sequences ||
      s->n_outputs > p->bounds.max_outputs)
    return fail(err, BITNET_INVALID_ARGUMENT, where, "the step is larger than announced");
  for (uint32_t t = 0; p->vocabulary != UINT64_MAX && t < s->n_tokens; ++t)
    if (on->tokens[t] < 0 || (uint64_t)on->tokens[t] >= p->vocabulary)
      return fail(err, BITNET_INVALID_ARGUMENT, where, "token %d is not in the vocabulary",
                  on->tokens[t]);
  for (uint32_t o = 0; p->gathers && o < s->n_outputs; ++o)
    if (on->output_rows[o] < 0 || (uint32_t)on->output_rows[o] >= s->n_tokens)
      return fail(err, BITNET_INVALID_ARGUMENT, where, "output row %d of %u tokens",
                  on->output_rows[o], s->n_tokens);
  return BITNET_OK;
}

/* Values that come in are copied before the ops, those that go out after them: so a binding may
 * name one buffer for both. */
static void carry(const bitnet_binding* on, const bitnet_step* s, bool in) {
  const bitnet_program* p = on->program;
  for (uint32_t i = 0; i < p->n_ports; ++i) {
    if (p->ports[i].value == BITNET_NONE || (p->ports[i].role == BITNET_PORT_VALUE_IN) != in)
      continue;
    const struct value* v = &p->values[p->ports[i].value];
    const uint64_t bytes = rows_of(v->rows, s->n_tokens, s->n_outputs) * v->width * sizeof(float);
    memcpy(in ? (char*)v->data : on->places[i], in ? on->places[i] : (char*)v->data, bytes);
  }
}

static bitnet_status run(const bitnet_binding* on, const bitnet_step* s, const char* where,
                         bitnet_error* err) {
  struct bitnet_program* p = on->program;
  const bitnet_host_v0* host = p->device->backend->host;
  carry(on, s, true);
  for (uint32_t i = 0; i < p->n_ops; ++i) {
    const struct op* op = &p->ops[i];
    const struct value* out = &p->values[op->out];
    if (s->cancel_token != 0 && host->cancelled(host->self, s->cancel_token) != 0)
      return fail(err, BITNET_CANCELLED, where, "cancelled");
    const struct work w = {
        .rows = rows_of(out->rows, s->n_tokens, s->n_outputs),
        .width = out->width,
        .in = op->weight ? NULL : p->values[op->in].data,
        .weight = op->weight ? op->weight->data : NULL,
        .index = op->weight ? on->tokens : on->output_rows,
        .out = out->data,
    };
    all_kernels[op->kernel].run(&w);
    ++p->calls[op->kernel];
  }
  carry(on, s, false);
  return BITNET_OK;
}

bitnet_status queue_submit(bitnet_queue* queue, const bitnet_step* step, bitnet_error* err) {
  NEED(queue);
  bitnet_step s;
  bitnet_status status =
      receive(step, offsetof(bitnet_step, top_logits), &s, sizeof s, __func__, err);
  if (status == BITNET_OK) status = check_signal(queue, s.signal_value, __func__, err);
  if (status != BITNET_OK) return status;
  NEED(s.binding);
  pthread_mutex_lock(&s.binding->program->one_at_a_time);
  status = check_step(s.binding, &s, __func__, err);
  if (status == BITNET_OK) status = run(s.binding, &s, __func__, err);
  pthread_mutex_unlock(&s.binding->program->one_at_a_time);
  if (status == BITNET_OK) atomic_store(&queue->timeline, s.signal_value);
  return status;
}

bitnet_status queue_wait(bitnet_queue* queue, uint64_t value, uint64_t timeout_ns,
                         bitnet_error* err) {
  NEED(queue);
  if (atomic_load(&queue->timeline) >= value) return BITNET_OK;
  return fail(err, BITNET_TIMEOUT, __func__, "no step that was submitted reaches %llu",
              (unsigned long long)value);
}

bitnet_status queue_poll(bitnet_queue* queue, uint64_t* out, bitnet_error* err) {
  NEED(queue);
  NEED(out);
  *out = atomic_load(&queue->timeline);
  return BITNET_OK;
}
