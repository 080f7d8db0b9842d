#pragma once
// Calls that a plugin must never make. The program's own definitions of these C functions come
// before the C library's for everything that is loaded later; they report if the caller
// is the plugin, and go on as before.

namespace bitnet::conformance {

// From now on calls are looked at.
void watch_calls();

}  // namespace bitnet::conformance
