/* SPDX-License-Identifier: Apache-2.0 */
/* A program is the list of ops with everything checked once; a step runs them in order. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

struct value {
  int64_t rows; /* BITNET_DIM_TOKENS or BITNET_DIM_OUTPUTS */
  uint64_t width;
  float* data; /* (max_tokens or max_outputs, width); NULL until an op writes it */
};

struct op {
  uint32_t kernel; /* index into all_kernels */
  uint32_t in;     /* value, or BITNET_NONE */
  uint32_t out;
  const struct tensor* weight; /* or NULL */
};

struct bitnet_program {
  bitnet_device* device;
  uint32_t n_values, n_ops, logits;
  struct value* values;
  struct op* ops;
  bitnet_program_options bounds;
  bitnet_step_buffers bound;     /* its struct_size is 0 until program_bind */
  uint64_t scratch_bytes;        /* of all values */
  uint64_t vocabulary;           /* rows of the smallest weight that tokens choose from */
  pthread_mutex_t one_at_a_time; /* steps of several queues, and program_stats */
  uint64_t calls[n_kernels];
};

/* ---- building ---- */

static bitnet_status invalid(bitnet_error* err, const char* what) {
  return fail(err, BITNET_INVALID_ARGUMENT, "program_build", "%s", what);
}

static bitnet_status add_value(struct bitnet_program* p, const bitnet_value* v, bitnet_error* err) {
  const bool tokens = v->dims[0] == BITNET_DIM_TOKENS;
  if (v->dtype != BITNET_DTYPE_F32)
    return fail(err, BITNET_UNSUPPORTED, "program_build", "values are f32 here");
  if ((!tokens && v->dims[0] != BITNET_DIM_OUTPUTS) || v->dims[1] <= 0)
    return invalid(err, "a value has no rows of tokens or outputs");
  p->values[p->n_values++] = (struct value){v->dims[0], (uint64_t)v->dims[1], NULL};
  return BITNET_OK;
}

/* Ops come in order, so a value that has no memory yet was not written yet. */
static bitnet_status add_op(struct bitnet_program* p, const bitnet_op* o,
                            const bitnet_weights* weights, bitnet_error* err) {
  const bool embeds = o->op == BITNET_OP_EMBED_GATHER, gathers = o->op == BITNET_OP_GATHER_ROWS;
  struct op op = {
      find_kernel(p->device->backend, o->op, embeds ? BITNET_FORMAT_F32 : BITNET_FORMAT_NONE),
      o->inputs[0], o->outputs[0], NULL};
  if (op.kernel == n_kernels)
    return fail(err, BITNET_UNSUPPORTED, "program_build", "op %u is not known here", o->op);
  if (op.out >= p->n_values || p->values[op.out].data)
    return invalid(err, "an op writes no value, or one that is written already");
  struct value* out = &p->values[op.out];
  if (embeds) {
    if (o->weights[0] >= weights->n || !weights->tensors[o->weights[0]].sealed)
      return invalid(err, "embed_gather has no sealed weight");
    op.in = BITNET_NONE;
    op.weight = &weights->tensors[o->weights[0]];
    if (op.weight->k != out->width || out->rows != BITNET_DIM_TOKENS)
      return invalid(err, "embed_gather: the weight and the value differ in width");
    if (op.weight->m < p->vocabulary) p->vocabulary = op.weight->m;
  } else {
    if (op.in >= p->n_values || !p->values[op.in].data)
      return invalid(err, "an op reads a value before it is written");
    const struct value* in = &p->values[op.in];
    const bool rows_fit = gathers ? in->rows == BITNET_DIM_TOKENS && out->rows == BITNET_DIM_OUTPUTS
                                  : in->rows == out->rows;
    if (in->width != out->width || !rows_fit) return invalid(err, "the values of an op do not fit");
  }
  const uint32_t rows =
      out->rows == BITNET_DIM_TOKENS ? p->bounds.max_tokens : p->bounds.max_outputs;
  uint64_t bytes;
  if (!product(rows, out->width, &bytes) || !product(bytes, sizeof(float), &bytes) ||
      !(out->data = malloc(bytes ? bytes : 1)))
    return fail(err, BITNET_OUT_OF_MEMORY, "program_build", "no memory for a value");
  p->scratch_bytes += bytes;
  p->ops[p->n_ops++] = op;
  return BITNET_OK;
}

