// Runs of tokens of one sequence, within tokens [p.first, p.last) of the step. A step may be cut
// into several commands; a cut run continues from the state. Positions ascend, so exactly the runs
// that begin at 0 start from zeros. Groups of one y share the runs in turn.
fn end_of_run(t: u32, end: u32) -> u32 {
  var after = t + 1u;
  while (after < end && sequences_in[after] == sequences_in[t]) { after += 1u; }
  return after;
}
