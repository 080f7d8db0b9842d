#pragma once
// How a plugin was linked: what would weaken the process that loads it, and what would pin it in
// memory for ever.

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/inspect.hpp"

namespace bitnet::plugin {

// Static TLS, code that is written to, an executable stack, hardening, unloading. Fills
// `out.pins`. BN-I-STATIC-TLS, BN-I-TEXTREL, BN-I-EXEC-STACK, BN-I-HARDENING, BN-I-PINNED.
void examine_linkage(const elf_image& image, inspection& out, findings& found);

}  // namespace bitnet::plugin