bitnet_status program_build(bitnet_device* device, const bitnet_graph* graph,
                            bitnet_weights* weights, const bitnet_program_options* options,
                            bitnet_program** out, bitnet_error* err) {
  if (graph->value_size < sizeof(bitnet_value) || graph->op_size < sizeof(bitnet_op) ||
      !BITNET_HAS_FIELD(options, bitnet_program_options, block_tokens))
    return invalid(err, "structs that are shorter than those of ABI 0.0");
  struct bitnet_program* p = calloc(1, sizeof *p);
  if (p) {
    p->values = calloc(graph->n_values + 1ull, sizeof *p->values);
    p->ops = calloc(graph->n_ops + 1ull, sizeof *p->ops);
  }
  if (!p || !p->values || !p->ops || pthread_mutex_init(&p->one_at_a_time, NULL) != 0) {
    if (p) {
      free(p->values);
      free(p->ops);
    }
    free(p);
    return fail(err, BITNET_OUT_OF_MEMORY, "program_build", "no memory for %u ops", graph->n_ops);
  }
  p->device = device;
  p->logits = graph->logits;
  p->vocabulary = UINT64_MAX;
  p->bounds.max_tokens = options->max_tokens;
  p->bounds.max_sequences = options->max_sequences;
  p->bounds.max_outputs = options->max_outputs;
  p->bounds.max_blocks = options->max_blocks;

  bitnet_status status = BITNET_OK;
  for (uint32_t i = 0; i < graph->n_values && status == BITNET_OK; ++i) {
    bitnet_value v;
    memcpy(&v, (const char*)graph->values + (uint64_t)i * graph->value_size, sizeof v);
    status = add_value(p, &v, err);
  }
  for (uint32_t i = 0; i < graph->n_ops && status == BITNET_OK; ++i) {
    bitnet_op o;
    memcpy(&o, (const char*)graph->ops + (uint64_t)i * graph->op_size, sizeof o);
    if (o.op >= BITNET_OP_FIRST_COMPOSITE) continue; /* its body follows */
    status = add_op(p, &o, weights, err);
  }
  if (status == BITNET_OK && (p->logits >= p->n_values || !p->values[p->logits].data ||
                              p->values[p->logits].rows != BITNET_DIM_OUTPUTS))
    status = invalid(err, "no op writes the logits");
  if (status != BITNET_OK) {
    program_destroy(p);
    return status;
  }
  *out = p;
  return BITNET_OK;
}

void program_destroy(bitnet_program* program) {
  if (!program) return;
  for (uint32_t i = 0; i < program->n_values; ++i) free(program->values[i].data);
  pthread_mutex_destroy(&program->one_at_a_time);
  free(program->values);
  free(program->ops);
  free(program);
}

bitnet_status program_estimate(bitnet_program* program, uint32_t n_tokens,
                               bitnet_program_estimate* out, bitnet_error* err) {
  const bitnet_program_estimate value = {.struct_size = sizeof value,
                                         .scratch_bytes = program->scratch_bytes};
  const bitnet_status status = program_prepare(program, n_tokens, err);
  if (status == BITNET_OK) hand_over(&value, sizeof value, out);
  return status;
}

bitnet_status program_prepare(bitnet_program* program, uint32_t n_tokens, bitnet_error* err) {
  if (n_tokens <= program->bounds.max_tokens) return BITNET_OK; /* ready since program_build */
  return fail(err, BITNET_INVALID_ARGUMENT, "program_prepare", "%u tokens, %u were announced",
              n_tokens, program->bounds.max_tokens);
}

bitnet_status program_bind(bitnet_program* program, const bitnet_step_buffers* buffers,
                           bitnet_error* err) {
  const bitnet_program_options* b = &program->bounds;
  uint64_t logits_bytes;
  if (!product(b->max_outputs, program->values[program->logits].width, &logits_bytes) ||
      !product(logits_bytes, sizeof(float), &logits_bytes) ||
      !BITNET_HAS_FIELD(buffers, bitnet_step_buffers, logits) || !buffers->tokens ||
      !buffers->output_rows || !buffers->logits ||
      buffers->tokens->bytes < b->max_tokens * sizeof(int32_t) ||
      buffers->output_rows->bytes < b->max_outputs * sizeof(int32_t) ||
      buffers->logits->bytes < logits_bytes)
    return fail(err, BITNET_INVALID_ARGUMENT, "program_bind",
                "a step buffer is missing or too small");
  program->bound = *buffers;
  program->bound.struct_size = sizeof program->bound;
  return BITNET_OK;
}

bitnet_status program_stats(bitnet_program* program, bitnet_kernel_stat* out, uint32_t out_size,
                            uint32_t* count, bitnet_error* err) {
  const uint32_t room = *count;
  uint32_t n = 0;
  pthread_mutex_lock(&program->one_at_a_time);
  for (uint32_t i = 0; i < n_kernels; ++i) {
    if (program->calls[i] == 0) continue;
    if (n < room) {
      bitnet_kernel_stat value = {.op = all_kernels[i].op, .calls = program->calls[i]};
      value.struct_size = out_size < sizeof value ? out_size : sizeof value;
      snprintf(value.id, sizeof value.id, "%s", all_kernels[i].id);
      memcpy((char*)out + (uint64_t)n * out_size, &value, value.struct_size);
    }
    ++n;
  }
  pthread_mutex_unlock(&program->one_at_a_time);
  *count = n;
  return BITNET_OK;
}

