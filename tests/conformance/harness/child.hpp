#pragma once
// What runs in a process of its own: one suite, or the first look at the plugin.

#include "harness/options.hpp"

namespace bitnet::conformance {

// Runs the tests that o.filter leaves; the exit status of the child.
int run_suite(const options& o);
// Opens the plugin, reads its identity, opens its device, closes it; says each stage before it.
int identify(const options& o);
// Every op and format against the reference, as rows.
int compare_ops(const options& o);

}  // namespace bitnet::conformance
