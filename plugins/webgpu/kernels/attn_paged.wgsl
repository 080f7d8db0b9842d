@group(0) @binding(1) var<storage, read_write> q_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> positions_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> sequences_in: array<u32>;
@group(0) @binding(4) var<storage, read_write> block_tables_in: array<u32>;
@group(0) @binding(5) var<storage, read_write> keys_in: array<u32>;
@group(0) @binding(6) var<storage, read_write> values_in: array<u32>;
@group(0) @binding(7) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  n_heads: u32,
  n_kv_heads: u32,
  head_dim: u32,
  block_tokens: u32,
  max_blocks: u32,
  scale: f32,
  own_window: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const DTYPE_OF_K = C1;
const DTYPE_OF_V = C2;
const KEPT = C3;  // elements of y that a thread sums; a line with EACH_KEPT stands once for each
var<workgroup> weights: array<f32, T>;
var<workgroup> places: array<u32, T>;  // rows of the pool
var<workgroup> shared_position: u32;

fn key_at(at: u32, i: u32) -> f32 {
  switch DTYPE_OF_K {
    case DTYPE_F32: {
      return number(keys_in[at + i]);
    }
    case DTYPE_F16: {
      return from_half((keys_in[at + i / 2u] >> (16u * (i & 1u))) & 0xffffu);
    }
    case DTYPE_Q8_0: {
      let block = at + i / 32u * 9u;
      let q = signed_byte(keys_in[block + 1u + i % 32u / 4u], i % 4u);
      return rounded(from_half(keys_in[block] & 0xffffu) * f32(q));
    }
    default: {
      let block = at + i / 32u * 5u;
      let q = four_bits(keys_in[block + 1u + i % 16u / 4u], i % 32u);
      return rounded(from_half(keys_in[block] & 0xffffu) * f32(q));
    }
  }
}

fn value_at(at: u32, i: u32) -> f32 {
  switch DTYPE_OF_V {
    case DTYPE_F32: {
      return number(values_in[at + i]);
    }
    case DTYPE_F16: {
      return from_half((values_in[at + i / 2u] >> (16u * (i & 1u))) & 0xffffu);
    }
    case DTYPE_Q8_0: {
      let block = at + i / 32u * 9u;
      let q = signed_byte(values_in[block + 1u + i % 32u / 4u], i % 4u);
      return rounded(from_half(values_in[block] & 0xffffu) * f32(q));
    }
    default: {
      let block = at + i / 32u * 5u;
      let q = four_bits(values_in[block + 1u + i % 16u / 4u], i % 32u);
      return rounded(from_half(values_in[block] & 0xffffu) * f32(q));
    }
  }
}

fn words_of(dtype: u32) -> u32 {
  switch dtype {
    case DTYPE_F32: {
      return p.head_dim;
    }
    case DTYPE_F16: {
      return (p.head_dim + 1u) / 2u;
    }
    case DTYPE_Q8_0: {
      return p.head_dim / 32u * 9u;
    }
    default: {
      return p.head_dim / 32u * 5u;
    }
  }
}

fn with_product(sum: f32, q_at: u32, at: u32, i: u32) -> f32 {
  return rounded(sum + rounded(number(q_in[q_at + i]) * key_at(at, i)));
}

// The score of the thread's key. A pass takes eight elements: a driver that limits loop passes then
// permits longer contexts (plugins/gpu-common/program/passes.cpp counts them).
fn score_of(q_at: u32, row: u32) -> f32 {
  let at = row * words_of(DTYPE_OF_K);
  var sum = 0.0;
  var i = 0u;
  for (; i + 8u <= p.head_dim; i += 8u) {
    sum = with_product(sum, q_at, at, i);
    sum = with_product(sum, q_at, at, i + 1u);
    sum = with_product(sum, q_at, at, i + 2u);
    sum = with_product(sum, q_at, at, i + 3u);
    sum = with_product(sum, q_at, at, i + 4u);
    sum = with_product(sum, q_at, at, i + 5u);
    sum = with_product(sum, q_at, at, i + 6u);
    sum = with_product(sum, q_at, at, i + 7u);
  }
  for (; i < p.head_dim; i += 1u) { sum = with_product(sum, q_at, at, i); }
  return rounded(sum * p.scale);
}

// Adds position j of the tile to element d of y; its values begin at word `row`.
fn with_value(sum: f32, j: u32, row: u32, d: u32) -> f32 {
  if (d >= p.head_dim) { return sum; }
  return rounded(sum + rounded(weights[j] * value_at(row, d)));
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let head = group.x;
  let kv_head = head / (p.n_heads / p.n_kv_heads);
  let words_v = words_of(DTYPE_OF_V);
  for (var t = group.y; t < header_word(p.rows); t += groups.y) {
    if (thread == 0u) { shared_position = positions_in[t]; }
    let end = workgroupUniformLoad(&shared_position) + 1u;
    let table = sequences_in[t] * p.max_blocks;
    let window = header_word(header_window);
    var first = select(end - window, 0u, window == 0u || end <= window);
    let kept = min(header_word(header_window_keep), first);
    let least = select(end - p.own_window, 0u, p.own_window == 0u || end <= p.own_window);
    let kept_from = min(least, kept);
    let early = kept - kept_from;
    first = max(first, least);
    let seen = early + end - first;
    let q_at = (t * p.n_heads + head) * p.head_dim;

    var sums: array<f32, KEPT>;
    for (var i = 0u; i < KEPT; i += 1u) { sums[i] = 0.0; }
    var largest = 0.0;
    var total = 0.0;
    for (var tile = 0u; tile < seen; tile += T) {
      let count = min(T, seen - tile);
      let mine = thread < count;
      var score = number(0xff800000u);
      workgroupBarrier();  // the previous tile is read
      if (mine) {
        let n = tile + thread;
        let position = select(first + (n - early), kept_from + n, n < early);
        let block = block_tables_in[table + position / p.block_tokens];
        let row = (block * p.n_kv_heads + kv_head) * p.block_tokens + position % p.block_tokens;
        places[thread] = row;
        score = score_of(q_at, row);
      }
      let top = group_max(score);
      var next = top;
      var shrink = 0.0;
      if (tile != 0u) {
        next = max(largest, top);
        shrink = exponential(largest - next);
      }
      largest = next;
      var weight = 0.0;
      if (mine) { weight = exponential(score - largest); }
      weights[thread] = weight;
      total = rounded(rounded(total * shrink) + group_sum(weight));
      workgroupBarrier();
      sums[EACH_KEPT] = rounded(sums[EACH_KEPT] * shrink);
      for (var j = 0u; j < count; j += 1u) {
        let row = places[j] * words_v;
        sums[EACH_KEPT] = with_value(sums[EACH_KEPT], j, row, EACH_KEPT * T + thread);
      }
    }
    for (var i = 0u; i < KEPT; i += 1u) {
      let d = i * T + thread;
      if (d < p.head_dim) { y_out[q_at + d] = bits_of(sums[i] / total); }
    }
  }
}
