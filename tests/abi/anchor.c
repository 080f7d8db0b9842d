/* Mentions every struct and every public function of the contract, so that a tool that compares
 * debug information sees all of them: from the entry's symbol alone, types behind void* and those
 * of optional interfaces are out of sight. Built for scripts/check-abi, never called. */
#include "bitnet/abi/backend.h"
#include "bitnet/abi/packed.h"
#include "bitnet/abi/tuning.h"
#include "bitnet/bitnet.h"

#define ANCHOR(name, type)      \
  void anchor_##name(type it);  \
  void anchor_##name(type it) { \
    (void)it;                   \
  }

#define STRUCT(name, header) ANCHOR(name, const name*)
#define MEMBER(name, member)
#define FUNCTION(name) ANCHOR(name, __typeof__(&(name)))
#include "layout_rows.inc"

ANCHOR(entry, bitnet_backend_entry)
