"""scripts/check-abi accepts growth and reports every other change, on headers with one defect each."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GATE = ROOT / "scripts/check-abi"
compiler = "cc"

LAST_OF_DEVICE_INFO = "  uint32_t logits_flags;    /* BITNET_LOGITS_*    */\n  uint32_t reserved_0;\n"
LAST_SLOT = "                                 bitnet_error* err);\n} bitnet_backend_v0;"
QUIESCE = "bitnet_status (*quiesce)(bitnet_backend* self, uint64_t timeout_ns"
CLOSE = "BITNET_API void bitnet_runtime_close(bitnet_runtime* runtime);"

INSERT = ("abi/info.h", "  char uuid[64]; ", "  uint64_t more_1;\n  char uuid[64]; ")
APPEND = ("abi/info.h", LAST_OF_DEVICE_INFO, LAST_OF_DEVICE_INFO + "  uint64_t more_2;\n")
PARAMETER = ("abi/backend.h", QUIESCE, QUIESCE.replace("uint64_t", "uint32_t"))

# passes, (file, what stands there, what instead)..., why
ROWS = [
    (True, [], "nothing changed"),
    (True, [APPEND], "a member behind the last one"),
    (True, [("abi/backend.h", LAST_SLOT, LAST_SLOT.replace(
        "} ", "  bitnet_status (*later)(bitnet_backend* self);\n} "))], "a slot behind the last one"),
    (True, [("bitnet.h", CLOSE, CLOSE + "\nBITNET_API void bitnet_later(void);")], "a new function"),
    (True, [("abi/base.h", "#define BITNET_FORBIDDEN 17 ",
             "#define BITNET_LATER 19\n#define BITNET_FORBIDDEN 17 ")], "a new status"),
    (True, [("abi/ops.h", "  X(LM_HEAD, 261, 1, 0, 1, 0, 0)",
            "  X(LM_HEAD, 261, 1, 0, 1, 0, 0) \\\n  X(LATER, 262, 1, 0, 1, 0, 0)")],
     "a new op"),
    (False, [INSERT], "a member in the middle"),
    (False, [INSERT, APPEND], "one in the middle and one at the end"),
    (False, [("abi/backend.h", "  bitnet_status (*quiesce)(",
              "  bitnet_status (*sooner)(bitnet_backend* self);\n  bitnet_status (*quiesce)(")], "a slot in the middle"),
    (False, [PARAMETER], "another parameter of a slot"),
    (False, [PARAMETER, APPEND], "and growth beside it"),
    (False, [("abi/info.h", "  uint32_t compute_units; ", "  int32_t compute_units; ")], "another type of a member"),
    (False, [("abi/info.h", LAST_OF_DEVICE_INFO, "")], "a member that went"),
    (False, [("abi/info.h", "  char arch[64]; ", "  char arch[32]; ")], "a shorter array"),
    (False, [("abi/base.h", "  uint64_t size;\n} bitnet_str;", "  uint64_t size;\n  uint64_t more;\n} bitnet_str;")],
     "growth of what lies inside other structs"),
    (False, [("abi/packed.h", "typedef struct bitnet_packed_info {\n  uint32_t struct_size;",
              "typedef struct bitnet_packed_info {\n  uint32_t struct_size;\n  uint64_t more;")],
     "an optional interface, which the entry does not lead to"),
    (False, [("abi/host.h", "(*cancelled)(void* self, uint64_t token)", "(*cancelled)(void* self, uint32_t token)")],
     "what the host offers"),
    (False, [("bitnet.h", CLOSE, CLOSE.replace(");", ", int32_t now);"))], "another parameter of a function"),
    (False, [("bitnet.h", CLOSE, "")], "a function that went"),
    (False, [("abi/base.h", "#define BITNET_TIMEOUT 11", "#define BITNET_TIMEOUT 12")], "a status with another value"),
    (False, [("abi/ops.h", "X(SILU, 12,", "X(SILU, 14,")], "an op with another number"),
    (True, [("abi/ops.h", "X(SILU, 12, 1, 0, 1, 0, 0)", "X(SILU, 12, 1, 0, 1, 1, 2)")], "more attributes of an op"),
    (False, [("abi/ops.h", "X(ROPE, 6, 1, 1, 1, 4, 2)", "X(ROPE, 6, 1, 1, 1, 4, 1)")], "one attribute less of an op"),
    (False, [("abi/ops.h", "X(SILU, 12, 1, 0, 1, 0, 0)", "X(SILU, 12, 1, 1, 1, 0, 0)")], "another weight of an op"),
]


def build_anchor(folder, edits):
    """Headers with the edits, and the anchor made of them."""
    include = folder / "include"
    shutil.copytree(ROOT / "abi/include", include)
    for name, old, new in edits:
        file = include / "bitnet" / name
        text = file.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{name} has {text.count(old)} times: {old}")
        file.write_text(text.replace(old, new), encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "tests/abi/layout_rows.py", *sorted(include.rglob("*.h")),
                    "--output", folder / "layout_rows.inc"], check=True)
    anchor = folder / "libbitnet-abi-anchor.so"
    subprocess.run([compiler, "-std=c11", "-g", "-O0", "-fPIC", "-shared", f"-I{include}", f"-I{folder}",
                    ROOT / "tests/abi/anchor.c", "-o", anchor], check=True)
    return include, anchor


def build_library(folder, functions):
    library = folder / "libbitnet.so"
    subprocess.run([compiler, "-fPIC", "-shared", "-Wl,-soname,libbitnet.so.0", "-x", "c", "-", "-o", library],
                   input="".join(f"void {name}(void) {{}}\n" for name in functions), text=True, check=True)
    return library


def gate(*arguments):
    return subprocess.run([sys.executable, GATE, *arguments], check=False, capture_output=True, text=True)


class Gate(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.baselines = self.folder / "baselines"
        self.baselines.mkdir()
        self.library = build_library(self.folder, ["bitnet_one", "bitnet_two"])
        (self.folder / "old").mkdir()
        include, anchor = build_anchor(self.folder / "old", [])
        done = self.run_gate(include, anchor, self.library, "--update")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.old = include, anchor

    def run_gate(self, include, anchor, library, *more):
        return gate("--headers", include, "--anchor", anchor, "--library", library,
                    "--baselines", self.baselines, *more)

    def test_changes_that_are_no_addition_are_rejected(self):
        for number, (passes, edits, why) in enumerate(ROWS):
            with self.subTest(why):
                folder = self.folder / str(number)
                folder.mkdir()
                done = self.run_gate(*build_anchor(folder, edits), self.library)
                self.assertEqual(done.returncode, 0 if passes else 1, why + "\n" + done.stdout + done.stderr)

    def test_a_removed_symbol_is_rejected(self):
        (self.folder / "more").mkdir()
        more = build_library(self.folder / "more", ["bitnet_one", "bitnet_two", "bitnet_three"])
        self.assertEqual(self.run_gate(*self.old, more).returncode, 0)
        (self.folder / "less").mkdir()
        less = build_library(self.folder / "less", ["bitnet_one"])
        done = self.run_gate(*self.old, less)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bitnet_two", done.stdout)

    def test_a_suppression_would_hide_other_changes(self):
        version = subprocess.run(["abidiff", "--version"], check=False, capture_output=True, text=True).stdout
        if "2.2" not in version:
            self.skipTest(f"known of libabigail 2.2 only, not of {version.strip()}")
        rule = self.folder / "append.suppr"
        rows = [  # of suppressions, edits, whether abidiff lets it pass, why
            ("type_kind = struct", [APPEND], True, "what it is for"),
            ("type_kind = struct", [INSERT], False, "and what it still sees"),
            ("type_kind = struct", [INSERT, APPEND], False, "both at once"),
            ("type_kind = struct", [PARAMETER], True, "but another parameter is hidden: the gate has no such file"),
            ("", [APPEND], False, "without a kind, 2.2 ignores the rule"),
        ]
        for number, (kind, edits, passes, why) in enumerate(rows):
            with self.subTest(why):
                rule.write_text(f"[suppress_type]\n{kind}\nhas_data_member_inserted_at = end\n", encoding="utf-8")
                folder = self.folder / f"suppressed-{number}"
                folder.mkdir()
                _, anchor = build_anchor(folder, edits)
                done = subprocess.run(["abidiff", "--suppressions", rule, self.baselines / "anchor.abixml", anchor],
                                      check=False, capture_output=True, text=True)
                self.assertEqual(done.returncode == 0, passes, done.stdout)


if __name__ == "__main__":
    if not shutil.which("abidiff"):
        print("skip: there is no abidiff (package abigail-tools)")
        sys.exit(77)
    compiler = sys.argv.pop(1)
    unittest.main(verbosity=2)
