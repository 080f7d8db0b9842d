@group(0) @binding(1) var<storage, read_write> gate_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> up_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> weight_in: array<u32>;
@group(0) @binding(4) var<storage, read_write> scratch_out: array<u32>;
@group(0) @binding(5) var<storage, read_write> q_out: array<u32>;
@group(0) @binding(6) var<storage, read_write> s_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  eps: f32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const OP = C1;
const NORM = C2;
var<private> row_at: u32;

fn x_at(i: u32) -> f32 {
  return number(scratch_out[row_at + i]);
}
fn element(i: u32, factor: f32) -> f32 {
  if (NORM == 0u) { return x_at(i); }
  return normed(x_at(i), factor, number(weight_in[i]));
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  for (var r = group.y; r < header_word(p.rows); r += groups.y) {
    row_at = r * p.k;
    for (var i = thread; i < p.k; i += T) {
      let g = activation(OP, number(gate_in[row_at + i]));
      scratch_out[row_at + i] = bits_of(rounded(g * number(up_in[row_at + i])));
    }
    storageBarrier();
    var factor = 1.0;
    if (NORM != 0u) { factor = norm_factor(p.k, p.eps); }
    var largest = 0.0;
    for (var i = thread; i < p.k; i += T) {
      let a = abs(element(i, factor));
      largest = select(largest, a, a > largest);
    }
    let scale = act_scale(group_max(largest));
    if (thread == 0u) { s_out[r] = bits_of(scale); }
    let stride = i8_stride(p.k);
    for (var w = thread; w < stride; w += T) {
      var word = 0u;
      for (var b = 0u; b < 4u; b += 1u) {
        if (4u * w + b < p.k) { word |= quantised(element(4u * w + b, factor), scale) << (8u * b); }
      }
      q_out[r * stride + w] = word;
    }
  }
}
