// As reduce.wgsl, where threads of a subgroup exchange values without memory: maxima only, which do
// not depend on an order, so that it does not matter which threads a subgroup has or how many.

var<workgroup> reduced: array<f32, T>;
var<workgroup> largest_bits: atomic<u32>;

// Of numbers that are not less than 0, whose bits ascend with them, or -infinity; NaN counts as
// either.
fn group_max(x: f32) -> f32 {
  workgroupBarrier();  // what the last call left is read
  if (thread == 0u) { atomicStore(&largest_bits, 0u); }
  workgroupBarrier();
  // Ascending for all numbers: what is negative is turned over, what is not comes behind it.
  let b = bits_of(x);
  let ordered = select(b | 0x80000000u, ~b, (b & 0x80000000u) != 0u);
  let most = subgroupMax(ordered);
  if (ordered == most) { atomicMax(&largest_bits, most); }  // one of the subgroup, at least
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
