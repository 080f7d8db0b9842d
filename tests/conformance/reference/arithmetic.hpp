#pragma once
// What single ops and whole models have in common: each formula of an op, in double, once.

#include <cstdint>
#include <span>

#include "model/model.hpp"
#include "reference/act_quant.hpp"

namespace bitnet::conformance {

// The exact result of ADD, MUL, RELU2 and SCALE on f32, as f32 has it; of SILU, GELU and SIGMOID
// in double. `b`: the second input, or SCALE's factor.
double element_result(uint32_t op, float a, float b);
// Twice the argument of GELU's tanh.
double gelu_argument(double x);

// RMS_NORM: what each element is multiplied by, beside its weight.
double norm_factor(std::span<const float> x, float eps);

// ROPE: the pair that an element of a head turns with, as places in the head.
struct rope_pair {
  uint64_t number, first, second;
};
rope_pair rope_pair_of(uint64_t place, uint64_t dims, int32_t mode);
// The angle of a pair, in radians, before a frequency factor divides it.
double rope_angle(double position, double base, uint64_t number, uint64_t dims);
// One of the two elements after the turn.
double turned(float first, float second, bool is_first, double angle);

// LINEAR_TERNARY: output r of one token, in f32 as ops.h orders the steps: exact.
float ternary_result(const model_tensor& w, uint64_t r, const quantised& x);

}  // namespace bitnet::conformance
