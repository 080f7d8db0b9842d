// TIER0_NAME        the name of this variant
// TIER0_DIFFERENCE  the member of tier0_variant that it sets, where it does
// TIER0_FLAGS       the note's field of flags

#include "tier0_variant.hpp"

#include "bitnet/abi/note.h"

#ifndef TIER0_DIFFERENCE
#define TIER0_DIFFERENCE
#endif
#ifndef TIER0_FLAGS
#define TIER0_FLAGS BITNET_NOTE_FIELD("flags", "hot-swap unloadable")
#endif

BITNET_BACKEND_NOTE(TIER0_NAME, "0.1.0", "org.bitnet.test", "Apache-2.0", TIER0_FLAGS)

const tier0_variant tier0{.name = TIER0_NAME TIER0_DIFFERENCE};
