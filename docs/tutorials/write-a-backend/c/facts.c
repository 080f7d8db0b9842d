/* SPDX-License-Identifier: Apache-2.0 */
/* What the host says of a step, checked before an op reads it. */
#include "plain.h"

bitnet_status check_facts(const struct bitnet_program* p, const struct facts* f, const char* where,
                          bitnet_error* err) {
  for (uint32_t t = 0; (p->reads >> BITNET_PORT_TOKENS & 1) && t < f->n_tokens; ++t)
    if (f->tokens[t] < 0 || (uint64_t)f->tokens[t] >= p->vocabulary)
      return fail(err, BITNET_INVALID_ARGUMENT, where, "token %d is not in the vocabulary",
                  f->tokens[t]);
  for (uint32_t o = 0; (p->reads >> BITNET_PORT_OUTPUT_ROWS & 1) && o < f->n_outputs; ++o)
    if (f->output_rows[o] < 0 || (uint32_t)f->output_rows[o] >= f->n_tokens)
      return fail(err, BITNET_INVALID_ARGUMENT, where, "output row %d of %u tokens",
                  f->output_rows[o], f->n_tokens);
  return BITNET_OK;
}
