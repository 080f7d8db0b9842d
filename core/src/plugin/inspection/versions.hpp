#pragma once
// The versions of symbols, such as GLIBC_2.38, that a plugin needs and this machine's libraries
// may be too old to have.

#include "plugin/inspection/dependencies.hpp"

namespace bitnet::plugin {

// BN-I-VERSION (BITNET_UNAVAILABLE), one for each library that is too old.
void examine_versions(const inspection& plugin, const std::vector<needed_library>& libraries,
                      findings& found);

}  // namespace bitnet::plugin
