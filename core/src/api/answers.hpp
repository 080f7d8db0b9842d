#pragma once
// The open answers (bitnet_answer) of programs.

#include <string>

#include "answer/splitter.hpp"
#include "bitnet/bitnet.h"

namespace bitnet::api {

// The prefix of call ids; NULL: a random one.
std::string call_ids_of(const char* given);
bitnet_answer* make_answer(answer::splitter::options how);

}  // namespace bitnet::api
