"""Each wrong backend fails in the suite that it should, and in no other."""

import concurrent.futures
import os
import sys
import time
import unittest

import kit

# Tests that every backend that computes nothing fails: it lists a kernel that graph_query denies, and has
# no buffers.
COMPUTES_NOTHING = {"ops", "robustness"}

# name, exit status, the suites, a test or word that must be among what failed
ROWS = [
    ("good", 1, COMPUTES_NOTHING, "ops.lists_and_answers_agree"),
    ("computes", 0, set(), ""),
    # Backends without a device.
    ("zero", 77, set(), ""),
    ("unavailable", 77, set(), "libfake.so.1 is not installed"),
    ("entry-unavailable", 77, set(), "not today"),
    # Backends that the loader rejects.
    ("no-entry", 22, {"lint"}, "BN-I-NO-ENTRY"),
    ("other-major", 22, {"lint"}, "BN-A-MAJOR"),
    ("no-note", 22, {"lint"}, "BN-I-NO-NOTE"),
    ("two-notes", 22, {"lint"}, "BN-I-NOTE"),
    ("note-minor", 22, {"lint"}, "BN-A-MINOR"),
    ("extra-export", 22, {"lint"}, "BN-I-EXPORTS"),
    ("unique", 22, {"lint"}, "BN-I-EXPORTS"),
    ("needy", 22, {"lint"}, "BN-I-DEPENDENCY"),
    ("needs-new-glibc", 22, {"lint"}, "BN-I-VERSION"),
    ("relative-run-path", 22, {"lint"}, "BN-I-RUN-PATH"),
    ("static-tls", 22, {"lint"}, "BN-I-STATIC-TLS"),
    ("textrel", 22, {"lint"}, "BN-I-TEXTREL"),
    ("exec-stack", 22, {"lint"}, "BN-I-EXEC-STACK"),
    ("pinned", 22, {"lint"}, "BN-I-PINNED"),
    # The entry and its table.
    ("entry-fails", 1, {"abi"}, "not today"),
    ("needs-minor", 1, {"abi"}, "abi.opens"),
    ("minor-too-new", 1, {"abi"} | COMPUTES_NOTHING, "abi.table_is_filled_as_the_contract_says"),
    ("short-table", 1, {"abi"}, "filled_size"),
    ("too-long", 1, {"abi"}, "filled_size"),
    ("struct-size", 1, {"abi"}, "struct_size"),
    ("overrun", 1, {"abi"}, "wrote past the table"),
    ("null-slot", 1, {"abi"}, "is NULL"),
    ("null-close", 1, {"abi"}, "is NULL"),
    ("garbage-reserved", 1, {"abi"} | COMPUTES_NOTHING, "abi.table_is_filled_as_the_contract_says"),
    ("features", 1, {"abi"} | COMPUTES_NOTHING, "abi.table_is_filled_as_the_contract_says"),
    # Wrong answers.
    ("info-fails", 1, {"abi"}, "lost my papers"),
    ("info-null", 1, {"abi"} | COMPUTES_NOTHING, "abi.info_names_the_backend"),
    ("info-name", 1, {"abi"} | COMPUTES_NOTHING, "abi.info_names_the_backend"),
    ("wrong-note", 1, {"abi"} | COMPUTES_NOTHING, "abi.info_names_the_backend"),
    ("count-fails", 1, {"abi"}, "cannot count"),
    ("many-devices", 1, {"abi"} | COMPUTES_NOTHING, "abi.devices_are_possible_and_stay_the_same"),
    ("device-fails", 1, {"abi"}, "fell off the bus"),
    ("no-memory", 1, {"abi"} | COMPUTES_NOTHING, "no memory is left"),
    ("odd-alignment", 1, {"abi"} | COMPUTES_NOTHING, "no power of two"),
    ("raw-name", 1, {"abi"} | COMPUTES_NOTHING, "a string has no end"),
    ("many-kernels", 1, {"abi"} | COMPUTES_NOTHING, "4000000 kernels"),
    ("fickle-kernels", 1, {"abi", "robustness"}, "the number of kernels changed"),
    ("kernels-fail", 1, {"abi"} | COMPUTES_NOTHING, "no list"),
    ("kernels-fail-late", 1, {"abi"} | COMPUTES_NOTHING, "no list"),
    ("shrinks", 1, {"abi"} | COMPUTES_NOTHING, "abi.purposes_see_the_same_devices"),
    ("vanishes", 1, {"abi"} | COMPUTES_NOTHING, "abi.purposes_see_the_same_devices"),
    # Crashes and hangs, with their stage.
    ("crash-constructor", 1, {"abi"}, "SIGSEGV in dlopen"),
    ("crash-entry", 1, {"abi"}, "SIGSEGV in entry"),
    ("crash-enumerate", 1, {"abi"}, "SIGSEGV in device_count; its last words: about to crash"),
    ("crash-self-test", 1, {"abi"}, "SIGSEGV in device_open"),
    ("crash-close", 1, {"abi"}, "SIGSEGV in close"),
    ("exit-crash", 1, {"abi"}, "SIGSEGV in exit"),
    ("hang-constructor", 1, {"abi"}, "did not end within 1 s in dlopen"),
    ("hang-entry", 1, {"abi"}, "did not end within 1 s in entry"),
    ("hang-enumerate", 1, {"abi"}, "did not end within 1 s in device_count"),
    ("hang-self-test", 1, {"abi"}, "did not end within 1 s in device_open"),
    ("hang-close", 1, {"abi"}, "did not end within 1 s in close"),
    ("stubborn", 1, {"abi", "hygiene"}, "it called signal in device_count"),
    # Side effects of a call.
    ("aborts", 1, {"hygiene"}, "it called abort in device_count"),
    ("exits", 1, {"hygiene"}, "it called exit in device_count"),
    ("throws-entry", 1, {"hygiene"}, "hygiene.throws"),
    ("throws", 1, {"hygiene"}, "hygiene.throws"),
    ("closes-fds", 1, {"hygiene"}, "closed the descriptors of its host in device_count"),
    ("prints", 1, {"hygiene"} | COMPUTES_NOTHING, "it printed 1048576 bytes or more"),
    ("chats", 1, {"hygiene"} | COMPUTES_NOTHING, "it printed 640 bytes"),
    ("sets-variable", 1, {"hygiene"} | COMPUTES_NOTHING, "it called setenv"),
    ("sets-locale", 1, {"hygiene"} | COMPUTES_NOTHING, "it called setlocale"),
    ("leaves-folder", 1, {"hygiene"} | COMPUTES_NOTHING, "it called chdir"),
    ("rounds-up", 1, {"hygiene"} | COMPUTES_NOTHING, "hygiene.floating_point_modes_stay"),
    ("handles-signal", 1, {"hygiene"} | COMPUTES_NOTHING, "handler of signal 10"),
    # State that a call leaves behind.
    ("forks", 1, {"lifecycle"} | COMPUTES_NOTHING, "left a process running"),
    ("thread", 1, {"lifecycle"} | COMPUTES_NOTHING, "lifecycle.close_ends_every_thread"),
    ("leaks", 1, {"lifecycle"} | COMPUTES_NOTHING, "resident bytes grew"),
    ("opens-files", 1, {"lifecycle"} | COMPUTES_NOTHING,
     "lifecycle.two_hundred_openings_leave_nothing"),
    # Allowed: a destructor of a thread in a plugin that does not declare itself unloadable.
    ("tls", 1, COMPUTES_NOTHING, ""),
    # Wrong sums and claims.
    ("wrong-kernel", 1, {"ops", "sizes"}, "ops.linear_ternary_ternary2"),
    ("wrong-reference", 1, {"ops", "sizes"}, "ops.linear_ternary_ternary2"),
    ("boasts", 1, {"ops", "sizes"}, "is claimed to be optimised, and what ran is embed.plain (reference)"),
]


