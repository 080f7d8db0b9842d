// Runs of tokens of one sequence, within tokens [first, last) of the step: a step may be cut into
// several commands, and what was cut goes on from the state. Positions ascend, so that a run whose
// state counts as zeros is one that begins at 0. Groups of one y take every so many-th run.

uint end_of_run(uint t, uint end) {
  uint after = t + 1;
  while (after < end && sequences[after] == sequences[t]) ++after;
  return after;
}

#define EACH_RUN(t, after, end)                                                    \
  for (uint t = first, after = first, nth = 0; t < (end); t = after, ++nth)        \
    if ((after = end_of_run(t, end)) != 0 && nth % gl_NumWorkGroups.y == gl_WorkGroupID.y)
