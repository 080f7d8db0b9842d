/* SPDX-License-Identifier: Apache-2.0 */
/* A queue that does at once what it is given: when queue_submit returns, the step has ended. */
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

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

/* The facts of a binding for one step, all of them in range. */
static bitnet_status view(const bitnet_binding* on, const bitnet_step* s, struct facts* f,
                          const char* where, bitnet_error* err) {
  const bitnet_program_options* b = &on->program->bounds;
  if (s->reserved_0 != 0)
    return fail(err, BITNET_UNSUPPORTED, where, "reserved_0 of the step is not 0");
  if (s->window != 0 && (attention_flags & BITNET_ATTENTION_WINDOW) == 0)
    return fail(err, BITNET_UNSUPPORTED, where, "steps have no window here");
  if (s->n_tokens == 0 || s->n_tokens > b->max_tokens || s->n_sequences == 0 ||
      s->n_sequences > b->max_sequences || s->n_outputs > b->max_outputs)
    return fail(err, BITNET_INVALID_ARGUMENT, where,
                "%u tokens, %u sequences, %u outputs: at most %u, %u, %u are announced",
                s->n_tokens, s->n_sequences, s->n_outputs, b->max_tokens, b->max_sequences,
                b->max_outputs);
  *f = on->facts;
  f->n_tokens = s->n_tokens;
  f->n_sequences = s->n_sequences;
  f->n_outputs = s->n_outputs;
  f->window = s->window;
  f->window_keep = s->window != 0 ? s->window_keep : 0;
  return check_facts(on->program, f, where, err);
}

static struct work work_of(const bitnet_binding* on, const struct op* op, const struct facts* f) {
  const struct bitnet_program* p = on->program;
  const uint32_t *in = op->is.inputs, *out = op->is.outputs;
  struct work w = {.op = &op->is, .weight = op->weight, .facts = f, .scratch = on->scratch};
  int64_t rows = BITNET_DIM_TOKENS;
  if (in[0] != BITNET_NONE) {
    w.k = p->values[in[0]].width;
    rows = p->values[in[0]].rows;
  }
  if (in[1] != BITNET_NONE) w.k1 = p->values[in[1]].width;
  if (out[0] != BITNET_NONE) {
    w.m = p->values[out[0]].width;
    rows = p->values[out[0]].rows;
  }
  w.rows = rows_of(rows, f->n_tokens, f->n_outputs);
  for (uint32_t i = 0; i < 2; ++i) {
    if (in[i] != BITNET_NONE) w.in[i] = on->values[in[i]];
    if (out[i] != BITNET_NONE) w.out[i] = on->values[out[i]];
  }
  return w;
}

/* What a step that is cancelled has written are its own slots, states and values, which may then be
 * anything. */
static bitnet_status run(const bitnet_binding* on, const struct facts* f, uint64_t cancel_token,
                         const char* where, bitnet_error* err) {
  struct bitnet_program* p = on->program;
  for (uint32_t i = 0; i < p->n_ops; ++i) {
    if (is_cancelled(p->device->backend, cancel_token))
      return fail(err, BITNET_CANCELLED, where, "cancelled");
    const struct work w = work_of(on, &p->ops[i], f);
    all_kernels[p->ops[i].kernel].run(&w);
    atomic_fetch_add(&p->calls[p->ops[i].kernel], 1);
  }
  return BITNET_OK;
}

bitnet_status queue_submit(bitnet_queue* queue, const bitnet_step* step, bitnet_error* err) {
  NEED(queue);
  bitnet_step s;
  struct facts f;
  bitnet_status status =
      receive(step, offsetof(bitnet_step, top_logits), &s, sizeof s, __func__, err);
  if (status == BITNET_OK) status = check_signal(queue, s.signal_value, __func__, err);
  if (status != BITNET_OK) return status;
  NEED(s.binding);
  status = view(s.binding, &s, &f, __func__, err);
  if (status == BITNET_OK) status = run(s.binding, &f, s.cancel_token, __func__, err);
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
