#pragma once
// The smallest graph around one op, whose inputs come in through ports: to ask about, not to run.

#include "model/model.hpp"

namespace bitnet::conformance {

// `format` is that of its weight, or of the last product of a composite; BITNET_FORMAT_NONE: any.
model one_op_model(uint32_t op, uint32_t format);

}  // namespace bitnet::conformance
