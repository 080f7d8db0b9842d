/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that host and device both see. */
#include <stdlib.h>
#include <string.h>

#include "plain.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

bitnet_status buffer_create(bitnet_device* device, const bitnet_buffer_request* request,
                            bitnet_buffer** out, bitnet_error* err) {
  NEED(out);
  bitnet_buffer_request r;
  const bitnet_status status = receive(request, sizeof r, &r, sizeof r, __func__, err);
  if (status != BITNET_OK) return status;
  if ((r.usage & BITNET_FLAGS_MUST_UNDERSTAND) != 0)
    return fail(err, BITNET_UNSUPPORTED, __func__, "usage %#x is not known", r.usage);
  if ((r.alignment_bytes & (r.alignment_bytes - 1)) != 0)
    return fail(err, BITNET_INVALID_ARGUMENT, __func__, "alignment %llu is no power of two",
                (unsigned long long)r.alignment_bytes);
  if (r.alignment_bytes > buffer_alignment)
    return fail(err, BITNET_UNSUPPORTED, __func__, "alignment %llu is more than %u",
                (unsigned long long)r.alignment_bytes, (unsigned)buffer_alignment);
  if (r.bytes == 0) return fail(err, BITNET_INVALID_ARGUMENT, __func__, "a buffer of no bytes");
  struct bitnet_buffer* b = malloc(sizeof *b);
  const uint64_t unit = buffer_alignment; /* of which aligned_alloc wants a multiple */
  const uint64_t rounded = (r.bytes + unit - 1) / unit * unit;
  char* data = rounded >= r.bytes ? aligned_alloc(unit, rounded) : NULL;
  if (!b || !data) {
    free(b);
    free(data);
    return fail(err, BITNET_OUT_OF_MEMORY, __func__, "no memory for %llu bytes",
                (unsigned long long)r.bytes);
  }
  memset(data, 0, rounded);
  *b = (struct bitnet_buffer){r.bytes, data};
  *out = b;
  return BITNET_OK;
}

bitnet_status buffer_map(bitnet_buffer* buffer, void** out, bitnet_error* err) {
  NEED(buffer);
  NEED(out);
  *out = buffer->data;
  return BITNET_OK;
}

void buffer_destroy(bitnet_buffer* buffer) {
  if (buffer) free(buffer->data);
  free(buffer);
}
