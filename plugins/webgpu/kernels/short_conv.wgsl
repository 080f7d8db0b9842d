@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> weight_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> positions_in: array<u32>;
@group(0) @binding(4) var<storage, read_write> sequences_in: array<u32>;
@group(0) @binding(5) var<storage, read_write> states_in: array<u32>;
@group(0) @binding(6) var<storage, read_write> state_out: array<u32>;
@group(0) @binding(7) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  element: u32,
  state_words: u32,
  first: u32,
  last: u32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const N = C1;  // rows in a sum

// Each thread has its own columns, also of the state.
fn convolve(c: u32, begin: u32, after: u32, kept: u32) {
  let fresh = positions_in[begin] == 0u;
  var past: array<u32, N>;  // the last one is the token's row
  for (var i = 0u; i + 1u < N; i += 1u) {
    past[i] = select(state_out[kept + i * p.k + c], 0u, fresh);
  }
  for (var t = begin; t < after; t += 1u) {
    past[N - 1u] = x_in[t * p.k + c];
    var sum = 0.0;
    for (var i = 0u; i < N; i += 1u) {
      sum = rounded(sum + rounded(number(weight_in[c * N + i]) * number(past[i])));
    }
    y_out[t * p.k + c] = bits_of(sum);
    for (var i = 0u; i + 1u < N; i += 1u) { past[i] = past[i + 1u]; }
  }
  for (var i = 0u; i + 1u < N; i += 1u) { state_out[kept + i * p.k + c] = past[i]; }
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  let end = min(header_word(p.rows), p.last);
  var nth = 0u;
  for (var begin = p.first; begin < end; nth += 1u) {
    let after = end_of_run(begin, end);
    if (nth % groups.y == group.y) {
      let kept = states_in[sequences_in[begin]] * p.state_words + p.element;
      for (var c = group.x * T + thread; c < p.k; c += groups.x * T) {
        convolve(c, begin, after, kept);
      }
    }
    begin = after;
  }
}
