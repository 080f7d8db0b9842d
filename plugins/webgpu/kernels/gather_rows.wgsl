@group(0) @binding(1) var<storage, read_write> output_rows_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> y_out: array<u32>;
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
    for (var i = group.x * T + thread; i < p.k; i += groups.x * T) {
      y_out[r * p.k + i] = x_in[output_rows_in[r] * p.k + i];
    }
  }
}
