// Computes numbers that known_answer.cpp checks before an adapter is used. A library without a
// driver offers an adapter that leaves zeros; a compiler that fuses where it must round, or that
// loses NaN, gives other numbers.
@group(0) @binding(1) var<storage, read_write> a_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> y_out: array<u32>;
struct parameters {
  a: f32,
  b: f32,
  c: f32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;

fn x_at(i: u32) -> f32 {
  return number(a_in[i]);
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let most = group_max(number(a_in[2u + thread]));
  let all = group_sum(number(a_in[2u + thread]));
  if (thread != 0u) { return; }
  y_out[0] = bitcast<u32>(dot_bytes(a_in[0], a_in[1]));
  y_out[1] = bits_of(rounded(rounded(p.a * p.a) + p.b));  // not fused
  y_out[2] = bits_of(round_half_even(p.c));
  y_out[3] = bits_of(exact_quotient(127.0, p.c));
  y_out[4] = bits_of(exact_add(1.0, p.c * 5.9604644775390625e-8, 0.0).y);
  y_out[5] = bits_of(from_half(to_half(65504.0)) * 4.0);  // overflows f16
  y_out[6] = to_half(p.a * 65536.0);                      // infinite
  y_out[7] = bits_of(exponential(p.c));
  let none = number(a_in[2u + T]);  // NaN
  y_out[8] = bits_of(select(0.5, none, none > 0.0));
  y_out[9] = bits_of(most);
  y_out[10] = bits_of(all);
  y_out[11] = header_word(3u) + groups.x + group.x;
}
