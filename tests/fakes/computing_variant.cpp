// FAKE_NAME        the name of this variant
// FAKE_DIFFERENCE  the members of computing_variant that it sets, in their order

#include "computing_variant.hpp"

#include "bitnet/abi/note.h"

BITNET_BACKEND_NOTE(FAKE_NAME, "1.2.3", "org.example", "CC0-1.0", "")

const computing_variant variant{.name = FAKE_NAME FAKE_DIFFERENCE};
