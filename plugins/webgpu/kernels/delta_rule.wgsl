@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> gates_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> positions_in: array<u32>;
@group(0) @binding(4) var<storage, read_write> sequences_in: array<u32>;
@group(0) @binding(5) var<storage, read_write> states_in: array<u32>;
@group(0) @binding(6) var<storage, read_write> state_out: array<u32>;
@group(0) @binding(7) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  element: u32,
  state_words: u32,
  n_k: u32,
  n_v: u32,
  d_v: u32,
  turns: u32,
  tiles: u32,
  scale: f32,
  eps: f32,
  first: u32,
  last: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const D_K = C1;  // rows of the state of a head
var<workgroup> queries: array<f32, D_K>;  // of the token, normalised
var<workgroup> keys: array<f32, D_K>;
var<workgroup> shared_end: u32;
var<private> row_at: u32;

fn x_at(i: u32) -> f32 {
  return number(x_in[row_at + i]);
}

fn inverse_length() -> f32 {
  return rounded(1.0 / sqrt(rounded(square_sum(D_K) + p.eps)));
}

fn width() -> u32 {
  return 2u * p.n_k * D_K + p.n_v * p.d_v;
}

fn read_token(t: u32, head: u32) {
  let key_head = select(head / (p.n_v / p.n_k), head % p.n_k, p.turns != 0u);
  let q_at = t * width() + key_head * D_K;
  let k_at = q_at + p.n_k * D_K;
  row_at = q_at;
  let of_q = inverse_length();
  row_at = k_at;
  let of_k = inverse_length();
  workgroupBarrier();  // the previous token is done
  for (var i = thread; i < D_K; i += T) {
    queries[i] = rounded(rounded(number(x_in[q_at + i]) * of_q) * p.scale);
    keys[i] = rounded(number(x_in[k_at + i]) * of_k);
  }
  workgroupBarrier();
}

// Element i of a column from word `at` of the state on; nothing: the state counts as zeros.
fn decayed(at: u32, i: u32, nothing: bool, decay: f32) -> f32 {
  return rounded(select(number(state_out[at + i * p.d_v]), 0.0, nothing) * decay);
}

// Updates column j of head `head`.
fn update(t: u32, head: u32, j: u32, at: u32, nothing: bool) {
  let decay = number(gates_in[2u * t * p.n_v + head]);
  let beta = number(gates_in[2u * t * p.n_v + p.n_v + head]);
  var sum = 0.0;
  for (var i = 0u; i < D_K; i += 1u) {
    sum = rounded(sum + rounded(keys[i] * decayed(at, i, nothing, decay)));
  }
  let value = number(x_in[t * width() + 2u * p.n_k * D_K + head * p.d_v + j]);
  let u = rounded(beta * rounded(value - sum));
  var result = 0.0;
  for (var i = 0u; i < D_K; i += 1u) {
    let s = rounded(decayed(at, i, nothing, decay) + rounded(keys[i] * u));
    state_out[at + i * p.d_v] = bits_of(s);
    result = rounded(result + rounded(queries[i] * s));
  }
  y_out[(t * p.n_v + head) * p.d_v + j] = bits_of(result);
}

// A group takes a tile of the columns of a head; a thread has its own columns.
@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let end = min(header_word(p.rows), p.last);
  var nth = 0u;
  for (var begin = p.first; begin < end;) {
    if (thread == 0u) { shared_end = end_of_run(begin, end); }
    let after = workgroupUniformLoad(&shared_end);
    if (nth % groups.y == group.y) {
      let fresh = positions_in[begin] == 0u;
      let kept = states_in[sequences_in[begin]] * p.state_words + p.element;
      for (var u = group.x; u < p.n_v * p.tiles; u += groups.x) {
        let head = u / p.tiles;
        for (var t = begin; t < after; t += 1u) {
          read_token(t, head);
          for (var j = u % p.tiles * T + thread; j < p.d_v; j += p.tiles * T) {
            update(t, head, j, kept + head * D_K * p.d_v + j, fresh && t == begin);
          }
        }
      }
    }
    begin = after;
    nth += 1u;
  }
}
