@group(0) @binding(1) var<storage, read_write> tokens_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> matrix_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> scales_in: array<u32>;
@group(0) @binding(4) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  row_words: u32,
  first_row: u32,
  n_rows: u32,
  scale_group: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const FORMAT = C1;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  for (var t = group.y; t < header_word(p.rows); t += groups.y) {
    let token = tokens_in[t];
    if (token < p.first_row || token - p.first_row >= p.n_rows) { continue; }
    let at = (token - p.first_row) * p.row_words;
    for (var i = group.x * T + thread; i < p.k; i += groups.x * T) {
      var value = matrix_element(FORMAT, at, i);
      if (FORMAT == FORMAT_TERNARY2) {
        // In two steps: token * k may not fit 32 bits, but k is a whole number of groups.
        var unit = 0u;
        if (p.scale_group != 0u) { unit = token * (p.k / p.scale_group) + i / p.scale_group; }
        value *= number(scales_in[unit]);
      }
      y_out[t * p.k + i] = bits_of(value);
    }
  }
}
