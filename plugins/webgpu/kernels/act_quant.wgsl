@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> q_out: array<u32>;
@group(0) @binding(3) var<storage, read_write> s_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  for (var r = group.y; r < header_word(p.rows); r += groups.y) {
    let at = r * p.k;
    var largest = 0.0;
    for (var i = thread; i < p.k; i += T) {
      let a = abs(number(x_in[at + i]));
      largest = select(largest, a, a > largest);
    }
    let scale = act_scale(group_max(largest));
    if (thread == 0u) { s_out[r] = bits_of(scale); }
    let stride = i8_stride(p.k);
    for (var w = thread; w < stride; w += T) {
      var word = 0u;
      for (var b = 0u; b < 4u; b += 1u) {
        if (4u * w + b < p.k) {
          word |= quantised(number(x_in[at + 4u * w + b]), scale) << (8u * b);
        }
      }
      q_out[r * stride + w] = word;
    }
  }
}
