/* Prints the size of every struct of the contract and the place of every member. */
#include <stdio.h>

#include "bitnet/abi/backend.h"
#include "bitnet/abi/note.h"
#include "bitnet/abi/packed.h"
#include "bitnet/abi/tuning.h"
#include "bitnet/bitnet.h"

_Static_assert(sizeof(bitnet_error) == 512, "an error crosses process boundaries by size");
_Static_assert(sizeof(void*) == 8, "the contract is for 64-bit targets");

/* Padding is spelled out as reserved_n, so that every byte has a meaning that can be checked. */
static size_t place(const char* name, size_t offset, size_t size, size_t end) {
  if (offset != end) printf("  IMPLICIT PADDING of %zu bytes\n", offset - end);
  if (name) printf("  %-24s offset %4zu size %4zu\n", name, offset, size);
  return offset + size;
}

int main(void) {
  size_t size = 0, end = 0;
#define STRUCT(name, header) \
  place(NULL, size, 0, end); \
  size = sizeof(name);       \
  end = 0;                   \
  printf("%s %s size %zu align %zu\n", header, #name, sizeof(name), _Alignof(name));
#define MEMBER(name, member) \
  end = place(#member, offsetof(name, member), sizeof(((name*)0)->member), end);
#define FUNCTION(name)
#include "layout_rows.inc"
  place(NULL, size, 0, end);
  return 0;
}
