/* SPDX-License-Identifier: Apache-2.0 */
/* A graph is a host's text: all of it is checked here, once, so that a step need not look at it
 * again. What is not known is BITNET_UNSUPPORTED, what cannot be is BITNET_INVALID_ARGUMENT. */
#include <stdlib.h>
#include <string.h>

#include "plain.h"

uint64_t rows_of(int64_t rows, uint64_t tokens, uint64_t outputs) {
  return rows == BITNET_DIM_TOKENS ? tokens : rows == BITNET_DIM_OUTPUTS ? outputs : (uint64_t)rows;
}

static bitnet_status check_options(const bitnet_program_options* given,
                                   bitnet_program_options* known, const char* where,
                                   bitnet_error* err) {
  const bitnet_status status = receive(given, offsetof(bitnet_program_options, precisions), known,
                                       sizeof *known, where, err);
  if (status != BITNET_OK) return status;
  /* Everything here runs in one fixed order, so that flag asks for nothing more. */
  if ((known->flags & BITNET_FLAGS_MUST_UNDERSTAND & ~BITNET_PROGRAM_DETERMINISTIC) != 0 ||
      known->reserved_0 != 0)
    return fail(err, BITNET_UNSUPPORTED, where, "flags %#x of a program", known->flags);
  const uint32_t largest = 1u << 24;
  const uint32_t bounds[] = {known->max_tokens, known->max_sequences, known->max_outputs,
                             known->max_blocks, known->block_tokens};
  for (uint32_t i = 0; i < 5; ++i)
    if (bounds[i] == 0 || bounds[i] > largest)
      return fail(err, BITNET_INVALID_ARGUMENT, where, "a bound of the program is %u", bounds[i]);
  if ((uint64_t)known->max_blocks * known->block_tokens <= INT32_MAX &&
      (uint64_t)known->max_sequences * known->max_blocks <= INT32_MAX &&
      (known->n_buckets == 0 || known->buckets))
    return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where,
              "positions and block tables must be counted in 31 bits, and buckets be given");
}

uint64_t element_bytes(uint32_t dtype) {
  return dtype == BITNET_DTYPE_F32 || dtype == BITNET_DTYPE_I32 ? 4
         : dtype == BITNET_DTYPE_F16                            ? 2
         : dtype == BITNET_DTYPE_I8                             ? 1
                                                                : 0;
}

static bitnet_status add_value(struct bitnet_program* p, const bitnet_value* v, const char* where,
                               bitnet_error* err) {
  const uint32_t i = p->n_values++;
  if (element_bytes(v->dtype) == 0 || v->reserved_0 != 0 || v->dims[0] < BITNET_DIM_OUTPUTS)
    return fail(err, BITNET_UNSUPPORTED, where, "value %u: type %u or its rows are not known", i,
                v->dtype);
  if (v->dims[0] == 0 || v->dims[1] <= 0 || v->dims[0] > INT32_MAX || v->dims[1] > INT32_MAX)
    return fail(err, BITNET_INVALID_ARGUMENT, where, "value %u is empty or too large", i);
  struct value* to = &p->values[i];
  to->dtype = v->dtype;
  to->rows = v->dims[0];
  to->width = (uint64_t)v->dims[1];
  if (product(rows_of(to->rows, p->bounds.max_tokens, p->bounds.max_outputs), to->width,
              &to->bytes) &&
      product(to->bytes, element_bytes(v->dtype), &to->bytes) && to->bytes <= INT64_MAX / most)
    return BITNET_OK;
  return fail(err, BITNET_OUT_OF_MEMORY, where, "value %u is out of reach", i);
}

static bool has_value(uint32_t role) {
  return role >= BITNET_PORT_VALUE_IN && role <= BITNET_PORT_LOGITS;
}

static bool has_port(const struct bitnet_program* p, uint32_t role) {
  return (p->roles >> role & 1) != 0;
}

