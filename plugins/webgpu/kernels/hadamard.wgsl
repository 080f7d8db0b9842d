@group(0) @binding(1) var<storage, read_write> x_in: array<u32>;
@group(0) @binding(2) var<storage, read_write> weight_in: array<u32>;
@group(0) @binding(3) var<storage, read_write> y_out: array<u32>;
struct parameters {
  rows: u32,
  k: u32,
  start: u32,
  end: u32,
  before: u32,
  after: u32,
  scale: f32,
  zero: u32,
}
@group(0) @binding(8) var<uniform> p: parameters;
const TILE = C1;
var<workgroup> tile: array<f32, TILE>;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) index: u32) {
  thread = index;
  // A tile is runs of neighbours, `start` elements of the row apart; a single run if start is 1.
  let times = p.end / p.start;
  var run = TILE;
  var nearest = 1u;
  var apart = TILE;
  if (p.start != 1u) {
    run = TILE / times;
    nearest = run;
    apart = p.start;
  }
  let side_by_side = apart / run;
  let units = (p.k + TILE - 1u) / TILE;
  for (var r = group.y * groups.x + group.x; r < header_word(p.rows) * units;
       r += groups.x * groups.y) {
    let u = r % units;
    let row_at = r / units * p.k;
    let begin = u / side_by_side * (side_by_side * TILE) + u % side_by_side * run;
    workgroupBarrier();  // the previous tile is written
    for (var i = 0u; i < TILE / run; i += 1u) {
      for (var j = thread; j < run; j += T) {
        let at = begin + i * apart + j;
        var value = 0.0;
        if (at < p.k) {
          value = number(x_in[row_at + at]);
          if (p.before != 0u) { value = rounded(value * number(weight_in[at])); }
        }
        tile[i * run + j] = value;
      }
    }
    for (var d = nearest; d < nearest * times; d *= 2u) {
      workgroupBarrier();
      for (var pair = thread; pair < TILE / 2u; pair += T) {
        let i = 2u * pair - (pair & (d - 1u));
        let sum = rounded(tile[i] + tile[i + d]);
        let difference = rounded(tile[i] - tile[i + d]);
        tile[i] = sum;
        tile[i + d] = difference;
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < TILE / run; i += 1u) {
      for (var j = thread; j < run; j += T) {
        let at = begin + i * apart + j;
        if (at >= p.k) { continue; }
        var value = rounded(tile[i * run + j] * p.scale);
        if (p.after != 0u) { value = rounded(value * number(weight_in[at])); }
        y_out[row_at + at] = bits_of(value);
      }
    }
  }
}
