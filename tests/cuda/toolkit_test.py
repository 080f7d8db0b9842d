"""plugins/cuda/toolkit.cmake: releases of CUDA, architectures and drivers, with scripts in place of nvcc; and no call
of the backend is newer than the oldest driver, of CUDA 12.0.

    toolkit_test.py TREE HEADERS
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TREE, HEADERS = (pathlib.Path(word) for word in sys.argv[1:3])
EVERY = "75;80;90;100;110;120"
# Lists of --list-gpu-code, cut to what matters.
CUDA_12_4 = "75 80 86 90"
CUDA_12_9 = "75 80 86 90 100 101 103 120 121"
CUDA_13_0 = "75 80 86 90 100 103 110 120 121"
# Release of nvcc, its architectures, CUDA_VERSION of cuda.h, BITNET_CUDA_ARCHS, (archs) or words of the reason, why
TOOLKITS = [
    ("13.0", CUDA_13_0, "13000", EVERY, "75;80;90;100;110;120", "the toolkit of scripts/setup"),
    ("12.9", CUDA_12_9, "12090", EVERY, "75;80;90;100;120", "CUDA 12 calls 110 another name"),
    ("12.9", CUDA_12_9, "12090", "120;80", "80;120", "ascending, as the last one gets PTX"),
    ("12.9", CUDA_12_9, "12080", EVERY, "75;80;90;100;120", "the driver is named by the major alone"),
    ("12.9", CUDA_12_9, "12090", "80;110", ("does not compile for sm_110", "BITNET_CUDA_ARCHS"), "110 by its name"),
    ("12.4", CUDA_12_4, "12040", EVERY, ("does not compile for sm_100", "CUDA 12.8 or newer"), "too old"),
    ("12.4", CUDA_12_4, "12040", "75;80;90", "75;80;90", "an older one for a part of the list"),
    ("12.9", CUDA_12_9, "13000", EVERY, ("is of CUDA 12", "of CUDA 13", "BITNET_CUDA_HEADERS"),
     "headers of a configuration before: the plugin would reject drivers that run its kernels"),
    ("13.0", CUDA_13_0, "12090", EVERY, ("is of CUDA 13", "of CUDA 12"),
     "the plugin would accept a driver that cannot load its kernels"),
    ("13.0", CUDA_13_0, None, EVERY, ("has no CUDA_VERSION",), "another file of that name"),
    (None, CUDA_13_0, "13000", EVERY, ("prints no release of CUDA",), "another program of that name"),
]
SCRIPT = """
include("{tree}/plugins/cuda/toolkit.cmake")
bitnet_cuda_toolkit("{nvcc}" "{headers}" release wrong)
if(NOT wrong)
  bitnet_cuda_archs("{nvcc}" "{archs}" "{every}" archs wrong)
endif()
if(wrong)
  message("wrong: ${{wrong}}")
  return()
endif()
bitnet_cuda_needs(${{release}} "${{archs}}" "80;90" text)
message("archs: ${{archs}}")
message("${{text}}")
"""
OLDEST_DRIVER = 12000
OPTIONAL = ["cuGraphAddDependencies_v2"]  # of CUDA 12.3


def configured(release, known, version, archs):
    """What CMake prints with such a toolkit."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        nvcc = place / "nvcc"
        said = f"Cuda compilation tools, release {release}, V{release}.86" if release else "version 1"
        codes = "\\n".join(f"sm_{arch}" for arch in known.split())
        nvcc.write_text(f"#!/bin/sh\ncase $1 in --version) echo '{said}' ;; *) printf '{codes}\\n' ;; esac\n",
                        encoding="utf-8")
        nvcc.chmod(0o755)
        line = f"#define CUDA_VERSION {version}\n" if version else "\n"
        (place / "cuda.h").write_text(line, encoding="utf-8")
        script = place / "script.cmake"
        script.write_text(SCRIPT.format(tree=TREE, nvcc=nvcc, headers=place, archs=archs, every=EVERY), encoding="utf-8")
        done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
        return done.stdout + done.stderr


class Toolkit(unittest.TestCase):
    def test_architectures_and_reasons(self):
        for release, known, version, archs, expected, why in TOOLKITS:
            with self.subTest(why):
                printed = configured(release, known, version, archs)
                if isinstance(expected, str):
                    self.assertIn(f"archs: {expected}\n", printed)
                    self.assertIn(f"must support CUDA {release.split('.', maxsplit=1)[0]}.0 or newer", printed)
                    self.assertIn(f"CUDA {release} compiled the kernels", printed)
                    left_out = archs == EVERY and "110" not in expected
                    self.assertEqual(left_out, "not compiled for sm_110" in printed)
                    continue
                self.assertTrue(printed.startswith("wrong: "), printed)
                for words in expected:
                    self.assertIn(words, printed)


class Calls(unittest.TestCase):
    """cudaTypedefs.h has a type for each version of a call, whose name ends in the CUDA that introduced it."""

    def setUp(self):
        if not (HEADERS / "cudaTypedefs.h").exists():
            self.skipTest(f"{HEADERS} has no cudaTypedefs.h")
        types = (HEADERS / "cudaTypedefs.h").read_text(encoding="utf-8")
        self.first = {}
        for name, version in re.findall(r"\bPFN_(cu\w+)_v(\d+)\b", types):
            self.first[name] = min(int(version), self.first.get(name, int(version)))
        self.text = (TREE / "plugins/cuda/library.hpp").read_text(encoding="utf-8")

    def listed(self, name):
        body = re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*)", self.text).group(1)
        return re.findall(r"X\((\w+)\)", body)

    def test_needed_calls_are_of_the_oldest_driver(self):
        calls = self.listed("BITNET_CUDA_CALLS")
        self.assertGreater(len(calls), 40)
        for call in calls:
            with self.subTest(call):
                self.assertLessEqual(self.first[call], OLDEST_DRIVER)

    def test_optional_calls_are_those_listed(self):
        self.assertEqual(self.listed("BITNET_CUDA_OPTIONAL_CALLS"), OPTIONAL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