static bitnet_status add_port(struct bitnet_program* p, bitnet_port port, const char* where,
                              bitnet_error* err) {
  if (port.role < BITNET_PORT_TOKENS || port.role > BITNET_PORT_STATES)
    return fail(err, BITNET_UNSUPPORTED, where, "ports of role %u are not known", port.role);
  const bool once = !has_value(port.role) || port.role == BITNET_PORT_LOGITS;
  if ((has_value(port.role) ? port.value >= p->n_values || p->values[port.value].has_port
                            : port.value != BITNET_NONE) ||
      (once && has_port(p, port.role)))
    return fail(err, BITNET_INVALID_ARGUMENT, where,
                "a port of role %u and value %u: no such "
                "value, or a port too many",
                port.role, port.value);
  if (has_value(port.role)) p->values[port.value].has_port = true;
  if (port.role == BITNET_PORT_VALUE_IN) p->values[port.value].written = true;
  p->roles |= 1u << port.role;
  p->ports[p->n_ports++] = port;
  return BITNET_OK;
}

/* The tensor that an op means by `index`: they are counted through all weights. */
static const struct tensor* find_tensor(bitnet_weights* const* weights, uint32_t n,
                                        uint32_t index) {
  for (uint32_t i = 0; i < n; ++i) {
    if (index < weights[i]->n) return &weights[i]->tensors[index];
    index -= weights[i]->n;
  }
  return NULL;
}

/* True if the first n are below `end`, and the others are unused. */
static bool are_indices(const uint32_t index[4], uint32_t n, uint32_t end) {
  for (uint32_t i = 0; i < 4; ++i)
    if (i < n ? index[i] >= end : index[i] != BITNET_NONE) return false;
  return true;
}

/* What an op has, as ops.h lists it. */
struct signature {
  uint32_t op, inputs, weights, outputs, ints, floats;
};

static const struct signature* find_signature(uint32_t op) {
#define SIGNATURE(name, id, inputs, weights, outputs, ints, floats) \
  {id, inputs, weights, outputs, ints, floats},
  static const struct signature all[] = {BITNET_OP_LIST(SIGNATURE)};
#undef SIGNATURE
  for (uint32_t i = 0; i < sizeof all / sizeof all[0]; ++i)
    if (all[i].op == op) return &all[i];
  return NULL;
}

/* True if there are more attributes than so many. */
static bool has_attributes(const bitnet_op* o, uint32_t ints, uint32_t floats) {
  for (uint32_t i = ints; i < 8; ++i)
    if (o->ints[i] != 0) return true;
  for (uint32_t i = floats; i < 4; ++i)
    if (o->floats[i] != 0) return true;
  return false;
}

/* Every value is written once, and before it is read. */
static bool are_in_order(const struct bitnet_program* p, const bitnet_op* o,
                         const struct signature* has) {
  for (uint32_t i = 0; i < has->inputs; ++i)
    if (!p->values[o->inputs[i]].written) return false;
  for (uint32_t i = 0; i < has->outputs; ++i)
    if (p->values[o->outputs[i]].written) return false;
  return has->outputs < 2 || o->outputs[0] != o->outputs[1];
}

static bitnet_status add_op(struct bitnet_program* p, const bitnet_op* o,
                            bitnet_weights* const* weights, uint32_t n_weights, const char* where,
                            bitnet_error* err) {
  const struct signature* has = find_signature(o->op);
  const struct tensor* weight = find_tensor(weights, n_weights, o->weights[0]);
  if (!weight && o->weights[0] != BITNET_NONE)
    return fail(err, BITNET_INVALID_ARGUMENT, where, "op %u: there is no weight %u", o->op,
                o->weights[0]);
  const uint32_t kernel =
      find_kernel(p->device->backend, o->op, weight ? weight->format : BITNET_FORMAT_NONE);
  if (!has || has_attributes(o, has->ints, has->floats))
    return fail(err, BITNET_UNSUPPORTED, where, "op %u, or an attribute of it, is not known",
                o->op);
  const bool optional = o->op == BITNET_OP_ROPE || o->op == BITNET_OP_HADAMARD;
  const uint32_t n = optional && !weight ? 0 : has->weights;
  if (!are_indices(o->inputs, has->inputs, p->n_values) ||
      !are_indices(o->outputs, has->outputs, p->n_values) ||
      !are_indices(o->weights, n, BITNET_NONE) || o->body_count != 0)
    return fail(err, BITNET_INVALID_ARGUMENT, where,
                "op %u: an index is missing, out of range or too many", o->op);
  if (kernel == n_kernels)
    return fail(err, BITNET_UNSUPPORTED, where, "op %u with a weight of format %u has no kernel",
                o->op, weight ? weight->format : BITNET_FORMAT_NONE);
  if (!are_in_order(p, o, has) || (weight && !weight->sealed))
    return fail(err, BITNET_INVALID_ARGUMENT, where,
                "op %u writes what is there already, or reads what is not there yet", o->op);
  struct op* to = &p->ops[p->n_ops++];
  *to = (struct op){.kernel = kernel, .is = *o, .weight = weight};
  for (uint32_t i = 0; i < has->outputs; ++i) p->values[o->outputs[i]].written = true;
  return check_op(p, to, where, err);
}

