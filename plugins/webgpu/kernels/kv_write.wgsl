@group(0) @binding(1) var<storage, read_write> slots_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> k_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> v_in: array<u32>;
@group(0) @binding(4) var<storage, read_write> turns_in: array<u32>;
@group(0) @binding(5) var<storage, read_write> keys_out: array<u32>;
@group(0) @binding(6) var<storage, read_write> values_out: array<u32>;
struct parameters {
  rows: u32,
  n_kv_heads: u32,
  head_dim: u32,
  block_tokens: u32,
  pairs: u32,
  neox: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const DTYPE_OF_K = C1;
const DTYPE_OF_V = C2;
const TURNED = C3;

fn units_of(dtype: u32) -> u32 {
  switch dtype {
    case DTYPE_F32: {
      return p.head_dim;
    }
    case DTYPE_F16: {
      return (p.head_dim + 1u) / 2u;
    }
    default: {
      return p.head_dim / 32u;
    }
  }
}
fn words_of(dtype: u32) -> u32 {  // of a unit
  return select(select(1u, 5u, dtype == DTYPE_Q4_0), 9u, dtype == DTYPE_Q8_0);
}

// Bits of element i of the row of token t that begins at word `at`; k is turned as in rope.
fn element(is_k: bool, t: u32, at: u32, i: u32) -> u32 {
  if (!is_k) { return v_in[at + i]; }
  if (TURNED == 0u || i >= 2u * p.pairs) { return k_in[at + i]; }
  var pair = i / 2u;
  var second = (i & 1u) != 0u;
  var other = i ^ 1u;
  if (p.neox != 0u) {
    pair = i % p.pairs;
    second = i >= p.pairs;
    other = select(i + p.pairs, i - p.pairs, second);
  }
  let c = number(turns_in[2u * (t * p.pairs + pair)]);
  let s = number(turns_in[2u * (t * p.pairs + pair) + 1u]);
  let a = rounded(number(k_in[at + i]) * c);
  let b = rounded(number(k_in[at + other]) * s);
  return bits_of(select(rounded(a - b), rounded(b + a), second));
}

fn store(is_k: bool, at: u32, word: u32) {
  if (is_k) {
    keys_out[at] = word;
  } else {
    values_out[at] = word;
  }
}

// min(m / 127, 65504), the factor before rounding to f16. Below 2^-26 every f16 is 0, and
// exact_quotient would get subnormals.
fn q8_step(m: f32) -> f32 {
  if (m < 1.8924474716186523e-6) { return 0.0; }  // 127 * 2^-26
  if (m < 8319008.0) { return exact_quotient(m, 127.0); }
  return 65504.0;
}
fn q8_code(x: f32, inverse: f32) -> u32 {
  var v = round_half_even(rounded(x * inverse));
  v = select(-127.0, v, v > -127.0);
  v = select(127.0, v, v < 127.0);
  return bitcast<u32>(i32(v)) & 255u;
}
// Stores the block of 32 elements from `from` on of the row at word `x`.
fn store_q8(is_k: bool, t: u32, x: u32, from_: u32, y: u32) {
  var largest = 0.0;
  for (var i = 0u; i < 32u; i += 1u) {
    let a = abs(number(element(is_k, t, x, from_ + i)));
    largest = select(largest, a, a > largest);
  }
  let d = to_half(q8_step(largest));
  var inverse = 0.0;
  if (d != 0u) { inverse = exact_quotient(1.0, from_half(d)); }
  store(is_k, y, d);
  for (var w = 0u; w < 8u; w += 1u) {
    var word = 0u;
    for (var b = 0u; b < 4u; b += 1u) {
      word |= q8_code(number(element(is_k, t, x, from_ + 4u * w + b)), inverse) << (8u * b);
    }
    store(is_k, y + 1u + w, word);
  }
}

// Compares numbers as bits, so that the factor's sign does not depend on the handling of
// subnormals. Returns b if it is a number with a larger magnitude than a.
fn q4_extreme(a: u32, b: u32) -> u32 {
  let size = b & 0x7fffffffu;
  return select(a, b, size > (a & 0x7fffffffu) && size <= 0x7f800000u);
}
// |e / -8|; values too small for f16 become 0.
fn q4_step(extreme: u32) -> f32 {
  let size = extreme & 0x7fffffffu;
  if (size < 0x01800000u) { return 0.0; }
  if (size < bits_of(524032.0)) { return number(size - 0x01800000u); }
  return 65504.0;
}
fn q4_code(x: f32, inverse: f32) -> u32 {
  var v = rounded(rounded(x * inverse) + 8.5);
  v = select(0.0, v, v > 0.0);  // NaN, too
  return u32(select(15.0, v, v < 15.0));
}
fn store_q4(is_k: bool, t: u32, x: u32, from_: u32, y: u32) {
  var extreme = 0u;
  for (var i = 0u; i < 32u; i += 1u) {
    extreme = q4_extreme(extreme, element(is_k, t, x, from_ + i));
  }
  let d = to_half(q4_step(extreme)) | ((~extreme >> 16u) & 0x8000u);
  var inverse = 0.0;
  if ((d & 0x7fffu) != 0u) {
    inverse = number(bits_of(exact_quotient(1.0, q4_step(extreme))) | (~extreme & 0x80000000u));
  }
  store(is_k, y, d);
  for (var w = 0u; w < 4u; w += 1u) {
    var word = 0u;
    for (var b = 0u; b < 4u; b += 1u) {
      let i = from_ + 4u * w + b;
      word |= q4_code(number(element(is_k, t, x, i)), inverse) << (8u * b);
      word |= q4_code(number(element(is_k, t, x, i + 16u)), inverse) << (8u * b + 4u);
    }
    store(is_k, y + 1u + w, word);
  }
}

// Stores word or block `unit` of the row at word `x`; the stored row begins at word `y`.
fn store_unit(dtype: u32, is_k: bool, t: u32, x: u32, y: u32, unit: u32) {
  switch dtype {
    case DTYPE_F32: {
      store(is_k, y + unit, element(is_k, t, x, unit));
    }
    case DTYPE_F16: {
      var word = to_half(number(element(is_k, t, x, 2u * unit)));
      if (2u * unit + 1u < p.head_dim) {
        word |= to_half(number(element(is_k, t, x, 2u * unit + 1u))) << 16u;
      }
      store(is_k, y + unit, word);
    }
    case DTYPE_Q8_0: {
      store_q8(is_k, t, x, 32u * unit, y + 9u * unit);
    }
    default: {
      store_q4(is_k, t, x, 32u * unit, y + 5u * unit);
    }
  }
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let units_k = units_of(DTYPE_OF_K);
  let units_v = units_of(DTYPE_OF_V);
  let all_k = p.n_kv_heads * units_k;
  let all = all_k + p.n_kv_heads * units_v;
  for (var t = group.y; t < header_word(p.rows); t += groups.y) {
    let block = slots_in[t] / p.block_tokens;
    let offset = slots_in[t] % p.block_tokens;
    for (var u = group.x * T + thread; u < all; u += groups.x * T) {
      let is_k = u < all_k;
      let units = select(units_v, units_k, is_k);
      let dtype = select(DTYPE_OF_V, DTYPE_OF_K, is_k);
      let i = select(u - all_k, u, is_k);
      let head = i / units;
      let x = (t * p.n_kv_heads + head) * p.head_dim;
      let row = (block * p.n_kv_heads + head) * p.block_tokens + offset;
      store_unit(dtype, is_k, t, x, row * units * words_of(dtype), i % units);
    }
  }
}
