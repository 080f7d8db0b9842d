const uint OP_ADD = 9, OP_MUL = 10, OP_RELU2 = 11, OP_SILU = 12;

float activation(uint op, float x) {
  precise float y;
  if (op == OP_RELU2) {
    float positive = x > 0.0 ? x : 0.0;
    y = positive * positive;
  } else {
    y = x / (1.0 + exponential(-x));
  }
  return y;
}