/* Its body follows and is run, so that only its extent matters, and that its indices are some.
 * `end` is where the body around it ends, and then its own. */
static bitnet_status check_composite(const struct bitnet_program* p, const bitnet_op* o,
                                     bitnet_weights* const* weights, uint32_t n_weights,
                                     uint64_t at, uint64_t* end, const char* where,
                                     bitnet_error* err) {
  if (has_attributes(o, 0, 0))
    return fail(err, BITNET_UNSUPPORTED, where, "an attribute of composite %u", o->op);
  if (o->body_count == 0 || o->body_count >= *end - at)
    return fail(err, BITNET_INVALID_ARGUMENT, where, "composite %u has a body of %u of %llu ops",
                o->op, o->body_count, (unsigned long long)(*end - at - 1));
  for (uint32_t i = 0; i < 4; ++i)
    if ((o->inputs[i] != BITNET_NONE && o->inputs[i] >= p->n_values) ||
        (o->outputs[i] != BITNET_NONE && o->outputs[i] >= p->n_values) ||
        (o->weights[i] != BITNET_NONE && !find_tensor(weights, n_weights, o->weights[i])))
      return fail(err, BITNET_INVALID_ARGUMENT, where, "composite %u: an index is out of range",
                  o->op);
  *end = at + 1 + o->body_count;
  return BITNET_OK;
}

/* An author's own op without a body is a primitive. */
static bool is_composite(const bitnet_op* o) {
  return o->op >= BITNET_OP_FIRST_COMPOSITE && (o->op < BITNET_PRIVATE || o->body_count != 0);
}

static bitnet_status check_ports(const struct bitnet_program* p, const char* where,
                                 bitnet_error* err) {
  for (uint32_t i = 0; i < p->n_ports; ++i) {
    if (!has_value(p->ports[i].role)) continue;
    const struct value* v = &p->values[p->ports[i].value];
    if (!v->written || (p->ports[i].role == BITNET_PORT_LOGITS &&
                        (v->rows != BITNET_DIM_OUTPUTS || v->dtype != BITNET_DTYPE_F32)))
      return fail(err, BITNET_INVALID_ARGUMENT, where,
                  "value %u goes out and no op writes it, or cannot be the logits",
                  p->ports[i].value);
  }
  for (uint32_t role = BITNET_PORT_TOKENS; role <= BITNET_PORT_STATES; ++role)
    if ((p->reads & ~p->roles) >> role & 1)
      return fail(err, BITNET_INVALID_ARGUMENT, where,
                  "an op reads a port of role %u; there is none", role);
  return BITNET_OK;
}

static int by_place(const void* a, const void* b) {
  const struct op *x = *(struct op* const*)a, *y = *(struct op* const*)b;
  return x->is.ints[0] < y->is.ints[0] ? -1 : x->is.ints[0] > y->is.ints[0];
}

/* Two ops would take the same part of a state for theirs. */
static bitnet_status check_state_parts(const struct bitnet_program* p, const char* where,
                                       bitnet_error* err) {
  uint32_t n = 0;
  bool fine = true;
  struct op** parts = calloc(p->n_ops + 1, sizeof *parts);
  if (!parts) return fail(err, BITNET_OUT_OF_MEMORY, where, "out of memory");
  for (uint32_t i = 0; i < p->n_ops; ++i)
    if (p->ops[i].state_end != 0) parts[n++] = &p->ops[i];
  qsort(parts, n, sizeof(struct op*), by_place);
  for (uint32_t i = 1; i < n; ++i)
    fine = fine && (uint64_t)parts[i]->is.ints[0] >= parts[i - 1]->state_end;
  free(parts);
  if (fine) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "two ops have the same part of a state");
}

