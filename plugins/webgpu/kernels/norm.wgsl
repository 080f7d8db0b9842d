// RMS_NORM of one row by one work group, as a part of several kernels. The kernel defines x_at(i),
// element i of the row.

var<workgroup> norm_sums: array<f32, T>;
var<workgroup> norm_rests: array<f32, T>;

// a * a and its exact rounding error: high + low = a * a, barring underflow.
// Source  T. J. Dekker, A floating-point technique for extending the available precision, 1971.
fn exact_square(a: f32) -> vec2<f32> {
  let c = rounded(4097.0 * a);
  let d = rounded(c - a);
  let h = rounded(c - d);
  let l = rounded(a - h);
  let high = rounded(a * a);
  var low = rounded(rounded(h * h) - high);
  low = rounded(low + rounded(rounded(2.0 * h) * l));
  low = rounded(low + rounded(l * l));
  return vec2<f32>(high, low);
}

// (sum', rest') after adding x: sum + x = sum' + error, exactly; the error is added to rest.
// Source  D. E. Knuth, The art of computer programming, volume 2, theorem 4.2.2 B.
fn exact_add(sum: f32, x: f32, rest: f32) -> vec2<f32> {
  let s = rounded(sum + x);
  let b = rounded(s - sum);
  let e = rounded(rounded(sum - rounded(s - b)) + rounded(x - b));
  return vec2<f32>(s, rounded(rest + e));
}

// The sum of x^2, with its rounding errors kept.
fn square_sum(k: u32) -> f32 {
  var kept = vec2<f32>(0.0, 0.0);
  for (var i = thread; i < k; i += T) {
    let square = exact_square(x_at(i));
    kept = exact_add(kept.x, square.x, kept.y);
    kept.y = rounded(kept.y + square.y);
  }
  workgroupBarrier();
  norm_sums[thread] = kept.x;
  norm_rests[thread] = kept.y;
  workgroupBarrier();
  for (var d = T / 2u; d != 0u; d /= 2u) {
    if (thread < d) {
      kept = exact_add(kept.x, norm_sums[thread + d], kept.y);
      kept.y = rounded(kept.y + norm_rests[thread + d]);
      norm_sums[thread] = kept.x;
      norm_rests[thread] = kept.y;
    }
    workgroupBarrier();
  }
  return rounded(norm_sums[0] + norm_rests[0]);
}

// 1 / sqrt(mean(x^2) + eps)
fn norm_factor(k: u32, eps: f32) -> f32 {
  let mean = rounded(square_sum(k) / f32(k));
  return rounded(1.0 / sqrt(rounded(mean + eps)));
}

fn normed(x: f32, factor: f32, weight: f32) -> f32 {
  return rounded(rounded(x * factor) * weight);
}
