@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  m: u32,
  part: u32,
  first: u32,
  inner: u32,
  inner_stride: u32,
  outer_stride: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  for (var r = group.y; r < header_word(p.rows); r += groups.y) {
    for (var i = group.x * T + thread; i < p.m; i += groups.x * T) {
      let n = i / p.part;
      let at = p.first + n / p.inner * p.outer_stride + n % p.inner * p.inner_stride + i % p.part;
      y_out[r * p.m + i] = x_in[r * p.k + at];
    }
  }
}
