@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> weight_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  eps: f32,
  heads: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
var<private> row_at: u32;

fn x_at(i: u32) -> f32 {
  return number(x_in[row_at + i]);
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  for (var r = group.y * groups.x + group.x; r < header_word(p.rows) * p.heads;
       r += groups.x * groups.y) {
    row_at = r * p.k;
    let factor = norm_factor(p.k, p.eps);
    for (var i = thread; i < p.k; i += T) {
      y_out[row_at + i] = bits_of(normed(x_at(i), factor, number(weight_in[i])));
    }
  }
}
