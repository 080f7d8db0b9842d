const OP_ADD = 9u;
const OP_MUL = 10u;
const OP_RELU2 = 11u;
const OP_GELU = 18u;
const OP_SCALE = 19u;
const OP_SIGMOID = 20u;

fn activation(op: u32, x: f32) -> f32 {
  if (op == OP_RELU2) {
    let positive = select(0.0, x, x > 0.0);
    return rounded(positive * positive);
  }
  if (op == OP_GELU) {  // 2 * sqrt(2 / pi), and 0.044715 of it
    let slope = rounded(1.5957691216 + rounded(0.0713548163 * rounded(x * x)));
    let negated = rounded(-x * slope);
    return rounded(x / rounded(1.0 + exponential(negated)));
  }
  return rounded(select(x, 1.0, op == OP_SIGMOID) / rounded(1.0 + exponential(-x)));
}