/* Primitives, and the bodies of composites, which may stand in one another. */
static bitnet_status read_ops(struct bitnet_program* p, const bitnet_op* ops, uint32_t n,
                              bitnet_weights* const* weights, uint32_t n_weights, const char* where,
                              bitnet_error* err) {
  bitnet_status status = BITNET_OK;
  uint32_t depth = 0;
  uint64_t* ends = calloc((uint64_t)n + 1, sizeof *ends); /* of the bodies that an op is in */
  if (!ends) return fail(err, BITNET_OUT_OF_MEMORY, where, "no memory for %u ops", n);
  ends[0] = n;
  for (uint64_t i = 0; i < n && status == BITNET_OK; ++i) {
    while (depth > 0 && ends[depth] == i) --depth;
    if (is_composite(&ops[i])) {
      uint64_t end = ends[depth];
      status = check_composite(p, &ops[i], weights, n_weights, i, &end, where, err);
      ends[++depth] = end;
    } else {
      status = add_op(p, &ops[i], weights, n_weights, where, err);
    }
  }
  free(ends);
  return status;
}

static bitnet_status read_all(struct bitnet_program* p, const bitnet_graph* g,
                              const bitnet_value* values, const bitnet_op* ops,
                              const bitnet_port* ports, bitnet_weights* const* weights,
                              uint32_t n_weights, const char* where, bitnet_error* err) {
  bitnet_status status = BITNET_OK;
  for (uint32_t i = 0; i < g->n_values && status == BITNET_OK; ++i)
    status = add_value(p, &values[i], where, err);
  for (uint32_t i = 0; i < g->n_ports && status == BITNET_OK; ++i)
    status = add_port(p, ports[i], where, err);
  if (status == BITNET_OK) status = read_ops(p, ops, g->n_ops, weights, n_weights, where, err);
  if (status == BITNET_OK) status = check_ports(p, where, err);
  if (status == BITNET_OK) status = check_state_parts(p, where, err);
  /* Each value begins at a multiple of buffer_alignment, and so does what is behind them. */
  const uint64_t unit = buffer_alignment;
  for (uint32_t i = 0; i < p->n_values; ++i)
    if (p->values[i].written && !p->values[i].has_port)
      p->arena_bytes += (p->values[i].bytes + unit - 1) / unit * unit;
  p->arena_bytes += (p->scratch_floats * sizeof(float) + unit) / unit * unit;
  return status;
}

bitnet_status read_graph(bitnet_device* device, const bitnet_graph* given,
                         const bitnet_program_options* options, bitnet_weights* const* weights,
                         uint32_t n_weights, bitnet_program** out, const char* where,
                         bitnet_error* err) {
  bitnet_graph g = {0};
  void *values = NULL, *ops = NULL, *ports = NULL;
  struct bitnet_program* p = calloc(1, sizeof *p);
  if (!p) return fail(err, BITNET_OUT_OF_MEMORY, where, "out of memory");
  p->device = device;
  p->vocabulary = UINT64_MAX;
  bitnet_status status = check_options(options, &p->bounds, where, err);
  if (status == BITNET_OK) status = receive(given, sizeof g, &g, sizeof g, where, err);
  if (status == BITNET_OK && g.reserved_0 != 0)
    status = fail(err, BITNET_UNSUPPORTED, where, "reserved_0 of the graph is not 0");
  if (status == BITNET_OK)
    status = receive_array(g.values, g.value_size, g.n_values, &values, sizeof(bitnet_value), where,
                           err);
  if (status == BITNET_OK)
    status = receive_array(g.ops, g.op_size, g.n_ops, &ops, sizeof(bitnet_op), where, err);
  if (status == BITNET_OK)
    status =
        receive_array(g.ports, g.port_size, g.n_ports, &ports, sizeof(bitnet_port), where, err);
  if (status == BITNET_OK) {
    p->values = calloc(g.n_values + 1, sizeof *p->values);
    p->ops = calloc(g.n_ops + 1, sizeof *p->ops);
    p->ports = calloc(g.n_ports + 1, sizeof *p->ports);
    status = p->values && p->ops && p->ports
                 ? read_all(p, &g, values, ops, ports, weights, n_weights, where, err)
                 : fail(err, BITNET_OUT_OF_MEMORY, where, "no memory for %u ops", g.n_ops);
  }
  free(values);
  free(ops);
  free(ports);
  if (status == BITNET_OK)
    *out = p;
  else
    program_destroy(p);
  return status;
}

