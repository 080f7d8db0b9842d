@group(0) @binding(1) var<storage, read_write> a_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> b_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> weight_in: array<u32>;
@group(0) @binding(4) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  heads: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;

// log(1 + u) for u in [0, 1], within a few units in the last place: with s = u / (2 + u) it is
// 2 * (s + s^3 / 3 + s^5 / 5 ...), of which the term in s^17 is below 2^-29 of the first.
fn log_of_one_and(u: f32) -> f32 {
  let s = rounded(u / rounded(2.0 + u));
  let q = rounded(s * s);
  var t = 0.06666666666666667;
  t = rounded(rounded(t * q) + 0.07692307692307693);
  t = rounded(rounded(t * q) + 0.09090909090909091);
  t = rounded(rounded(t * q) + 0.1111111111111111);
  t = rounded(rounded(t * q) + 0.14285714285714285);
  t = rounded(rounded(t * q) + 0.2);
  t = rounded(rounded(t * q) + 0.3333333333333333);
  return 2.0 * rounded(s + rounded(s * rounded(q * t)));
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  for (var t = group.y; t < header_word(p.rows); t += groups.y) {
    for (var h = group.x * T + thread; h < p.heads; h += groups.x * T) {
      let z = rounded(number(a_in[t * p.heads + h]) + number(weight_in[p.heads + h]));
      let softplus = rounded(max(z, 0.0) + log_of_one_and(exponential(-abs(z))));
      let exponent = rounded(number(weight_in[h]) * softplus);
      let beta = rounded(1.0 / rounded(1.0 + exponential(-number(b_in[t * p.heads + h]))));
      y_out[t * 2u * p.heads + h] = bits_of(exponential(exponent));
      y_out[t * 2u * p.heads + p.heads + h] = bits_of(beta);
    }
  }
}
