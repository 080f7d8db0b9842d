@group(0) @binding(1) var<storage, read_write> q_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> s_in: array<u32>;
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
  scale_group: u32,
  add: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const LANES = C1;   // threads that share a row
const TOKENS = C2;  // taken together
const EACH = C3;    // rows of a thread
const GIVEN = C4;   // activations that share a factor, or 0

fn q_word(i: u32) -> u32 {
  return q_in[i];
}
fn q_row() -> u32 {
  return i8_stride(p.k);
}

fn finish(t: u32, r: u32, value: f32) {
  let at = t * p.m + p.first_row + r;
  var result = rounded(value);
  if (p.add != 0u) { result += number(residual_in[at]); }
  y_out[at] = bits_of(result);
}

// Four products of the activations 4i to 4i + 3.
fn four(row: u32, q_at: u32, i: u32) -> i32 {
  let codes = (matrix_in[row + i / 32u * 8u + i % 8u] >> (6u - 2u * (i % 32u / 8u))) & 0x03030303u;
  let a = q_in[q_at + i];
  return dot_bytes(codes, a) - dot_bytes(0x01010101u, a);
}

fn scaled_groups(t: u32, r: u32) {
  var total = 0.0;
  let units = p.k / p.scale_group;
  for (var u = 0u; u < units; u += 1u) {
    var sum = 0;
    for (var i = u * p.scale_group / 4u; i < (u + 1u) * p.scale_group / 4u; i += 1u) {
      sum += four(r * p.row_words, t * q_row(), i);
    }
    total = rounded(total + rounded(f32(sum) * number(scales_in[(p.first_row + r) * units + u])));
  }
  finish(t, r, total / number(s_in[t]));
}

// Factor `at` of the activations of token t; own_factor() has the scales of weights.
fn given_factor(t: u32, n: u32, at: u32) -> f32 {
  return number(s_in[min(t, n - 1u) * (p.k / max(GIVEN, 1u)) + at]);  // not called if GIVEN is 0
}
fn own_factor(r: u32, at: u32) -> f32 {
  if (p.scale_group == 0u) { return number(scales_in[0]); }
  let row = p.first_row + min(r, p.n_rows - 1u);
  return number(scales_in[row * (p.k / p.scale_group) + at]);
}

// Sums of shorter groups times their factors, and sums of those times the factors of longer ones.
// Groups consist of quarters of 128 elements.
fn factored_groups(t: u32, r: u32, n: u32) {
  var own = p.scale_group;
  if (own == 0u) { own = p.k; }
  let shorter = min(GIVEN, own);
  let longer = max(GIVEN, own);
  var in_end = shorter;
  var out_end = longer;
  var in_group = 0u;
  var out_group = 0u;
  var sum = 0;
  var inner = 0.0;
  var outer = 0.0;
  for (var end = 32u; end <= p.k; end += 32u) {
    for (var i = (end - 32u) / 4u; i < end / 4u; i += 1u) {
      sum += four(row_of(r, 0u), q_of(t, 0u, n), i);
    }
    if (end != in_end) { continue; }
    var factor = own_factor(r, in_group);
    if (GIVEN <= own) { factor = given_factor(t, n, in_group); }
    inner = rounded(inner + rounded(f32(sum) * factor));
    sum = 0;
    in_end += shorter;
    in_group += 1u;
    if (end != out_end) { continue; }
    factor = given_factor(t, n, out_group);
    if (GIVEN <= own) { factor = own_factor(r, out_group); }
    outer = rounded(outer + rounded(inner * factor));
    inner = 0.0;
    out_end += longer;
    out_group += 1u;
  }
  finish(t, r, outer);
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let lane = thread % LANES;
  let team = thread / LANES;
  let teams = T / LANES;
  let n = header_word(p.rows);
  for (var r0 = group.x * teams * EACH; r0 < p.n_rows; r0 += groups.x * teams * EACH) {
    for (var t0 = group.y * TOKENS; t0 < n; t0 += groups.y * TOKENS) {
      let first = r0 + team * EACH;
      if (GIVEN != 0u || p.scale_group != 0u) {  // one thread to a row
        for (var t = t0; t < min(n, t0 + TOKENS); t += 1u) {
          for (var r = first; r < min(p.n_rows, first + EACH); r += 1u) {
            if (GIVEN != 0u) {
              factored_groups(t, r, n);
            } else {
              scaled_groups(t, r);
            }
          }
        }
        continue;
      }
      sum_rows(first, t0, n);
      for (var e = 0u; e < EACH; e += 1u) {
        for (var t = 0u; t < TOKENS; t += 1u) {
          if (lane != 0u || t0 + t >= n || first + e >= p.n_rows) { continue; }
          let value = rounded(f32(sums[e * TOKENS + t]) / number(s_in[t0 + t]));
          finish(t0 + t, first + e, value * number(scales_in[0]));
        }
      }
    }
  }
}
