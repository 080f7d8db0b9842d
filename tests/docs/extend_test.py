"""The pages docs/how-to/extend name files and tables that exist, and their lists are enough: the
examples of a command and of a backend are added to a copy of the tree, built and started."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/how-to/extend").glob("*.md"))
FOLDERS = "abi/ cmake/ common/ core/ docs/ host/ plugins/ scripts/ tests/".split()

HELLO = """
#include "commands/commands.hpp"
#include "basic/output.hpp"

namespace bitnet::host {

result<int> hello_command(const invocation& in) {
  const std::string name = in.positionals.empty() ? "world" : in.positionals.front();
  if (auto done = print("hello " + name + "\\n"); !done) return std::unexpected(done.error());
  return exit_code::ok;
}

}  // namespace bitnet::host
"""
# A part of the program that needs no libbitnet: what the row makes of the lists.
SHOW = """
#include <cstdio>

#include "settings/help.hpp"
#include "settings/completion.hpp"

int main() {
  using namespace bitnet::host;
  std::printf("%s%s", help_of_program().c_str(), help_of(*find_command("hello")).c_str());
  for (const char* shell : {"bash", "zsh", "fish"}) std::printf("%s", completion_for(shell)->c_str());
}
"""


def run(*words, **how):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **how)
    return done.returncode, done.stdout + done.stderr


class Pages(unittest.TestCase):
    def test_there_is_one_for_each_kind(self):
        self.assertEqual([page.stem for page in PAGES],
                         ["architecture", "backend", "command", "cpu-kernel", "dense-format", "faster-kernel", "gpu-driver",
                          "gpu-kernel", "kv-type", "op", "pre-tokenizer", "route", "sampler-stage", "ternary-format"])

    def test_what_they_name_exists(self):
        for page in PAGES:
            code = re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))
            paths = [c for c in code if c.startswith(tuple(FOLDERS)) and "<" not in c]
            self.assertTrue(paths, page.name)
            for path in paths:
                with self.subTest(f"{page.name}: {path}"):
                    gone = re.match(r"plugins/[\w-]+(?![\w.-])", path)  # a folder, no file
                    if gone and not (ROOT / gone[0]).is_dir():
                        self.skipTest(f"{gone[0]} is not in this tree")
                    self.assertTrue((ROOT / path.split()[0]).exists())

    def test_the_tables_have_their_names(self):
        for page, file, names in (
                ("command", "host/src/settings/command_list.hpp", ("BITNET_COMMANDS(X)",)),
                ("command", "host/src/settings/option_table.cpp", ("reporting =",)),
                ("ternary-format", "core/src/formats/ternary.hpp", ("BITNET_TERNARY_FORMS(X)",)),
                ("architecture", "core/src/model/architectures/list.hpp", ("BITNET_ARCHITECTURES(X)",)),
                ("architecture", "core/src/model/architectures/architecture.hpp",
                 ("struct architecture {", "(*read)", "(*weights)", "(*layer)", "(*lm_head)", " checkpoint =")),
                ("dense-format", "core/src/base/dense_formats.hpp", ("BITNET_DENSE_FORMATS(X)",)),
                ("dense-format", "plugins/sdk/include/bitnet/sdk/formats.hpp", ("format formats[]", "decode(")),
                ("sampler-stage", "common/tables/sampling.hpp", ("BITNET_SAMPLING_PARAMETERS(X)",)),
                ("sampler-stage", "tests/core/sampling/sampler_test.cpp", ("slow_distribution(",)),
                ("cpu-kernel", "plugins/cpu/kernels/variants.hpp", ("isa_forms[]",)),
                ("cpu-kernel", "plugins/cpu/CMakeLists.txt", ("bitnet_isa(",)),
                ("faster-kernel", "plugins/cpu/kernels/linear_ternary_avx2.cpp", ("constexpr uint64_t run = 10;",)),
                ("gpu-kernel", "plugins/gpu-common/kernel_list.hpp", ("BITNET_GPU_KERNELS_OF_ALL(X)",
                                                                      "BITNET_GPU_KERNELS_OF_SOME(X)")),
                ("gpu-kernel", "plugins/gpu-common/simt_kernels.cpp", ("part_of(",)),
                ("gpu-kernel", "plugins/cuda/CMakeLists.txt", ("parts_built", "code_of_${part}")),
                ("gpu-kernel", "plugins/cuda/kernel_table.cpp", ("form_index", "grid_of(", "alternatives_for(",
                                                                 "forms_by_doubles(")),
                ("gpu-driver", "plugins/gpu-common/driver.hpp", ("virtual ",)),
                ("gpu-driver", "plugins/gpu-common/kernels.cmake", ("bitnet_gpu_texts",)),
                ("op", "abi/include/bitnet/abi/ops.h", ("BITNET_OP_LIST(X)",)),
                ("op", "plugins/gpu-common/names.cpp", ("newest_primitive",)),
                ("kv-type", "common/tables/kv_types.hpp", ("BITNET_KV_TYPES(X)",)),
                ("kv-type", "tests/conformance/model/kv_types.hpp", ("all_kv_types[]",)),
                ("kv-type", "plugins/gpu-common/kernels.hpp", ("BITNET_GPU_KV_TYPES(X)",)),
                ("route", "host/src/serve/serve_routes.cpp", ("serve_routes(",)),
                ("route", "host/src/serve/serving.hpp", ("answer_by(", "answer_with_model(", "administer(", "answer_of(")),
                ("pre-tokenizer", "tests/reference/tokenizers_test.py", ("RULES = {",))):
            with self.subTest(f"{page}: {file}"):
                self.assertIn(f"`{file}`", (ROOT / f"docs/how-to/extend/{page}.md").read_text(encoding="utf-8"))
                if file.startswith("plugins/") and not ROOT.joinpath(*file.split("/")[:2]).is_dir():
                    continue
                for name in names:
                    self.assertIn(name, (ROOT / file).read_text(encoding="utf-8"))


class Examples(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_a_command_is_a_row_and_a_file(self):
        changed = self.folder / "host"
        (changed / "settings").mkdir(parents=True)
        rows = (ROOT / "host/src/settings/command_list.hpp").read_text(encoding="utf-8")
        self.assertIn("  X(version,", rows)
        (changed / "settings/command_list.hpp").write_text(rows.replace(
            "  X(version,", '  X(hello, "[NAME]", "", "greets", "Greets NAME.\\n") \\\n  X(version,'), encoding="utf-8")
        (changed / "hello.cpp").write_text(HELLO, encoding="utf-8")
        (changed / "show.cpp").write_text(SHOW, encoding="utf-8")
        includes = [f"-I{path}" for path in (changed, ROOT / "host/src", ROOT / "common", ROOT / "abi/include")]
        compiler = [COMPILER, "-std=c++23", "-O0", *includes]
        # Dispatch takes the function whose signature the file has.
        for source in (ROOT / "host/src/main.cpp", changed / "hello.cpp"):
            self.assertEqual(run(*compiler, "-Wall", "-Werror", "-fsyntax-only", source), (0, ""), source.name)
        settings = [ROOT / f"host/src/settings/{name}.cpp"
                    for name in ("option_table", "option_names", "help", "completion", "suggest")]
        self.assertEqual(run(*compiler, "-o", self.folder / "show", changed / "show.cpp", *settings,
                             ROOT / "host/src/basic/result.cpp", "-lfmt"), (0, ""))
        code, shown = run(self.folder / "show")
        self.assertEqual(code, 0)
        for part in ("\n  hello  ", "Usage: bitnet hello [NAME]", "Greets NAME.", "'hello:greets'"):
            self.assertIn(part, shown)

    def test_a_backend_is_a_folder(self):
        if not (ROOT / "plugins/null").is_dir():
            self.skipTest("plugins/null is not in this tree")
        tree, build = self.folder / "tree", self.folder / "build"
        shutil.copytree(ROOT, tree, symlinks=True, ignore=lambda folder, names: [
            n for n in names if n in (".git", "build", "docs", "models", "corpus", "__pycache__")
            or (pathlib.Path(folder).name == "plugins" and n not in ("sdk", "null"))])
        shutil.copytree(tree / "plugins/null", tree / "plugins/mine")
        for kind in ("c", "yaml"):
            (tree / f"plugins/mine/null.{kind}").rename(tree / f"plugins/mine/mine.{kind}")
        for name in ("mine.c", "mine.yaml", "CMakeLists.txt"):
            file = tree / "plugins/mine" / name
            file.write_text(re.sub(r"\bnull\b", "mine", file.read_text(encoding="utf-8"))
                            .replace(" LEVEL none", ""), encoding="utf-8")
        code, said = run("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DBITNET_CORE=OFF",
                         "-DCMAKE_C_COMPILER_LAUNCHER=", f"-DCMAKE_CXX_COMPILER={COMPILER}")
        self.assertEqual(code, 0, said)
        code, said = run("cmake", "--build", build, "--target", "bitnet-backend-mine")
        self.assertEqual(code, 0, said)
        self.assertEqual([f.name for f in build.rglob("libbitnet-backend-mine.so")], ["libbitnet-backend-mine.so"])
        self.assertEqual(len(list(build.rglob("50-mine.yaml"))), 1)
        _, tests = run("ctest", "--test-dir", build, "-N")
        for name in ("abi.note.mine", "parity.mine.program", "parity.mine.hostile", "parity.mine.abi_ops"):
            self.assertIn(f": {name}\n", tests)
        self.assertNotIn("parity.null.", tests)
        code, said = run("ctest", "--test-dir", build, "-R", r"^abi\.note\.mine$", "--no-tests=error")
        self.assertEqual(code, 0, said)


if __name__ == "__main__":
    COMPILER = os.environ.get("CXX", "c++")
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        COMPILER = sys.argv.pop(1)
    unittest.main(verbosity=2)
