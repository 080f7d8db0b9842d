// Conversion of activations to int8 codes.

// 127 / max(a, 1e-5); comparisons ignore NaN.
fn act_scale(largest: f32) -> f32 {
  return exact_quotient(127.0, select(1e-5, largest, largest > 1e-5));
}

fn quantised(x: f32, scale: f32) -> u32 {
  var v = round_half_even(rounded(x * scale));
  v = select(-128.0, v, v > -128.0);
  v = select(127.0, v, v < 127.0);
  return bitcast<u32>(i32(v)) & 255u;
}
