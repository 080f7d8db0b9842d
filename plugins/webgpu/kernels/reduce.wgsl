// Maxima and sums over a work group. Every thread must call; all get the result. The order is that
// of a tree over the threads, on every device.

var<workgroup> reduced: array<f32, T>;

fn group_max(x: f32) -> f32 {
  workgroupBarrier();  // results of the last call are read
  reduced[thread] = x;
  workgroupBarrier();
  for (var d = T / 2u; d != 0u; d /= 2u) {
    if (thread < d) { reduced[thread] = max(reduced[thread], reduced[thread + d]); }
    workgroupBarrier();
  }
  return reduced[0];
}

fn group_sum(x: f32) -> f32 {
  workgroupBarrier();
  reduced[thread] = x;
  workgroupBarrier();
  for (var d = T / 2u; d != 0u; d /= 2u) {
    if (thread < d) { reduced[thread] = rounded(reduced[thread] + reduced[thread + d]); }
    workgroupBarrier();
  }
  return reduced[0];
}
