"""The lane `gpu` on a driver that computes here: all of it passes, and what a device does wrong turns it red."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import lane

LANE = pathlib.Path(__file__).resolve().parent / "lane.py"
DEVICE, BUILD = sys.argv[1], sys.argv[2]
PROGRAM = os.environ["BITNET_PROGRAM"]
# Each step by a word of its row.
ROWS = ("| kernels, states, switches off |", "| kernels, states, switches on |", "| conformance |", "| parity |",
        "| demo model: text |", "| random 2b-4t: KL, --activations float |",
        "| random 8b: text |", "| random 10b: text |", "| soak |", "| parallel sessions |", "| hot reload under load |",
        "| two generations at once |", "| fail-over to the cpu |", "| checker, racecheck |", "| limit: products of bytes |",
        "| random 27b: text |", "| random 27b: tg",
        "| random 27b: without BITNET_CUDA_WARP_GROUPS |", "| random 27b: variant same |")


class Lane(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="bitnet-lane-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.folder.cleanup)

    def program(self, text):
        """A program `checker` in a folder of PATH, of these lines of sh."""
        file = pathlib.Path(self.folder.name, "checker")
        file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        file.chmod(0o755)
        return str(file)

    def lane(self, *words, **env):
        path = f"{self.folder.name}:{os.environ['PATH']}"
        return subprocess.run([sys.executable, "-B", LANE, "--build", BUILD, "--device", DEVICE, "--short", "--models",
                               self.folder.name, "--sanitizer", "checker", *words], capture_output=True, text=True,
                              env={**os.environ, "PATH": path, **env}, check=False, timeout=900)

    def red(self, step, says, *, also="", **env):
        done = self.lane("--only", step + also, **env)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"FAILED: {step}\n", done.stderr)
        self.assertIn(says, done.stderr)
        return done

    def test_a_whole_run_passes_and_prints_each_row_once(self):
        self.program('while [ "$1" != "$BITNET_PROGRAM" ]; do shift; done; exec "$@"')
        variants = pathlib.Path(self.folder.name, "variants")
        variants.mkdir()
        shutil.copy(pathlib.Path(BUILD, f"lib/bitnet/backends-0/libbitnet-backend-{DEVICE}.so"), variants / "same.so")
        done = self.lane("--variants", str(variants))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for start in ROWS:
            self.assertEqual(done.stdout.count(f"\n{start}"), 1, f"{start}\n{done.stdout}")

    def test_a_text_that_differs_from_the_cpus_turns_models_red(self):
        wrong = self.program(f'case "$*" in *"--device {DEVICE}"*--json*) "{PROGRAM}" "$@" | '
                             f'''sed 's/"generated":\\[[0-9]*/"generated":[7/';; *) exec "{PROGRAM}" "$@";; esac''')
        done = self.red("models", "demo model, KL ", also=",parity",
                        BITNET_PROGRAM=wrong)
        self.assertIn("another text than the cpu's from 0 of 6 on", done.stderr)
        self.assertIn("| parity |", done.stdout, "one step stops no other one")

    def test_a_loss_without_another_device_fails_failover(self):
        stays = self.program(f'for word; do shift; [ "$word" != "{DEVICE},cpu" ] || word={DEVICE}; '
                             f'set -- "$@" "$word"; done; exec "{PROGRAM}" "$@"')
        self.red("failover", "fell off the bus", BITNET_PROGRAM=stays)

    def test_a_loss_in_the_middle_fails_soak(self):
        # Opening the device makes calls, too: hundreds where forms are looked at.
        self.red("soak", "DeviceLost", BITNET_STAND_IN="fail=700,with=719,at_once=1", BITNET_CUDA_CHECKS="off")

    def test_a_finding_of_the_checker_fails_sanitizer(self):
        self.program("echo '1 error'; exit 9")
        self.red("sanitizer", "memcheck finds: 1 error")

    def test_without_a_device_it_is_skipped(self):
        done = self.lane(LD_LIBRARY_PATH="/nonexistent")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn(f"skip: lane gpu: {DEVICE}: BN-P-UNAVAILABLE: ", done.stdout)

    def test_unknown_steps_and_shapes_are_rejected(self):
        done = self.lane("--only", "parity,nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no step 'nonsense'; expected some of kernels, conformance, parity", done.stderr)
        done = self.lane("--shapes", "2b-4t,3b")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no shape '3b'; expected some of 2b-4t", done.stderr)
        self.assertNotEqual(self.lane("--build", "/nonexistent", BITNET_PROGRAM="").returncode, 0)


class NearTie(unittest.TestCase):
    """The device has 2 where the cpu has 1."""

    def tied(self, want_row, got_row):
        return lane.is_near_tie(want_row, got_row, 1, 2)[0]

    def test_two_logits_that_are_near(self):
        self.assertTrue(self.tied([0, 5.0, 4.999, 1], [0, 4.999, 5.0, 1]))
        self.assertTrue(self.tied([0, 5.0, 5.0, 1], [0, 5.0, 5.0, 1]), "as near as can be")

    def test_rows_that_differ_are_an_error(self):
        self.assertFalse(self.tied([0, 5.0, 4.5, 1], [0, 4.5, 5.0, 1]))

    def test_a_token_that_the_rows_do_not_explain_is_an_error(self):
        self.assertFalse(self.tied([0, 5.0, 4.9, 1], [0, 5.0, 4.9, 1]), "the device chose what its own row has not")
        self.assertFalse(self.tied([0, 5.0, 4.9, 1], [0, 4.99, 4.9, 1]))


class Growth(unittest.TestCase):
    def grown(self, readings):
        return lane.growth([{"threads": one} for one in readings])["threads"]

    def test_fluctuating_memory_is_not_growth(self):
        for readings in ([1, 1, 1, 1, 1, 1, 1, 1, 1, 3], [1, 1, 1, 1, 1, 1, 1, 3, 3, 1], [5, 3, 3, 1, 3, 3, 3, 3, 1, 3]):
            self.assertEqual(self.grown(readings), 0, readings)

    def test_steady_growth_is_reported(self):
        self.assertEqual(self.grown(range(10)), 5)
        self.assertEqual(self.grown([4, 3, 2, 3, 4, 5, 6, 7, 9, 8]), 5)

    def test_memory_allocated_once_is_not_growth(self):
        self.assertEqual(self.grown([1, 7, 9, 9, 9, 9, 9, 9, 9, 9]), 0)


if __name__ == "__main__":
    try:
        import cffi  # noqa: F401 pylint: disable=unused-import
        import numpy  # noqa: F401 pylint: disable=unused-import
    except ImportError as lacks:
        print(f"skip: {sys.executable} has no {lacks.name}; scripts/setup makes build/venv, which has it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
