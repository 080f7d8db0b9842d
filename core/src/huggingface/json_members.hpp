#pragma once
// Reads members of the JSON files of a checkpoint.

#include "text/json_members.hpp"

namespace bitnet::huggingface {

using text::at;
using text::false_at;
using text::text_at;
using text::true_at;

}  // namespace bitnet::huggingface
