/* SPDX-License-Identifier: Apache-2.0 */
/* What the host says of a step, all of it checked before an op reads it: afterwards every token,
 * position, sequence, slot, block and state is one that there is. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

bool sees(const struct facts* f, int64_t position, int64_t p) {
  return f->window == 0 || p + (int64_t)f->window > position || p < (int64_t)f->window_keep;
}

static bool reads(const struct bitnet_program* p, uint32_t role) {
  return (p->reads >> role & 1) != 0;
}

static bitnet_status wrong(bitnet_error* err, const char* where, const char* what, uint64_t i,
                           int32_t value, uint64_t end) {
  return fail(err, BITNET_INVALID_ARGUMENT, where, "%s %llu is %d, of %llu", what,
              (unsigned long long)i, value, (unsigned long long)end);
}

/* Whether n numbers are from 0 to below `end`. */
static bitnet_status check_each(const int32_t* numbers, uint64_t n, uint64_t end, const char* what,
                                const char* where, bitnet_error* err) {
  for (uint64_t i = 0; i < n; ++i)
    if (numbers[i] < 0 || (uint64_t)numbers[i] >= end)
      return wrong(err, where, what, i, numbers[i], end);
  return BITNET_OK;
}

static int by_number(const void* a, const void* b) {
  const int32_t x = *(const int32_t*)a, y = *(const int32_t*)b;
  return x < y ? -1 : x > y;
}

static bitnet_status check_differ(const int32_t* numbers, uint64_t n, const char* what,
                                  const char* where, bitnet_error* err) {
  int32_t twice = -1;
  int32_t* sorted = malloc((n + 1) * sizeof *sorted);
  if (!sorted) return fail(err, BITNET_OUT_OF_MEMORY, where, "out of memory");
  memcpy(sorted, numbers, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, by_number);
  for (uint64_t i = 1; i < n; ++i)
    if (sorted[i] == sorted[i - 1]) twice = sorted[i];
  free(sorted);
  if (twice < 0) return BITNET_OK;
  return fail(err, BITNET_INVALID_ARGUMENT, where, "%s %d is given twice", what, twice);
}

/* The blocks that tokens see. What the table says of others may be anything. */
static bitnet_status check_tables(const struct facts* f, const char* where, bitnet_error* err) {
  for (uint64_t t = 0; t < f->n_tokens; ++t) {
    const int32_t* table = f->block_tables + (uint64_t)f->sequences[t] * f->max_blocks;
    for (int64_t p = 0; p <= f->positions[t]; ++p) {
      const int32_t block = table[p / f->block_tokens];
      if (sees(f, f->positions[t], p) && (block < 0 || (uint32_t)block >= f->pool->is.n_blocks))
        return wrong(err, where, "the block of position", (uint64_t)p, block, f->pool->is.n_blocks);
    }
  }
  return BITNET_OK;
}

bitnet_status check_facts(const struct bitnet_program* p, const struct facts* f, const char* where,
                          bitnet_error* err) {
  bitnet_status status = BITNET_OK;
  const uint64_t positions = (uint64_t)f->max_blocks * f->block_tokens;
  if (reads(p, BITNET_PORT_TOKENS))
    status = check_each(f->tokens, f->n_tokens, p->vocabulary, "token", where, err);
  if (status == BITNET_OK && reads(p, BITNET_PORT_POSITIONS))
    status = check_each(f->positions, f->n_tokens, positions, "position", where, err);
  if (status == BITNET_OK && reads(p, BITNET_PORT_SEQUENCES))
    status = check_each(f->sequences, f->n_tokens, f->n_sequences, "sequence", where, err);
  if (status == BITNET_OK && reads(p, BITNET_PORT_OUTPUT_ROWS))
    status = check_each(f->output_rows, f->n_outputs, f->n_tokens, "output row", where, err);
  if (status == BITNET_OK && reads(p, BITNET_PORT_SLOTS))
    status = check_each(f->slots, f->n_tokens, (uint64_t)f->pool->is.n_blocks * f->block_tokens,
                        "slot", where, err);
  if (status == BITNET_OK && reads(p, BITNET_PORT_SLOTS))
    status = check_differ(f->slots, f->n_tokens, "slot", where, err);
  if (status == BITNET_OK && reads(p, BITNET_PORT_STATES))
    status = check_each(f->states, f->n_sequences, f->pool->is.n_states, "state", where, err);
  if (status == BITNET_OK && reads(p, BITNET_PORT_STATES))
    status = check_differ(f->states, f->n_sequences, "state", where, err);
  if (status == BITNET_OK && reads(p, BITNET_PORT_BLOCK_TABLES))
    status = check_tables(f, where, err);
  return status;
}
