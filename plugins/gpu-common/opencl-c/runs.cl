// Runs of tokens of one sequence, within tokens [first, last) of the step. A step may be cut into
// several commands; a cut run continues from the state. Positions ascend, so exactly the runs that
// begin at 0 start from zeros. Groups of one y share the runs in turn.

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
