// Runs of tokens of one sequence, within tokens [first, last) of the step: a step may be cut into
// several commands, and what was cut goes on from the state. Positions ascend, so that a run whose
// state counts as zeros is one that begins at 0. Groups of one y take every so many-th run.

static uint end_of_run(__global const uint *sequences, uint t, uint end) {
  uint after = t + 1;
  while (after < end && sequences[after] == sequences[t]) ++after;
  return after;
}

#define EACH_RUN(t, after, first, end)                                                            \
  for (uint t = (first), after = (first), nth = 0; t < (end); t = after, ++nth)                   \
    if ((after = end_of_run(sequences, t, end)) != 0 &&                                           \
        nth % (uint)get_num_groups(1) == (uint)get_group_id(1))

#define GET1(p) (*(p))
#define PUT1(v, p) (*(p) = (v))
#define GET16(p) vload16(0, p)
#define PUT16(v, p) vstore16(v, 0, p)
