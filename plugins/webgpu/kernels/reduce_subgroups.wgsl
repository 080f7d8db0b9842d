// reduce.wgsl for threads of a subgroup that exchange values without memory. Maxima only: they do
// not depend on an order, so the number and the choice of a subgroup's threads do not matter.

var<workgroup> reduced: array<f32, T>;
var<workgroup> largest_bits: atomic<u32>;

// x is at least 0, so its bits ascend with it, or -infinity; NaN counts as either.
fn group_max(x: f32) -> f32 {
  workgroupBarrier();  // results of the last call are read
  if (thread == 0u) { atomicStore(&largest_bits, 0u); }
  workgroupBarrier();
  // Bits that ascend for all numbers: those of negative numbers are inverted, the others come
  // after.
  let b = bits_of(x);
  let ordered = select(b | 0x80000000u, ~b, (b & 0x80000000u) != 0u);
  let most = subgroupMax(ordered);
  if (ordered == most) { atomicMax(&largest_bits, most); }  // at least one thread of the subgroup
  workgroupBarrier();
  let all = atomicLoad(&largest_bits);
  return number(select(~all, all & 0x7fffffffu, (all & 0x80000000u) != 0u));
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
