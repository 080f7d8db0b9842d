// Runs of tokens of one sequence, within tokens [first, last) of the step. A step may be cut into
// several commands; a cut run continues from the state. Positions ascend, so exactly the runs that
// begin at 0 start from zeros. Groups of one y share the runs in turn.

uint end_of_run(uint t, uint end) {
  uint after = t + 1;
  while (after < end && sequences[after] == sequences[t]) ++after;
  return after;
}

#define EACH_RUN(t, after, end)                                                    \
  for (uint t = first, after = first, nth = 0; t < (end); t = after, ++nth)        \
    if ((after = end_of_run(t, end)) != 0 && nth % gl_NumWorkGroups.y == gl_WorkGroupID.y)
