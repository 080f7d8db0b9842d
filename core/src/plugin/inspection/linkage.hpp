#pragma once
// Checks how a plugin was linked: properties that weaken the process, or prevent unloading.

#include "plugin/codes/finding.hpp"
#include "plugin/inspection/elf_image.hpp"
#include "plugin/inspection/inspect.hpp"

namespace bitnet::plugin {

// Checks static TLS, writable code, an executable stack, hardening and unloading. Fills `out.pins`.
// BN-I-STATIC-TLS, BN-I-TEXTREL, BN-I-EXEC-STACK, BN-I-HARDENING, BN-I-PINNED.
void examine_linkage(const elf_image& image, inspection& out, findings& found);

}  // namespace bitnet::plugin
