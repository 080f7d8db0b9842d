// Sums and maxima over a work group. Every thread must call; all get the result. The order is that
// of a tree over the threads, with and without subgroups.

shared float reduced[gl_WorkGroupSize.x];

// Steps of the tree between subgroups use memory; those within a subgroup do not.
#define DEFINE_GROUP(NAME, STEP)                                            \
  float NAME(float x) {                                                     \
    precise float mine = x;                                                 \
    if (threads() > SUBGROUP) {                                             \
      barrier(); /* what the last call left is read */                      \
      reduced[thread()] = mine;                                             \
      barrier();                                                            \
      for (uint half_ = threads() / 2; half_ >= SUBGROUP; half_ /= 2) {     \
        if (thread() < half_) {                                             \
          mine = STEP(mine, reduced[thread() + half_]);                     \
          reduced[thread()] = mine;                                         \
        }                                                                   \
        barrier();                                                          \
      }                                                                     \
    }                                                                       \
    for (uint half_ = min(SUBGROUP, threads()) / 2; half_ != 0; half_ /= 2) \
      mine = STEP(mine, ACROSS(mine, half_));                               \
    if (threads() > SUBGROUP) {                                             \
      if (thread() == 0) reduced[0] = mine;                                 \
      barrier();                                                            \
      mine = reduced[0];                                                    \
    }                                                                       \
    return mine;                                                            \
  }

#define PLUS(a, b) ((a) + (b))
DEFINE_GROUP(group_max, max)
DEFINE_GROUP(group_sum, PLUS)
#undef PLUS
