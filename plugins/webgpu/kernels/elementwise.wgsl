@group(0) @binding(1) var<storage, read_write> a_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> b_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  factor: f32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const OP = C1;

fn value_of(at: u32) -> f32 {
  let a = number(a_in[at]);
  switch OP {
    case OP_ADD: {
      return a + number(b_in[at]);
    }
    case OP_MUL: {
      return a * number(b_in[at]);
    }
    case OP_SCALE: {
      return a * p.factor;
    }
    default: {
      return activation(OP, a);
    }
  }
}

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  for (var r = group.y; r < header_word(p.rows); r += groups.y) {
    for (var i = group.x * T + thread; i < p.k; i += groups.x * T) {
      y_out[r * p.k + i] = bits_of(value_of(r * p.k + i));
    }
  }
}
