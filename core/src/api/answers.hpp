#pragma once
// Answers that a program has open.

#include <string>

#include "answer/splitter.hpp"
#include "bitnet/bitnet.h"

namespace bitnet::api {

// What ids of calls begin with; NULL: a random text.
std::string call_ids_of(const char* given);
bitnet_answer* make_answer(answer::splitter::options how);

}  // namespace bitnet::api
