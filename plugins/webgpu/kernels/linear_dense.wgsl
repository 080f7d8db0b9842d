@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> matrix_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  m: u32,
  row_words: u32,
  first_row: u32,
  n_rows: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const LANES = C1;   // threads that share a row
const TOKENS = C2;  // taken together
const FORMAT = C3;
var<workgroup> parts: array<f32, T>;
var<private> sums: array<f32, TOKENS>;

// The sum over the threads that share a row; every one of them gets it.
fn sum_of_lanes(x: f32) -> f32 {
  if (LANES == 1u) { return x; }
  workgroupBarrier();
  parts[thread] = x;
  workgroupBarrier();
  let lane = thread % LANES;
  for (var d = LANES / 2u; d != 0u; d /= 2u) {
    if (lane < d) { parts[thread] = rounded(parts[thread] + parts[thread + d]); }
    workgroupBarrier();
  }
  return parts[thread - lane];
}

// Places after the last token repeat it, and are dropped.
fn add_products(w: f32, i: u32, t0: u32, n: u32) {
  for (var t = 0u; t < TOKENS; t += 1u) {
    sums[t] += rounded(w * number(x_in[min(t0 + t, n - 1u) * p.k + i]));
  }
}

fn sum_halves(at: u32, t0: u32, n: u32) {  // two elements to a load
  for (var i = thread % LANES; i < p.row_words; i += LANES) {
    let word = matrix_in[at + i];
    add_products(from_half(word & 0xffffu), 2u * i, t0, n);
    if (2u * i + 1u < p.k) { add_products(from_half(word >> 16u), 2u * i + 1u, t0, n); }
  }
}

fn sum_elements(at: u32, t0: u32, n: u32) {
  for (var i = thread % LANES; i < p.k; i += LANES) {
    add_products(matrix_element(FORMAT, at, i), i, t0, n);
  }
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let lane = thread % LANES;
  let team = thread / LANES;
  let teams = T / LANES;
  let n = header_word(p.rows);
  for (var r0 = group.x * teams; r0 < p.n_rows; r0 += groups.x * teams) {
    for (var t0 = group.y * TOKENS; t0 < n; t0 += groups.y * TOKENS) {
      let r = r0 + team;
      let at = min(r, p.n_rows - 1u) * p.row_words;
      for (var t = 0u; t < TOKENS; t += 1u) { sums[t] = 0.0; }
      if (FORMAT == FORMAT_F16) {
        sum_halves(at, t0, n);
      } else {
        sum_elements(at, t0, n);
      }
      for (var t = 0u; t < TOKENS; t += 1u) {
        let sum = sum_of_lanes(sums[t]);
        if (lane == 0u && t0 + t < n && r < p.n_rows) {
          y_out[(t0 + t) * p.m + p.first_row + r] = bits_of(sum);
        }
      }
    }
  }
}
