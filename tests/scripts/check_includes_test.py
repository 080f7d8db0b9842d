"""scripts/check-includes must see each planted violation and nothing else."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check-includes"

TREE = {
    "abi/include/bitnet/abi/base.h": "",
    "abi/include/bitnet/bitnet.h": '#include "bitnet/abi/base.h"',
    "core/CMakeLists.txt": """
# Layer: results and files
bitnet_core_module(base LINK Threads::Threads)
# Layer: models and plugins
bitnet_core_module(gguf DEPENDS base)
bitnet_core_module(model DEPENDS gguf   # a comment with DEPENDS engine
  LINK json)
bitnet_core_module(engine DEPENDS model)
bitnet_core_module(plugin/trust DEPENDS base)
bitnet_core_module(plugin/loading DEPENDS plugin/trust)
bitnet_core_module(plugin DEPENDS plugin/loading plugin/trust)
# Layer: what computes
bitnet_core_module(probe DEPENDS plugin)
""",
    "core/src/README.md": """
| layer | modules |
|---|---|
| results and files | `base/` |
| models and plugins | `gguf/`, `model/`, `engine/`, `plugin/trust/`, `plugin/loading/`, `plugin/` |
| what computes | `probe/` |
""",
    "common/files/new_file.hpp": "#include <string>",
    "core/src/base/result.hpp": '#include "bitnet/abi/base.h"',
    "core/src/gguf/types.hpp": '#include "base/result.hpp"',
    "core/src/model/model.hpp": '#include "gguf/types.hpp"',
    "core/src/engine/engine.hpp": '#include "model/model.hpp"',
    "core/src/plugin/trust/trust.hpp": '#include "base/result.hpp"',
    "core/src/plugin/loading/backend.hpp": '#include "plugin/trust/trust.hpp"',
    "core/src/probe/probe.hpp": '#include "plugin/loading/backend.hpp"',
    "plugins/sdk/include/bitnet/sdk/guard.hpp": '#include "bitnet/abi/base.h"',
    "plugins/sdk/include/bitnet/sdk/interpreter.hpp": '#include "bitnet/sdk/interpreter/kernel.hpp"',
    "plugins/sdk/include/bitnet/sdk/interpreter/kernel.hpp": '#include "bitnet/sdk/guard.hpp"',
    "plugins/cpu/kernels/dot.hpp": "",
    "plugins/cuda/kernels/gemv.hpp": "",
    "plugins/gpu-common/driver.hpp": '#include "bitnet/sdk/guard.hpp"',
    "core/src/api/handles.hpp": "",
    "host/CMakeLists.txt": """
# Layer: values
bitnet_host_module(basic LINK Threads::Threads)
# Layer: what a user sees
bitnet_host_module(settings DEPENDS basic PRIVATE yaml-cpp)
bitnet_host_module(log DEPENDS settings   # a comment with DEPENDS commands
  PRIVATE spdlog)
bitnet_host_module(commands DEPENDS log
  ALONE serve.cpp)
