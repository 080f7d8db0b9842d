@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> q_out: array<u32>;
@group(0) @binding(3) var<storage, read_write> d_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  unit: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;

// Quantises the group from element x_at on into the words from q_at on. Returns its factor.
fn quantise(x_at: u32, q_at: u32) -> f32 {
  var largest = 1e-30;
  for (var i = 0u; i < p.unit; i += 1u) {
    let a = abs(number(x_in[x_at + i]));
    largest = select(largest, a, a > largest);
  }
  let scale = exact_quotient(127.0, largest);
  for (var w = 0u; w < p.unit / 4u; w += 1u) {
    var word = 0u;
    for (var b = 0u; b < 4u; b += 1u) {
      word |= quantised(number(x_in[x_at + 4u * w + b]), scale) << (8u * b);
    }
    q_out[q_at + w] = word;
  }
  return exact_quotient(largest, 127.0);
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let stride = i8_stride(p.k);
  let units = p.k / p.unit;
  for (var r = group.y; r < header_word(p.rows); r += groups.y) {
    for (var u = group.x * T + thread; u < 4u * stride / p.unit; u += groups.x * T) {
      let q_at = r * stride + u * p.unit / 4u;
      if (u < units) {
        d_out[r * units + u] = bits_of(quantise(r * p.k + u * p.unit, q_at));
      } else {  // padding
        for (var w = 0u; w < p.unit / 4u; w += 1u) { q_out[q_at + w] = 0u; }
      }
    }
  }
}