/* ---- running ---- */

struct bitnet_queue {
  _Atomic uint64_t timeline;
};

bitnet_status queue_create(bitnet_device* device, bitnet_queue** out, bitnet_error* err) {
  struct bitnet_queue* q = calloc(1, sizeof *q);
  if (!q) return fail(err, BITNET_OUT_OF_MEMORY, "queue_create", "out of memory");
  *out = q;
  return BITNET_OK;
}

void queue_destroy(bitnet_queue* queue) {
  free(queue);
}

static bitnet_status check_step(const bitnet_program* p, const bitnet_step* s, bitnet_error* err) {
  if (p->bound.struct_size == 0 || s->n_tokens > p->bounds.max_tokens ||
      s->n_sequences > p->bounds.max_sequences || s->n_outputs > p->bounds.max_outputs)
    return fail(err, BITNET_INVALID_ARGUMENT, "queue_submit",
                "the program is not bound, or the step is larger than announced");
  const int32_t* tokens = p->bound.tokens->data;
  const int32_t* rows = p->bound.output_rows->data;
  for (uint32_t t = 0; t < s->n_tokens; ++t)
    if (tokens[t] < 0 || (uint64_t)tokens[t] >= p->vocabulary)
      return fail(err, BITNET_INVALID_ARGUMENT, "queue_submit", "token %d is not in the vocabulary",
                  tokens[t]);
  for (uint32_t o = 0; o < s->n_outputs; ++o)
    if (rows[o] < 0 || (uint32_t)rows[o] >= s->n_tokens)
      return fail(err, BITNET_INVALID_ARGUMENT, "queue_submit", "output row %d of %u tokens",
                  rows[o], s->n_tokens);
  return BITNET_OK;
}

static bitnet_status run(struct bitnet_program* p, const bitnet_step* s, bitnet_error* err) {
  const bitnet_host_v0* host = p->device->backend->host;
  for (uint32_t i = 0; i < p->n_ops; ++i) {
    const struct op* op = &p->ops[i];
    const struct value* out = &p->values[op->out];
    if (s->cancel_token != 0 && host->cancelled(host->self, s->cancel_token) != 0)
      return fail(err, BITNET_CANCELLED, "queue_submit", "cancelled");
    const bool embeds = op->in == BITNET_NONE;
    const struct work w = {
        .rows = out->rows == BITNET_DIM_TOKENS ? s->n_tokens : s->n_outputs,
        .width = out->width,
        .in = embeds ? NULL : p->values[op->in].data,
        .weight = embeds ? op->weight->data : NULL,
        .index = embeds ? p->bound.tokens->data : p->bound.output_rows->data,
        .out = out->data,
    };
    all_kernels[op->kernel].run(&w);
    ++p->calls[op->kernel];
  }
  const struct value* logits = &p->values[p->logits];
  memcpy(p->bound.logits->data, logits->data, s->n_outputs * logits->width * sizeof(float));
  return BITNET_OK;
}

bitnet_status queue_submit(bitnet_queue* queue, const bitnet_step* step, bitnet_error* err) {
  if (!BITNET_HAS_FIELD(step, bitnet_step, signal_value) || !step->program ||
      step->signal_value <= atomic_load(&queue->timeline))
    return fail(err, BITNET_INVALID_ARGUMENT, "queue_submit",
                "no program, or a signal that the timeline has passed");
  pthread_mutex_lock(&step->program->one_at_a_time);
  bitnet_status status = check_step(step->program, step, err);
  if (status == BITNET_OK) status = run(step->program, step, err);
  pthread_mutex_unlock(&step->program->one_at_a_time);
  if (status == BITNET_OK) atomic_store(&queue->timeline, step->signal_value);
  return status;
}

bitnet_status queue_wait(bitnet_queue* queue, uint64_t value, uint64_t timeout_ns,
                         bitnet_error* err) {
  if (atomic_load(&queue->timeline) >= value) return BITNET_OK;
  return fail(err, BITNET_TIMEOUT, "queue_wait", "no step that was submitted reaches %llu",
              (unsigned long long)value);
}

bitnet_status queue_poll(bitnet_queue* queue, uint64_t* out, bitnet_error* err) {
  *out = atomic_load(&queue->timeline);
  return BITNET_OK;
}