""",
    "host/src/README.md": "| values | `basic/` |\n| what a user sees | `settings/`, `log/`, `commands/` |\n",
    "host/src/basic/json.hpp": "#include <string>",
    "host/src/settings/option.hpp": '#include "basic/json.hpp"',
    "host/src/log/log.hpp": '#include "settings/option.hpp"',
    "host/src/commands/commands.hpp": '#include "log/log.hpp"',
    "host/src/main.cpp": '#include "bitnet/bitnet.h"\n#include "commands/commands.hpp"',
    "host/src/main.hpp": "",
    "tests/conformance/kit.hpp": "",
}

# file, its include, allowed, why
ROWS = [
    ("core/src/engine/a.cpp", '"gguf/types.hpp"', True, "dependencies are transitive"),
    ("core/src/engine/a.cpp", '"engine.hpp"', True, "one's own folder"),
    ("core/src/gguf/a.cpp", '"model/model.hpp"', False, "an arrow upwards"),
    ("core/src/model/a.cpp", '"engine/engine.hpp"', False, "DEPENDS in a comment is no arrow"),
    ("core/src/gguf/a.cpp", '"../model/model.hpp"', False, "a relative path leads out, too"),
    ("core/src/gguf/a.cpp", "<model/model.hpp>", False, "angle brackets hide nothing"),
    ("core/src/base/a.cpp", '"bitnet/sdk/guard.hpp"', False, "core knows no plugin code"),
    ("core/src/base/a.cpp", '"../../../plugins/cpu/kernels/dot.hpp"', False, "nor a kernel"),
    ("core/src/other/a.cpp", '"base/result.hpp"', False, "a module without a line in CMake"),
    ("core/src/api/a.cpp", '"engine/engine.hpp"', True, "the outside of the library sees all"),
    ("core/src/api/a.cpp", '"bitnet/sdk/guard.hpp"', False, "of core"),
    ("core/src/engine/a.cpp", '"api/handles.hpp"', False, "and no module sees the api"),
    ("core/src/plugin/loading/a.cpp", '"plugin/trust/trust.hpp"', True, "a module in a folder"),
    ("core/src/plugin/trust/a.cpp", '"plugin/loading/backend.hpp"', False, "beside another"),
    ("plugins/cpu/a.cpp", '"kernels/dot.hpp"', True, "a plugin's own folder"),
    ("plugins/cpu/a.cpp", '"bitnet/sdk/guard.hpp"', True, "the SDK"),
    ("plugins/cpu/a.cpp", '"kernels/gemv.hpp"', False, "another plugin's header"),
    ("plugins/cpu/a.cpp", '"base/result.hpp"', False, "plugins never include core"),
    ("plugins/cuda/kernels/a.cuh", '"base/result.hpp"', False, "nor what is compiled for a GPU"),
    ("plugins/cuda/a.cpp", '"gpu-common/driver.hpp"', True, "what GPU backends share"),
    ("plugins/cpu/a.cpp", '"bitnet/sdk/interpreter.hpp"', True, "with its interpreter"),
    ("plugins/gpu-common/a.cpp", '"bitnet/sdk/interpreter/kernel.hpp"', False, "host memory's"),
    ("plugins/sdk/include/bitnet/sdk/compute/a.hpp", '"bitnet/sdk/interpreter/kernel.hpp"', False,
     "what all backends share knows nothing of host memory's"),
    ("plugins/sdk/include/bitnet/sdk/reference/a.hpp", '"bitnet/sdk/interpreter/kernel.hpp"', True,
     "ready kernels of the interpreter"),
    ("plugins/gpu-common/a.cpp", '"kernels/gemv.hpp"', False, "which knows none of them"),
    ("plugins/gpu-common/a.cpp", '"base/result.hpp"', False, "nor core"),
    ("plugins/sdk/include/bitnet/sdk/b.hpp", '"gpu-common/driver.hpp"', False, "nor does the SDK"),
    ("core/src/base/a.cpp", '"gpu-common/driver.hpp"', False, "and core knows no GPU"),
    ("plugins/sdk/include/bitnet/sdk/b.hpp", '"base/result.hpp"', False, "nor does the SDK"),
    ("plugins/cpu/a.cpp", "  #  include   \"base/result.hpp\"", False, "spaces hide nothing"),
    ("abi/include/bitnet/abi/b.h", '"bitnet/sdk/guard.hpp"', False, "abi includes nothing"),
    ("host/src/a.cpp", '"bitnet/abi/base.h"', True, "the public contract"),
    ("host/src/a.cpp", '"files/new_file.hpp"', True, "what library and program do alike"),
    ("core/src/gguf/a.cpp", '"files/new_file.hpp"', True, "in the library, too"),
    ("common/files/a.cpp", '"base/result.hpp"', False, "which knows nothing of it"),
    ("common/files/a.cpp", '"bitnet/abi/base.h"', False, "nor of the contract"),
    ("plugins/cpu/a.cpp", '"files/new_file.hpp"', False, "and is not for plugins"),
    ("host/src/a.cpp", '"base/result.hpp"', False, "the host is a stranger to core"),
    ("host/src/commands/a.cpp", '"basic/json.hpp"', True, "dependencies are transitive here, too"),
    ("host/src/log/a.cpp", '"log.hpp"', True, "a folder of the program includes itself"),
    ("host/src/log/a.cpp", '"bitnet/bitnet.h"', True, "and the public contract"),
    ("host/src/log/a.cpp", '"files/new_file.hpp"', True, "and what the library does alike"),
    ("host/src/a.cpp", '"basic/json.hpp"', True, "what is beside main.cpp includes all folders"),
    ("host/src/log/a.cpp", '"../main.hpp"', False, "and no folder includes it"),
    ("host/src/settings/a.cpp", '"log/log.hpp"', False, "a higher folder"),
    ("host/src/settings/a.cpp", '"../log/log.hpp"', False, "by a relative path"),
    ("host/src/log/a.cpp", '"commands/commands.hpp"', False, "DEPENDS in a comment of host"),
    ("host/src/log/a.cpp", '"engine/engine.hpp"', False, "no folder of the program includes core"),
    ("host/lint/main.cpp", '"basic/json.hpp"', False, "another program"),
    ("core/src/engine/a.cpp", '"basic/json.hpp"', False, "core knows no program"),
    ("docs/how-to/a.c", '"base/result.hpp"', False, "so is an example"),
    ("docs/tutorials/a/b.cpp", '"bitnet/sdk/guard.hpp"', True, "of which some show the SDK"),
    ("tests/conformance/a.cpp", '"kit.hpp"', True, "the kit's own header"),
    ("tests/conformance/a.cpp", '"base/result.hpp"', False, "the kit sees only the contract"),
    ("tests/core/a_test.cpp", '"base/result.hpp"', True, "a unit test sees its subject"),
    ("core/src/base/a.cpp", "<elf.h>", True, "a system header"),
]


def run(root):
    return subprocess.run([sys.executable, SCRIPT, "--root", root], capture_output=True, text=True,
                          check=False)


def plant(root, files):
    for name, text in files.items():
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")


class Arrows(unittest.TestCase):
    def test_a_clean_tree_passes(self):
        with tempfile.TemporaryDirectory() as root:
            plant(root, TREE)
            done = run(root)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_forbidden_includes_are_reported_with_their_line(self):
        for file, include, fine, why in ROWS:
            with self.subTest(why), tempfile.TemporaryDirectory() as root:
                plant(root, TREE)
                line = include if "include" in include else "#include " + include
                plant(root, {file: line})
                done = run(root)
                self.assertEqual(done.returncode, 0 if fine else 1, why + "\n" + done.stdout)
                if not fine:
                    self.assertIn(f"{file}:1: ", done.stdout)

    def test_modules_that_depend_in_a_circle_are_rejected(self):
        for part in ("core", "host"):
            with self.subTest(part), tempfile.TemporaryDirectory() as root:
                plant(root, TREE)
                plant(root, {f"{part}/CMakeLists.txt": f"bitnet_{part}_module(a DEPENDS b)\n"
                                                       f"bitnet_{part}_module(b DEPENDS a)"})
                done = run(root)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"modules of {part} depend in a circle: a -> b -> a", done.stderr)

    def rejects(self, part, changed, extra, message):
        with self.subTest(message), tempfile.TemporaryDirectory() as root:
            plant(root, TREE)
            plant(root, {f"{part}/CMakeLists.txt": changed, **extra})
            done = run(root)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(f"{part}/CMakeLists.txt: {message}", done.stdout)

    def test_wrong_rows_are_rejected(self):
        host, core = TREE["host/CMakeLists.txt"], TREE["core/CMakeLists.txt"]
        for part, changed, extra, message in (
                ("host", host.replace("commands DEPENDS log", "commands DEPENDS log basic"), {},
                 "commands DEPENDS basic, but includes no file of it"),
                ("host", host + "bitnet_host_module(serve DEPENDS log)", {}, "serve: there is no host/src/serve"),
                ("host", host, {"host/src/serve/a.cpp": "#include <string>"}, "host/src/serve has no row"),
                ("core", core.replace("engine DEPENDS model", "engine DEPENDS model base"), {},
                 "engine DEPENDS base, but includes no file of it"),
                ("core", core.replace("engine DEPENDS model", "engine DEPENDS model plugin"), {},
                 "engine DEPENDS plugin, but includes no file of it"),
                ("core", core + "bitnet_core_module(kv DEPENDS base)", {}, "kv: there is no core/src/kv"),
                ("core", core, {"core/src/kv/a.cpp": "#include <string>"}, "core/src/kv has no row")):
            self.rejects(part, changed, extra, message)

    def test_rows_and_tables_that_differ_from_the_layers_are_rejected(self):
        core, table = TREE["core/CMakeLists.txt"], TREE["core/src/README.md"]
        row, head = "bitnet_core_module(gguf DEPENDS base)\n", "# Layer: results and files\n"
        for changed, extra, message in (
                (core.replace(row, "") + row, {}, "model DEPENDS gguf, which is not above it"),
                (core.replace(head, ""), {}, "base is below no heading"),
                (core.replace(row, "").replace("# Layer: models", row + "# Layer: models"), {},
                 "the layer 'results and files' is ['base', 'gguf'], and in src/README.md ['base']"),
                (core, {"core/src/README.md": table.replace("`gguf/`, ", "")}, "the layer 'models and plugins' is"),
                (core, {"core/src/README.md": table.replace("what computes", "other words")}, "its layers are"),
                (core, {"core/src/README.md": ""}, "its layers are")):
            self.rejects("core", changed, extra, message)


if __name__ == "__main__":
    unittest.main()