/* ---- asked before there are weights ---- */

/* No composite is known, so their bodies are run, and of most of those nothing either. */
static uint32_t level_of(const bitnet_device* device, const bitnet_op* o, bitnet_weights* planned) {
  const struct tensor* weight = find_tensor(&planned, 1, o->weights[0]);
  const uint32_t format = weight ? weight->format : BITNET_FORMAT_NONE;
  return find_kernel(device->backend, o->op, format) == n_kernels ? BITNET_LEVEL_NONE
                                                                  : BITNET_LEVEL_REFERENCE;
}

static bitnet_status estimate(bitnet_device* device, const bitnet_query_request* request,
                              bitnet_weights* planned, bitnet_graph_estimate* out,
                              const char* where, bitnet_error* err) {
  bitnet_program* p = NULL;
  bitnet_kv_pool pool = {0};
  bitnet_status status =
      read_graph(device, request->graph, request->options, &planned, 1, &p, where, err);
  if (status != BITNET_OK) return status;
  out->scratch_bytes = p->arena_bytes;
  out->binding_bytes = p->arena_bytes;
  program_destroy(p);
  for (uint32_t i = 0; i < planned->n; ++i) out->weight_bytes += planned->tensors[i].bytes;
  if (!request->kv) return BITNET_OK;
  status = measure_pool(request->kv, &pool, where, err);
  out->kv_block_bytes = pool.block_bytes;
  out->state_bytes = pool.is.state_elements * sizeof(float);
  return status;
}

bitnet_status graph_query(bitnet_device* device, const bitnet_query_request* request,
                          uint32_t* levels, bitnet_graph_estimate* out, bitnet_error* err) {
  NEED(device);
  NEED(levels);
  NEED(out);
  bitnet_query_request q = {0};
  bitnet_graph g = {0};
  bitnet_graph_estimate needs = {.struct_size = sizeof needs};
  bitnet_weights* planned = NULL;
  void* ops = NULL;
  bitnet_status status = receive(request, sizeof q, &q, sizeof q, __func__, err);
  if (status == BITNET_OK && q.reserved_0 != 0)
    status = fail(err, BITNET_UNSUPPORTED, __func__, "reserved_0 of the request is not 0");
  if (status == BITNET_OK) status = receive(q.graph, sizeof g, &g, sizeof g, __func__, err);
  if (status == BITNET_OK)
    status = receive_array(g.ops, g.op_size, g.n_ops, &ops, sizeof(bitnet_op), __func__, err);
  if (status == BITNET_OK)
    status = describe_weights(q.descs, q.desc_size, q.n_descs, __func__, &planned, err);
  bool complete = true;
  const bitnet_op* o = ops;
  for (uint32_t i = 0; i < g.n_ops && status == BITNET_OK; ++i)
    if (!is_composite(&o[i])) {
      if (o[i].weights[0] != BITNET_NONE && o[i].weights[0] >= planned->n)
        status = fail(err, BITNET_INVALID_ARGUMENT, __func__, "op %u: there is no weight %u",
                      o[i].op, o[i].weights[0]);
      if (level_of(device, &o[i], planned) == BITNET_LEVEL_NONE) complete = false;
    }
  if (status == BITNET_OK && complete)
    status = estimate(device, &q, planned, &needs, __func__, err);
  if (status == BITNET_OK) {
    for (uint32_t i = 0; i < g.n_ops; ++i) levels[i] = level_of(device, &o[i], planned);
    if (complete) hand_over(&needs, sizeof needs, out);
  }
  free(ops);
  weights_destroy(planned);
  return status;
}
