// Sums and maxima over a work group. Every thread calls; all get the result. The order is that of a
// tree over the threads, whatever else runs.

shared float reduced[gl_WorkGroupSize.x];

float group_max(float x) {
  barrier();
  reduced[thread()] = x;
  barrier();
  for (uint half_ = threads() / 2; half_ != 0; half_ /= 2) {
    if (thread() < half_) reduced[thread()] = max(reduced[thread()], reduced[thread() + half_]);
    barrier();
  }
  return reduced[0];
}

float group_sum(float x) {
  barrier();
  reduced[thread()] = x;
  barrier();
  for (uint half_ = threads() / 2; half_ != 0; half_ /= 2) {
    if (thread() < half_) {
      precise float sum = reduced[thread()] + reduced[thread() + half_];
      reduced[thread()] = sum;
    }
    barrier();
  }
  return reduced[0];
}
