// Runs of tokens of one sequence, within tokens [p.first, p.last) of the step: a step may be cut into
// several commands, and what was cut goes on from the state. Positions ascend, so that a run whose
// state counts as zeros is one that begins at 0. Groups of one y take every so many-th run.
fn end_of_run(t: u32, end: u32) -> u32 {
  var after = t + 1u;
  while (after < end && sequences_in[after] == sequences_in[t]) { after += 1u; }
  return after;
}
