#pragma once
// Which slot of a plugin's table runs, so that what goes wrong in it can be named.

#include <string>

#include "bitnet/abi/backend.h"

namespace bitnet::conformance {

// Lets each slot of the table say that it runs. Throws, with its name, where a required one is
// NULL.
void name_slots(bitnet_backend_v0& table);

// Lets a fatal signal report the running slot to the parent, before the process ends as it would.
void report_slot_of_crash();

}  // namespace bitnet::conformance