def judge(row):
    """The differences from the row."""
    name, status, suites, word = row
    # Backends that hang wait to the end; no other one needs most of its time.
    slow = name.startswith("hang") or name == "stubborn"
    found, content = kit.report("--timeout", 1 if slow else 120, kit.fake(name))
    reported = str([r for r in content["tests"] if r["status"] == "failed"]) + str(
        content.get("unavailable"))
    problems = []
    if found != status:
        problems.append(f"exit status {found}, expected {status}")
    if kit.failed_suites(content) != suites:
        problems.append(f"failed in {sorted(kit.failed_suites(content))}, expected {sorted(suites)}")
    if word not in reported:
        problems.append(f"'{word}' is not in {reported}")
    if status != 0 and content["level"] != "none":
        problems.append(f"level {content['level']}")
    return [f"{name}: {p}" for p in problems]


class Fakes(unittest.TestCase):
    maxDiff = None

    def test_each_fails_where_it_should(self):
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(min(4, 2 * (os.cpu_count() or 1))) as pool:
            problems = [p for found in pool.map(judge, ROWS) for p in found]
        print(f"{len(ROWS)} backends in {time.monotonic() - begin:.1f} s", file=sys.stderr)
        self.assertEqual(problems, [])


if __name__ == "__main__":
    unittest.main()
