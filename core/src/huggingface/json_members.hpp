#pragma once
// Members of the JSON that a checkpoint brings.

#include "text/json_members.hpp"

namespace bitnet::huggingface {

using text::at;
using text::false_at;
using text::text_at;
using text::true_at;

}  // namespace bitnet::huggingface
