const uint OP_ADD = 9, OP_MUL = 10, OP_RELU2 = 11, OP_SILU = 12, OP_GELU = 18, OP_SCALE = 19,
           OP_SIGMOID = 20;

float activation(uint op, float x) {
  precise float y;
  if (op == OP_RELU2) {
    float positive = x > 0.0 ? x : 0.0;
    y = positive * positive;
  } else if (op == OP_GELU) {  // 2 * sqrt(2 / pi), and 0.044715 of it
    precise float slope = 1.5957691216 + 0.0713548163 * (x * x);
    precise float negated = -x * slope;
    y = x / (1.0 + exponential(negated));
  } else {
    y = (op == OP_SIGMOID ? 1.0 : x) / (1.0 + exponential(-x));
  }
  return y;
}
