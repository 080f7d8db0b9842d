#pragma once
// The conformance kit's model, under this folder's names.

#include "model/tiny_model.hpp"

namespace bitnet::parity {

using conformance::model;
using conformance::pack_ternary;
using conformance::tiny_model;
using conformance::tiny_shape;

}  // namespace bitnet::parity
