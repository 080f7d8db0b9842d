#pragma once
// What of this process a plugin could change or use up.

#include <map>
#include <string>

namespace bitnet::conformance {

// Signals, environment, locale, folder, mask of modes, floating-point modes: name -> value.
std::map<std::string, std::string> process_state();
// Names whose values differ, in words; "" if none does.
std::string difference(const std::map<std::string, std::string>& before,
                       const std::map<std::string, std::string>& after);

uint64_t running_threads();
// The same once there are no more than `expected`, or after two seconds: one that was joined is
// listed until the system has taken it away.
uint64_t threads_left(uint64_t expected);
uint64_t open_descriptors();
uint64_t resident_bytes();
// True if a mapping of this process comes from `file`.
bool is_mapped(const std::string& file);

// The control word of floating-point arithmetic of this thread.
uint64_t floating_point_modes();

}  // namespace bitnet::conformance
