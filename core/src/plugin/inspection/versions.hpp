#pragma once
// Checks that this machine's libraries have the versions of symbols, such as GLIBC_2.38, that a
// plugin needs.

#include "plugin/inspection/dependencies.hpp"

namespace bitnet::plugin {

// One BN-I-VERSION (BITNET_UNAVAILABLE) per library that is too old.
void examine_versions(const inspection& plugin, const std::vector<needed_library>& libraries,
                      findings& found);

}  // namespace bitnet::plugin
