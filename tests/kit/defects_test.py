"""One promise broken at a time: each defect of the saboteur fails the tests that are about it.

Those of many sequences and of cancelled steps stand in docs/reference/conformance.md; mutants_test.py runs them.
"""

import concurrent.futures
import os
import unittest

import kit

# defect, the suites that run, what fails in them
ROWS = [
    ("none", "program robustness lifecycle", set()),
    ("batch", "program", {"program.batches_agree_bit_for_bit"}),
    ("window", "program ops", {"program.windows_hide_what_lies_before", "ops.attn_paged"}),
    ("kept", "program ops", {"program.windows_hide_what_lies_before", "ops.attn_paged"}),
    ("layer-window", "program ops", {"program.windows_of_layers_hide_what_lies_before", "ops.attn_paged"}),
    ("gelu", "ops", {"ops.gelu"}),
    ("scale", "ops", {"ops.scale"}),
    ("sigmoid", "ops", {"ops.sigmoid"}),
    ("columns", "ops", {"ops.columns"}),
    ("conv-state", "ops", {"ops.short_conv_f32"}),
    ("gates", "ops", {"ops.delta_gates_f32"}),
    ("delta-heads", "ops", {"ops.delta_rule"}),
    ("fresh", "program ops", {"ops.short_conv_f32", "ops.delta_rule",
                              "program.states_go_on_however_the_work_is_cut"}),
    ("rows", "program", {"program.only_the_wanted_rows_are_written"}),
    ("top", "program", {"program.the_largest_logits_are_those_of_all"}),
    ("list", "program", {"program.the_largest_logits_are_listed"}),
    ("copy", "program", {"program.blocks_are_copied"}),
    ("state-copy", "program", {"program.states_are_copied_and_moved"}),
    ("import", "ops lifecycle", {"ops.kv_write", "ops.attn_paged",
                                 "lifecycle.exported_blocks_go_on_elsewhere"}),
    ("export", "ops", {"ops.kv_write", "ops.attn_paged"}),
    ("nibbles", "ops", {"ops.kv_write"}),
    ("ignores", "robustness", {"robustness.what_is_not_understood_is_unsupported"}),
    ("one-binding", "program", {"program.two_bindings_are_in_flight_together"}),
    ("malformed", "abi", {"abi.graph_query_rejects_what_it_does_not_understand",
                          "abi.what_a_later_host_appends_is_read_if_it_is_zero"}),
    ("statistics", "program", {"program.statistics_count_what_ran"}),
    ("prepare", "program", {"program.sizes_past_the_bound_are_rejected", "program.steps_of_many_sequences_are_prepared",
                            "program.a_prepare_request_of_minor_1_is_read"}),
    ("prepares-any", "program", {"program.steps_of_many_sequences_are_prepared"}),
    ("prepares-whole", "program", {"program.a_prepare_request_of_minor_1_is_read"}),
    ("wait", "robustness", {"robustness.waiting_for_what_never_comes_ends"}),
    ("timeline", "robustness", {"robustness.a_rejected_step_does_not_move_the_timeline"}),
    ("silence", "robustness", {"robustness.waiting_for_what_never_comes_ends"}),
    ("out", "robustness", {"robustness.devices_that_are_not_there_are_rejected"}),
    ("dirty", "robustness", {"robustness.buffers_are_zeroed_aligned_and_stay"}),
    ("huge", "robustness", {"robustness.buffers_too_large_are_rejected"}),
    ("seal", "robustness", {"robustness.streams_cut_short_are_reported_and_thrown_away"}),
    ("cancel", "robustness", {"robustness.a_cancelled_step_leaves_a_working_program"}),
    ("deaf", "robustness", {"robustness.a_cancelled_step_leaves_a_working_program"}),
    ("stubborn", "robustness", {"robustness.a_cancelled_build_makes_nothing",
                                "robustness.opening_and_preparing_can_be_cancelled",
                                "robustness.a_cancelled_step_leaves_a_working_program"}),
    ("spendthrift", "robustness", {"robustness.a_device_holds_no_more_than_it_may"}),
    ("askew", "robustness", {"robustness.buffers_are_aligned_as_they_are_wanted"}),
    ("excuse", "robustness", {"robustness.host_allocation_failures"}),
    ("pin", "unload", {"unload.nothing_is_mapped_afterwards"}),
    ("status", "abi", {"abi.what_a_device_does_is_possible"}),
    ("totals", "abi", {"abi.what_a_device_does_is_possible"}),
    ("longer", "abi", {"abi.what_a_device_does_is_possible"}),
    ("handles", "lifecycle", {"lifecycle.two_hundred_openings_leave_nothing"}),
    ("leave", "robustness", {"robustness.process"}),
]


def judge(row):
    name, suites, expected = row
    words = [w for suite in suites.split() for w in ("--suite", suite)]
    _, content = kit.report("--set", f"defect={name}", *words, kit.SABOTEUR)
    missed = expected - kit.by_status(content, "failed")
    problems = [f"{name}: {test} did not fail" for test in sorted(missed)]
    if not expected:
        problems += [f"{name}: {test} failed" for test in kit.by_status(content, "failed")]
    return problems


class Defects(unittest.TestCase):
    maxDiff = None

    def test_each_is_found(self):
        with concurrent.futures.ThreadPoolExecutor(min(4, 2 * (os.cpu_count() or 1))) as pool:
            self.assertEqual([p for found in pool.map(judge, ROWS) for p in found], [])

    def test_tests_after_a_hanging_one_run(self):
        """The first test that does not end costs itself only."""
        hangs, behind = "robustness.buffers_too_large_are_rejected", "robustness.pools_too_large_or_strange_are_rejected"
        _, content = kit.report("--timeout", 5, "--set", "defect=endless", "--test", hangs, "--test", behind, kit.SABOTEUR)
        self.assertEqual(kit.by_status(content, "failed"), {hangs})
        self.assertEqual(kit.by_status(content, "passed") & {behind}, {behind})


if __name__ == "__main__":
    unittest.main()
