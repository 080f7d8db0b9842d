@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> weight_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> matrix_in: array<u32>;
@group(0) @binding(4) var<storage, read_write> scales_in: array<u32>;
@group(0) @binding(5) var<storage, read_write> residual_in: array<u32>;
@group(0) @binding(6) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  m: u32,
  row_words: u32,
  first_row: u32,
  n_rows: u32,
  add: u32,
  eps: f32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const LANES = C1;  // threads that share a row
const NORM = C2;
const EACH = C3;   // rows of a thread
const WORDS = C4;  // of a row of codes
const TOKENS = 1u;
var<workgroup> codes: array<u32, WORDS>;
var<private> row_at: u32;

fn q_word(i: u32) -> u32 {
  return codes[i];
}
fn q_row() -> u32 {
  return WORDS;
}

fn x_at(i: u32) -> f32 {
  return number(x_in[row_at + i]);
}
fn element(i: u32, factor: f32) -> f32 {
  if (NORM == 0u) { return x_at(i); }
  return normed(x_at(i), factor, number(weight_in[i]));
}

// Quantises the whole row in every group. Returns its scale.
fn quantise() -> f32 {
  var factor = 1.0;
  if (NORM != 0u) { factor = norm_factor(p.k, p.eps); }
  var largest = 0.0;
  for (var i = thread; i < p.k; i += T) {
    let a = abs(element(i, factor));
    largest = select(largest, a, a > largest);
  }
  let scale = act_scale(group_max(largest));
  workgroupBarrier();  // the previous row is read
  for (var w = thread; w < WORDS; w += T) {
    var word = 0u;
    for (var b = 0u; b < 4u; b += 1u) {
      if (4u * w + b < p.k) { word |= quantised(element(4u * w + b, factor), scale) << (8u * b); }
    }
    codes[w] = word;
  }
  workgroupBarrier();
  return scale;
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let lane = thread % LANES;
  let team = thread / LANES;
  let teams = T / LANES;
  for (var t = group.y; t < header_word(p.rows); t += groups.y) {
    row_at = t * p.k;
    let scale = quantise();
    for (var r0 = group.x * teams * EACH; r0 < p.n_rows; r0 += groups.x * teams * EACH) {
      let first = r0 + team * EACH;
      sum_rows(first, 0u, 1u);
      for (var e = 0u; e < EACH; e += 1u) {
        if (lane != 0u || first + e >= p.n_rows) { continue; }
        let at = t * p.m + p.first_row + first + e;
        var value = rounded(rounded(f32(sums[e]) / scale) * number(scales_in[0]));
        if (p.add != 0u) { value += number(residual_in[at]); }
        y_out[at] = bits_of(value);
      }
    }
  }
}
