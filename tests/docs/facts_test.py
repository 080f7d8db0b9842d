"""Lists that stand in the code and in the documentation say the same."""

import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


# Where a plugin reads a variable itself: one of NVTX's, by which profilers say where they are; and those of ROCm that
# hide devices or rename them, for messages.
OF_NVTX = "plugins/cuda/nvtx.cpp"
READ_THEMSELVES = {OF_NVTX, "plugins/rocm/library.cpp"}


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def page(name):
    return text(f"docs/reference/{name}.md")


def variables_read():
    """Those whose names stand in the code of the library and of the program."""
    read = set(re.findall(r'"([A-Z][A-Z0-9_]*[A-Z0-9])"', text("core/src/base/environment.cpp")))
    for file in (ROOT / "host/src").rglob("*.cpp"):
        read |= set(re.findall(r'\b(?:get|xdg)\("([A-Z][A-Z0-9_]*)"', file.read_text(encoding="utf-8")))
    return read


def variables_on_page():
    """All that stand in backticks, also with a `$` before or a value behind."""
    return set(re.findall(r"`\$?([A-Z][A-Z0-9_]*[A-Z0-9])(?:[=/][^`]*)?`", page("environment")))


def knobs_of_sampling():
    """[(type, name, default, option)] of the rows that common/knobs has."""
    rows = re.sub(r"\\\n", " ", text("common/knobs/sampling.hpp")).split("define BITNET_SAMPLING_KNOBS(X)")[1]
    return re.findall(r'X\(([a-z0-9_]+), ([a-z_]+), (-?[0-9.]+), [^"]*"[^"]*",\s+"([a-z-]+)"', rows)


def options_of_sampling():
    """{option: its default} of the same rows."""
    return {option: initial for _, _, initial, option in knobs_of_sampling()}


def variables_of_options():
    table = text("host/src/settings/option_table.cpp")
    options = re.findall(r'\{\.name = "([a-z0-9-]+)"', table)
    for aliases in re.findall(r'\.aliases = "([^"]+)"', table):
        options += [name.removeprefix("--") for name in aliases.split() if name.startswith("--")]
    return {"BITNET_" + option.upper().replace("-", "_") for option in [*options, *options_of_sampling()]}


def backend_of(file):
    return file.parent.name.upper().replace("-", "_")


def variables_of_plugins():
    """BITNET_<BACKEND>_<KEY> for each setting that a plugin of this tree asks for."""
    own = {f"BITNET_{backend_of(file)}_{key.upper()}" for file in ROOT.glob("plugins/*/*.cpp")
           for key in re.findall(r'\bparameter\("([a-z_]+)"\)', file.read_text(encoding="utf-8"))}
    shared = re.findall(r'^ +\{\.key = "([a-z_]+)",', text("plugins/gpu-common/pool_settings.cpp"), re.MULTILINE)
    return own | {f"BITNET_{backend_of(file)}_{key.upper()}" for file in ROOT.glob("plugins/*/CMakeLists.txt")
                  for key in shared if "LINK bitnet_gpu_common" in (said := file.read_text(encoding="utf-8"))
                  or "PUBLIC bitnet_gpu_common" in said}


