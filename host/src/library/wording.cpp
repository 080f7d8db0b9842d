#include "library/wording.hpp"

#include "bitnet/bitnet.h"
#include "tables/wording.hpp"

namespace bitnet::host {

void give_wording() {
  // An older library may lack an id. It then keeps its own words, and does not name that option.
#define BITNET_GIVE_WORDS(id, library, program) \
  static_cast<void>(bitnet_wording_set(#id, program, nullptr));
  BITNET_WORDING(BITNET_GIVE_WORDS)
#undef BITNET_GIVE_WORDS
}

}  // namespace bitnet::host
