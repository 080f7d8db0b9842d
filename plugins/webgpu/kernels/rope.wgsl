@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> turns_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  heads: u32,
  head_dim: u32,
  pairs: u32,
  neox: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let units = p.head_dim - p.pairs;  // of a head: its pairs, then the copied elements
  for (var t = group.y; t < header_word(p.rows); t += groups.y) {
    for (var u = group.x * T + thread; u < p.heads * units; u += groups.x * T) {
      let at = (t * p.heads + u / units) * p.head_dim;
      let i = u % units;
      if (i >= p.pairs) {
        y_out[at + p.pairs + i] = x_in[at + p.pairs + i];
        continue;
      }
      let first = at + select(2u * i, i, p.neox != 0u);
      let second = first + select(1u, p.pairs, p.neox != 0u);
      let c = number(turns_in[2u * (t * p.pairs + i)]);
      let s = number(turns_in[2u * (t * p.pairs + i) + 1u]);
      let a = number(x_in[first]);
      let b = number(x_in[second]);
      y_out[first] = bits_of(rounded(rounded(a * c) - rounded(b * s)));
      y_out[second] = bits_of(rounded(rounded(a * s) + rounded(b * c)));
    }
  }
}