class Facts(unittest.TestCase):
    def test_backend_codes(self):
        in_code = set(re.findall(r'"(BN-[A-Z-]+)"', text("core/src/plugin/codes/codes.hpp")))
        on_page = set(re.findall(r"^\| `(BN-[A-Z-]+)`", page("backend-codes"), re.MULTILINE))
        self.assertGreater(len(in_code), 10)
        self.assertEqual(in_code, on_page)

    def test_backends_of_the_readme(self):
        """Its table has each backend with a device, which has a changelog of its own."""
        table = text("README.md").split("\n## Backends\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)
        self.assertEqual({file.parent.name for file in ROOT.glob("plugins/*/CHANGELOG.md")} - set(rows), set())

    def test_wording(self):
        rows = re.findall(r'X\((\w+), "([^"]*)",\s*"([^"]*)"\)', text("common/knobs/wording.hpp").replace("\\\n", ""))
        self.assertGreater(len(rows), 30)
        on_page = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", page("wording"), re.MULTILINE)
        self.assertEqual(rows, on_page)
        names = {library for _, library, _ in rows if re.fullmatch(r"\w+_\w+", library)}
        for file in [*(ROOT / "core/src").rglob("*.cpp"), *(ROOT / "plugins").rglob("*.cpp")]:
            in_texts = re.findall(r'"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"', file.read_text(encoding="utf-8"))
            said = {word for one in in_texts for word in re.findall(r"\w+", one)} & names
            self.assertEqual(said, set(), f"{file}: say(word::...) in place of the name")

    def test_exit_codes(self):
        in_code = set(re.findall(r"inline constexpr int \w+ = (\d+);", text("host/src/basic/result.hpp")))
        on_page = set(re.findall(r"^\| (\d+) \|", page("exit-codes"), re.MULTILINE))
        self.assertGreater(len(in_code), 5)
        self.assertEqual(in_code, on_page)

    def test_options(self):
        in_code = options_of_sampling()
        self.assertGreater(len(in_code), 7)
        for name, rest in re.findall(r'\{\.name = "([a-z0-9-]+)"(.*?)\.help', re.sub(
                r"\s+", " ", text("host/src/settings/option_table.cpp"))):
            initial = re.search(r'\.initial = "([^"]*)"', rest)
            in_code[name] = initial.group(1).replace("true", "on") if initial else ""
        on_page = {}
        for line in page("cli").splitlines():
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
            if len(cells) == 6 and cells[1].startswith("`--"):
                on_page[cells[1].split("`")[1].removeprefix("--")] = cells[3]
        self.assertGreater(len(in_code), 20)
        self.assertEqual(in_code, on_page)

    def test_knobs_of_python(self):
        """Python's Generating has each knob of sampling, with the type of its row."""
        tree = ast.parse(text("python/src/bitnet/_asked.py"))
        (generating,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Generating"]
        in_python = {node.target.id: ast.unparse(node.annotation) for node in generating.body if isinstance(node, ast.AnnAssign)}
        knobs = {name: {"float": "float", "int32_t": "int"}[kind] for kind, name, _, _ in knobs_of_sampling()}
        self.assertEqual(len(knobs), text("common/knobs/sampling.hpp").count("  X("), "a row was not read")
        self.assertEqual(knobs, {name: in_python.get(name) for name in knobs})

    def test_knobs_of_requests(self):
        """The page of requests names each knob of sampling as a member of a body."""
        rows = re.findall(r"^\| (`.*?) \| texts \|", text("docs/how-to/answer-many.md"), re.MULTILINE)
        on_page = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
        self.assertEqual({name for _, name, _, _ in knobs_of_sampling()} - on_page, set())

    def test_variables(self):
        read, on_page = variables_read(), variables_on_page()
        self.assertLessEqual({"BITNET_DEVICE", "XDG_CACHE_HOME", "HOME", "LANG"}, read)
        self.assertEqual(read - on_page, set(), "read, and not on the page")
        known = read | variables_of_options() | variables_of_plugins()
        if not (ROOT / OF_NVTX).is_file() or '"NVTX_INJECTION64_PATH"' in text(OF_NVTX):
            known.add("NVTX_INJECTION64_PATH")
        # Of backends that were taken out of the tree.
        known |= {name for name in on_page if (plugin := re.match(r"BITNET_(CPU|CUDA|LEVEL_ZERO|OPENCL|ROCM|VULKAN|WEBGPU)_", name))
                  and not (ROOT / "plugins" / plugin[1].lower().replace("_", "-")).is_dir()}
        self.assertEqual(on_page - known, set(), "on the page, and read nowhere")

    def test_manual_pages_of_backends(self):
        """A backend's page has the variables of ours that the page of all variables says it reads, and no others."""
        pages = {file.stem: file.read_text(encoding="utf-8") for file in ROOT.glob("plugins/*/*.7")}
        readers = {name: set(re.findall(rf"^\| `([A-Z0-9_]+)` \|.*\| {name} backend \|$", page("environment"),
                                        re.MULTILINE)) for name in pages}
        for plugin in ROOT.glob("plugins/*/"):
            if any(name.startswith(f"BITNET_{plugin.name.upper()}_") for name in variables_of_plugins()):
                self.assertIn(plugin.name, pages, f"there is no plugins/{plugin.name}/{plugin.name}.7")
        for name, text_of_page in pages.items():
            with self.subTest(name):
                on_page = set(re.findall(r"^\\fB([A-Z0-9_]+)\\fR=", text_of_page, re.MULTILINE))
                self.assertEqual(readers[name] - on_page, set(), f"plugins/{name}/{name}.7 lacks it")
                self.assertEqual({one for one in on_page if one.startswith("BITNET_")} - readers[name], set(),
                                 "reference/environment.md does not say that this backend reads it")

    def test_manual_page_of_all_backends(self):
        """It has the folders of manifests in the order of the reference."""
        listed = re.findall(r"^\d\. (.*)$", page("manifest"), re.MULTILINE)
        text_of_page = (ROOT / "host/bitnet-backends.7").read_text(encoding="utf-8")
        on_page = re.search(r"^\.nf\n(\$XDG.*?)^\.fi$", text_of_page, re.MULTILINE | re.DOTALL)[1].splitlines()
        self.assertEqual(on_page, [one.replace("`", "").removesuffix(", separated by colons") for one in listed])

    def test_variables_are_read_in_two_files(self):
        readers = {str(file.relative_to(ROOT)) for folder in ("core/src", "host/src", "plugins")
                   for kind in ("*.cpp", "*.hpp", "*.c", "*.h") for file in (ROOT / folder).rglob(kind)
                   if re.search(r"\b(secure_)?getenv\(|\benviron\b",
                                file.read_text(encoding="utf-8"))}
        self.assertEqual(readers - READ_THEMSELVES, {"core/src/base/environment.cpp",
                                                    "host/src/settings/environment.cpp"})

    def test_instruction_sets(self):
        if not (ROOT / "plugins/cpu").is_dir():
            self.skipTest("plugins/cpu is not in this tree")
        table = text("plugins/cpu/kernels/variants.hpp").split("isa_forms[] = {")[1]
        in_code = set(re.findall(r'^    \{\.name = "([a-z0-9-]+)",', table, re.MULTILINE))
        row = re.search(r"^\| `BITNET_CPU_ISA` \|.*$", page("environment"), re.MULTILINE).group()
        self.assertGreater(len(in_code), 5)
        of_doctor = re.findall(r'^    \{"([a-z0-9-]+)", "[a-z0-9_ ]*"\},$', text("host/src/doctor/processor.cpp"),
                               re.MULTILINE)
        self.assertEqual(in_code, set(of_doctor), "kernel_forms of bitnet doctor")
        self.assertEqual(in_code, set(re.findall(r"`([a-z0-9-]+)`", row)))
        of_plans = re.search(r'\{"cpu", "isa", "([a-z0-9|-]+)"\}', text("host/src/plan/pins.cpp")).group(1)
        self.assertEqual(in_code, set(of_plans.split("|")), "all_forms of plans")
        row = re.search(r"^\| `cpu\.isa` \| (.*?)\. ", page("plan-file"), re.MULTILINE).group(1)
        self.assertEqual(in_code, set(re.findall(r"`([a-z0-9-]+)`", row)), "reference/plan-file.md")
        of_manual = re.search(r"^\\fBBITNET_CPU_ISA\\fR=.*\n(.*\n.*)", text("plugins/cpu/cpu.7"), re.MULTILINE).group(1)
        self.assertEqual(in_code - set(re.findall(r"[a-z0-9-]+", of_manual.replace("\\-", "-"))), set(), "plugins/cpu/cpu.7")
        suffixes = set(re.findall(r"^ *bitnet_isa\((\w+) ", text("plugins/cpu/CMakeLists.txt"), re.MULTILINE)) | {"scalar"}
        sets = re.search(r"^- \*\*Instruction sets\*\*: (.*?)^- ", text("plugins/cpu/kernels/README.md"), re.MULTILINE | re.DOTALL).group(1)
        self.assertEqual(suffixes, set(re.findall(r"`_(\w+)`", sets)), "plugins/cpu/kernels/README.md")

    def test_pre_tokenizers(self):
        rows = re.findall(r"\.names = \{(.*?)\}", text("core/src/tokenizer/pre_rules.cpp"), re.DOTALL)
        in_code = {name for row in rows for name in re.findall(r'"([^"]+)"', row)}
        self.assertGreater(len(in_code), 80)
        on_page = {name for span in re.findall(r"`([^`\n]+)`", page("tokenizers")) for name in span.split()}
        self.assertEqual(in_code - on_page, set(), "names in pre_rules.cpp that the page lacks")

    def test_architectures(self):
        folder = ROOT / "core/src/model/architectures"
        rows = re.findall(r"^  X\((\w+)\)", (folder / "list.hpp").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertGreater(len(rows), 5)
        code = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.cpp")))
        names = dict(re.findall(r'rows::(\w+) =\s*(?:\w+\(|\{\s*\.name = )"([^"]+)"', code))
        self.assertEqual(set(names), set(rows), "rows of list.hpp, and files that define one")
        table = page("models").split("## Architectures")[1].split("\n## ")[0]
        self.assertEqual(set(names.values()) - set(re.findall(r"`([^`]+)`", table)), set(), "not on the page")

    def test_ternary_forms(self):
        rows = re.search(r"#define BITNET_TERNARY_FORMS\(X\)(.*?)\n\n", text("core/src/formats/ternary.hpp"),
                         re.DOTALL).group(1)
        forms = re.findall(r"X\((\w+), (\w+)\)", rows)
        self.assertGreater(len(forms), 12)
        named = text("core/src/gguf/types.cpp")
        tested = "".join(text(f"tests/core/formats/{name}_test.cpp") for name in ("ternary", "ternary_groups"))
        for name, reader in forms:
            with self.subTest(name):
                self.assertIn(f"row{{type::{name}, ", named, "no name for messages in gguf/types.cpp")
                if not name.startswith("hf_"):  # which are of no GGUF file
                    spoken = re.search(rf'row\{{type::{name}, "(\w+)', named).group(1)
                    self.assertRegex(page("weights"), rf"\n\| \d+ \| {spoken}\b", "not on the page")
                types = "|".join(other for other, also in forms if also == reader)
                self.assertRegex(tested, rf"type::({types})\b", "no test reads it")

    def test_ops(self):
        listed = re.search(r"#define BITNET_OP_LIST\(X\)(.*?)\n\n", text("abi/include/bitnet/abi/ops.h"),
                           re.DOTALL)
        ids = [int(i) for i in re.findall(r"X\(\w+, (\d+),", listed.group(1))]
        primitives = sum(i < 256 for i in ids)
        said = f"{primitives} primitives and {len(ids) - primitives}\ncomposites"
        self.assertIn(said, text("docs/adr/0003-ops-as-one-list.md"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
