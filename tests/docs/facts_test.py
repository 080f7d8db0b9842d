"""Lists that stand in the code and in the documentation say the same."""

import ast
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


# Where a plugin reads a variable itself: one of NVTX's, by which profilers say where they are; and those of ROCm that
# hide devices or rename them, for messages.
OF_NVTX = "plugins/cuda/nvtx.cpp"
READ_THEMSELVES = {OF_NVTX, "plugins/rocm/library.cpp"}
# Settings of backends that choose no form of a kernel, so that a plan does not pin them: {backends: {setting: why}}.
POOL = "memory for steps"
NO_FORM = {
    ("cuda", "level-zero", "opencl", "rocm", "vulkan", "webgpu"): {
        "max_pool_size": POOL, "max_cached_buffers": POOL, "cleanup_interval": POOL},
    ("cpu", "cuda", "rocm"): {"head": "a stage of the step, which --head chooses"},
    ("cuda", "rocm"): {"checks": "a part of the probe"},
    ("cpu",): {"copies": "where and how weights lie", "hugepages": "where weights lie"},
    ("cuda",): {"overlap": "when kernels are launched"},
    ("level-zero",): {"sysman": "what a device reports"},
    ("opencl",): {"cache": "a folder"},
    ("vulkan",): {"fences": "how a thread waits"},
    ("webgpu",): {"library": "which library is opened", "software": "which devices there are"},
}


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


def parameters_of_sampling():
    """[(type, name, default, option)] of the rows that common/tables has."""
    rows = re.sub(r"\\\n", " ", text("common/tables/sampling.hpp")).split("define BITNET_SAMPLING_PARAMETERS(X)")[1]
    return re.findall(r'X\(([a-z0-9_]+), ([a-z_]+), (-?[0-9.]+), [^"]*"[^"]*",\s+"([a-z-]+)"', rows)


def options_of_sampling():
    """{option: its default} of the same rows."""
    return {option: initial for _, _, initial, option in parameters_of_sampling()}


def rows_of(path, table):
    """The upper-case names of the rows of a list X(...)."""
    rows = re.search(rf"#define {table}\(X\)((?:.*\\\n)*.*)", text(path))[1]
    return set(re.findall(r"X\((?:\w+, *)?([A-Z][A-Z0-9_]*)\b", rows))


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
    asked = re.compile(r'\b(?:parameter\(|read_switch\(user, )"([a-z_]+)"')
    readers = {"read_form_use(": "checks", "check_head_setting(": "head"}  # of gpu-common
    own = set()
    for file in ROOT.glob("plugins/*/*.cpp"):
        said = file.read_text(encoding="utf-8")
        keys = asked.findall(said) + [key for reader, key in readers.items() if f"bitnet::gpu::{reader}" in said]
        own |= {f"BITNET_{backend_of(file)}_{key.upper()}" for key in keys}
    shared = re.findall(r'^ +\{\.key = "([a-z_]+)",', text("plugins/gpu-common/memory/pool_settings.cpp"), re.MULTILINE)
    return own | {f"BITNET_{backend_of(file)}_{key.upper()}" for file in ROOT.glob("plugins/*/CMakeLists.txt")
                  for key in shared if "LINK bitnet_gpu_common" in (said := file.read_text(encoding="utf-8"))
                  or "PUBLIC bitnet_gpu_common" in said}


class Facts(unittest.TestCase):
    def need(self, folder):
        if not (ROOT / folder).is_dir():
            self.skipTest(f"{folder} is not in this tree")

    def test_the_page_of_backend_codes_has_each_code(self):
        in_code = set(re.findall(r'"(BN-[A-Z-]+)"', text("core/src/plugin/codes/codes.hpp")))
        on_page = set(re.findall(r"^\| `(BN-[A-Z-]+)`", page("backend-codes"), re.MULTILINE))
        self.assertGreater(len(in_code), 10)
        self.assertEqual(in_code, on_page)

    def test_backends_of_the_readme(self):
        """Its table has each backend with a device, which has a changelog of its own."""
        table = text("README.md").split("\n## Backends\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)
        self.assertEqual({file.parent.name for file in ROOT.glob("plugins/*/CHANGELOG.md")} - set(rows), set())

    def test_the_page_of_wording_has_each_row_of_the_table(self):
        rows = re.findall(r'X\((\w+), "([^"]*)",\s*"([^"]*)"\)', text("common/tables/wording.hpp").replace("\\\n", ""))
        self.assertGreater(len(rows), 30)
        on_page = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", page("wording"), re.MULTILINE)
        self.assertEqual(rows, on_page)
        names = {library for _, library, _ in rows if re.fullmatch(r"\w+_\w+", library)}
        for file in [*(ROOT / "core/src").rglob("*.cpp"), *(ROOT / "plugins").rglob("*.cpp")]:
            in_texts = re.findall(r'"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"', file.read_text(encoding="utf-8"))
            said = {word for one in in_texts for word in re.findall(r"\w+", one)} & names
            self.assertEqual(said, set(), f"{file}: say(word::...) in place of the name")

    def test_the_page_of_exit_codes_has_each_code(self):
        in_code = set(re.findall(r"inline constexpr int \w+ = (\d+);", text("host/src/basic/result.hpp")))
        on_page = set(re.findall(r"^\| (\d+) \|", page("exit-codes"), re.MULTILINE))
        self.assertGreater(len(in_code), 5)
        self.assertEqual(in_code, on_page)

    def test_the_page_of_options_has_each_with_its_default(self):
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

    def test_each_command_is_on_the_page_and_in_a_test(self):
        """The page has each command, and a test of the program runs it."""
        commands = {name.replace("_", "-") for name in re.findall(
            r"^  X\((\w+),", text("host/src/settings/command_list.hpp"), re.MULTILINE)}
        self.assertGreater(len(commands), 20)
        self.assertEqual(commands, set(re.findall(r"^\| `([a-z][a-z-]*)`", page("cli"), re.MULTILINE)))
        code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "host/src/commands").glob("*.cpp"))
        defined = re.findall(r"^result<int> (\w+)_command\(const invocation& \w+\) \{", code, re.MULTILINE)
        self.assertEqual(commands, {name.replace("_", "-") for name in defined}, "functions in host/src/commands")
        tests = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests/cli").glob("test_*.py"))
        self.assertEqual({name for name in commands if f'"{name}"' not in tests}, set(), "no file of tests/cli runs it")

    def test_each_route_is_on_the_page_and_in_a_test(self):
        """The page has each route of the server with the key that it needs. Its answer has a schema, and a test asks it."""
        # From one `.method` to the next, so that `.access` and `.answer` are those of the same row.
        rows = [row for file in (ROOT / "host/src").rglob("*rout*.cpp")
                for row in re.split(r"\.method = ", file.read_text(encoding="utf-8"))[1:] if ".paths = {" in row]
        self.assertGreater(len(rows), 20)
        declared = {name for file in (ROOT / "host/src/serve").glob("*.hpp")
                    for name in re.findall(r"^void (add_\w+)\(http::route_table&", file.read_text(encoding="utf-8"), re.MULTILINE)}
        called = set(re.findall(r"^  (add_\w+)\(out, with\);", text("host/src/serve/serve_routes.cpp"), re.MULTILINE))
        self.assertEqual(declared - called, set(), "serve_routes() does not call it")
        on_page = {}
        for method, names, key in re.findall(r"^\| (GET|POST) (`/.*?`) \|.*\| ?(\w*) \|$", page("http"), re.MULTILINE):
            on_page |= {(method, name): key for name in re.findall(r"`([^`]+)`", names)}
        schemas = {name for file in (ROOT / "host/src").rglob("schemas.json")
                   for name in json.loads(file.read_text(encoding="utf-8"))}
        tests = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests/cli").glob("test_*.py"))
        for row in rows:
            method = re.match(r'"(\w+)"', row)[1]
            paths = re.findall(r'"([^"]+)"', row.split(".paths = {")[1].split("},")[0])
            access = re.search(r"access_level::(\w+)", row)
            with self.subTest(f"{method} {paths[0]}"):
                keys = [on_page[one] for path in paths if (one := (method, re.sub(r"\{\w+\}", "NAME", path))) in on_page]
                self.assertEqual(keys[:1], [{"open": "", "key": "needed", "admin": "admin"}[access[1] if access else "key"]],
                                 "the row of reference/http.md, and its column of keys")
                self.assertEqual(set(re.findall(r'\.(?:answer|event|conflict) = "(\w+)"', row)) - schemas, set(), "schemas.json")
                self.assertTrue(any(re.sub(r"\{.*", "", path) in tests for path in paths), "no file of tests/cli asks it")

    def test_parameters_of_python(self):
        """Python's Generating has each parameter of sampling, with the type of its row."""
        tree = ast.parse(text("python/src/bitnet/_asked.py"))
        (generating,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Generating"]
        in_python = {node.target.id: ast.unparse(node.annotation) for node in generating.body if isinstance(node, ast.AnnAssign)}
        parameters = {name: {"float": "float", "int32_t": "int"}[kind] for kind, name, _, _ in parameters_of_sampling()}
        self.assertEqual(len(parameters), text("common/tables/sampling.hpp").count("  X("), "a row was not read")
        self.assertEqual(parameters, {name: in_python.get(name) for name in parameters})

    def test_parameters_of_requests(self):
        """The page of requests names each parameter of sampling as a member of a body."""
        rows = re.findall(r"^\| (`.*?) \| texts \|", text("docs/how-to/answer-many.md"), re.MULTILINE)
        on_page = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
        self.assertEqual({name for _, name, _, _ in parameters_of_sampling()} - on_page, set())

    def test_stages_of_sampling(self):
        """The page defines each parameter, and the judge in NumPy has its default and a case with it."""
        parameters, options = {name for _, name, _, _ in parameters_of_sampling()}, set(options_of_sampling())
        self.assertEqual(options - set(re.findall(r"`--([a-z-]+)", page("sampling"))), set(), "reference/sampling.md")
        defaults = re.search(r"^DEFAULTS = dict\((.*?)\)$", text("tests/reference/sampling.py"), re.MULTILINE | re.DOTALL)
        self.assertEqual(parameters - set(re.findall(r"(\w+)=", defaults[1])), set(), "tests/reference/sampling.py")
        judged = re.search(r"^OFF = (.*?^\})$", text("tests/reference/sampling_test.py"), re.MULTILINE | re.DOTALL)
        self.assertEqual(parameters - set(re.findall(r"(\w+)=", judged[1])), set(), "tests/reference/sampling_test.py")

    def test_each_list_of_stages_has_the_order_of_the_page(self):
        """Each place that lists the stages has the order of the page."""
        order = re.search(r"^what a grammar forbids → (.*) → draw$", page("sampling"), re.MULTILINE)[1].split(" → ")
        self.assertGreater(len(order), 8)
        for path in ("core/src/sampling/sampler.hpp", "docs/explain/how-a-token-is-made.md"):
            words = " ".join(re.sub(r"^//", "", text(path), flags=re.MULTILINE).replace(" and ", ", ").split())
            self.assertTrue(", ".join(order) in words, f"{path} lists other stages, or another order")

    def test_the_page_of_the_environment_has_the_variables_that_are_read(self):
        read, on_page = variables_read(), variables_on_page()
        self.assertLessEqual({"BITNET_DEVICE", "XDG_CACHE_HOME", "HOME", "LANG"}, read)
        self.assertEqual(read - on_page, set(), "read, and not on the page")
        known = read | variables_of_options() | variables_of_plugins()
        if not (ROOT / OF_NVTX).is_file() or '"NVTX_INJECTION64_PATH"' in text(OF_NVTX):
            known.add("NVTX_INJECTION64_PATH")
        # Of backends that were taken out of the tree.
        known |= {name for name, backend in re.findall(r"^\| `(BITNET_[A-Z0-9_]+)` \|.*\| ([a-z-]+) backend \|$",
                                                       page("environment"), re.MULTILINE)
                  if not (ROOT / "plugins" / backend).is_dir()}
        self.assertEqual(on_page - known, set(), "on the page, and read nowhere")

    def test_pages_name_each_backend_that_has_a_package(self):
        packaged = sorted(file.stem for file in (ROOT / "packaging/backend").glob("*.control"))
        self.assertGreater(len(packaged), 5)
        status = re.search(r"^\| member \| (cpu \|.*) \|$", page("abi"), re.MULTILINE)[1].split(" | ")
        self.assertEqual(sorted(status), packaged, "reference/abi.md, what device_status answers")
        package = r"\bbitnet-backend-([a-z]+(?:-[a-z]+)*)\b"
        self.assertLessEqual(set(packaged), set(re.findall(package, text("docs/how-to/install-from-packages.md"))))
        reasons = set(re.findall(r"[\w-]+", text("docs/how-to/why-is-my-gpu-not-used.md").lower()))
        self.assertLessEqual(set(packaged), reasons, "how-to/why-is-my-gpu-not-used.md")
        others = {name for row in text("plugins/other-names.txt").splitlines() if "|" in row and not row.startswith("#")
                  for name in row.split("|", maxsplit=1)[0].split()}
        self.assertEqual(others & set(packaged), set(), "plugins/other-names.txt says that bitnet has no such backend")

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

    def test_settings_that_choose_kernels(self):
        """Plans can pin each setting of a backend's manual page, or NO_FORM says why not."""
        if not list(ROOT.glob("plugins/*/*.7")):
            self.skipTest("no backend of this tree has a manual page")
        table = text("host/src/plan/forms.cpp").split("rows = {")[1].split("\n  };")[0]
        pinned = set(re.findall(r'\{"([a-z-]+)", "([a-z_]+)", "', table))
        self.assertGreater(len(pinned), 3, "the rows were not found")
        reasons = {(backend, setting) for backends, of in NO_FORM.items() for backend in backends for setting in of}
        self.assertEqual(pinned & reasons, set(), "a plan pins what NO_FORM says it does not")
        for file in ROOT.glob("plugins/*/*.7"):
            name, begin = file.stem, f"BITNET_{backend_of(file)}_"
            keys = {one.lower() for one in re.findall(rf"^\\fB{begin}([A-Z0-9_]+)\\fR=", file.read_text(encoding="utf-8"),
                                                      re.MULTILINE)}
            with self.subTest(name):
                known = {setting for backend, setting in pinned | reasons if backend == name}
                self.assertEqual(keys - known, set(), "neither in all_forms() of host/src/plan/forms.cpp nor in NO_FORM")
                self.assertEqual(known - keys, set(), f"plugins/{name}/{name}.7 has no such setting")
        on_page = re.findall(r"^\| (`[a-z-]+\.[a-z_]+`.*?) \|", page("plan-file").split("\n## Forms\n")[1].split("\n## ")[0],
                             re.MULTILINE)
        self.assertEqual({tuple(one.split(".")) for row in on_page for one in re.findall(r"`([^`]+)`", row)}, pinned,
                         "reference/plan-file.md")

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

    def test_each_instruction_set_is_on_the_page_and_in_doctor(self):
        self.need("plugins/cpu")
        table = text("plugins/cpu/kernels/variants.hpp").split("isa_forms[] = {")[1]
        in_code = set(re.findall(r'^    \{\.name = "([a-z0-9-]+)",', table, re.MULTILINE))
        of_page = page("environment").split("## Instruction sets of the cpu backend")[1].split("\n## ")[0]
        self.assertGreater(len(in_code), 5)
        of_doctor = re.findall(r'^    \{"([a-z0-9-]+)", "[a-z0-9_ ]*"\},$', text("host/src/doctor/processor.cpp"),
                               re.MULTILINE)
        self.assertEqual(in_code, set(of_doctor), "kernel_forms of bitnet doctor")
        self.assertEqual(in_code, set(re.findall(r"^\| `([a-z0-9-]+)` \|", of_page, re.MULTILINE)), "reference/environment.md")
        of_plans = re.search(r'\{"cpu", "isa", "([a-z0-9|-]+)"\}', text("host/src/plan/forms.cpp")).group(1)
        self.assertEqual(in_code, set(of_plans.split("|")), "all_forms of plans")
        of_manual = re.search(r"^\\fBBITNET_CPU_ISA\\fR=.*\n(.*\n.*)", text("plugins/cpu/cpu.7"), re.MULTILINE).group(1)
        self.assertEqual(in_code - set(re.findall(r"[a-z0-9-]+", of_manual.replace("\\-", "-"))), set(), "plugins/cpu/cpu.7")
        suffixes = set(re.findall(r"^ *bitnet_isa\((\w+) ", text("plugins/cpu/CMakeLists.txt"), re.MULTILINE)) | {"scalar"}
        sets = re.search(r"^- \*\*Instruction sets\*\*: (.*?)^- ", text("plugins/cpu/kernels/README.md"), re.MULTILINE | re.DOTALL).group(1)
        self.assertEqual(suffixes, set(re.findall(r"`_(\w+)`", sets)), "plugins/cpu/kernels/README.md")
        rows = re.search(r" instruction_sets = .*?\n\}\);", text("host/src/plan/forms.cpp"), re.DOTALL).group()
        ends = re.findall(r'^    \{"([a-z0-9-]+)", "([a-z0-9_-]+)"\},$', rows, re.MULTILINE)
        self.assertEqual(in_code, {name for name, _ in ends}, "instruction_sets of plans")
        self.assertEqual(suffixes, {end.replace("-", "_") for _, end in ends}, "instruction_sets of plans, the ends of kernel ids")

    def test_each_compiled_form_of_a_kernel_has_a_row(self):
        """variants.hpp has each form of a kernel that is compiled. A form that no row names never runs."""
        self.need("plugins/cpu")
        rules = text("plugins/cpu/CMakeLists.txt")
        every = re.search(r"set\(every_kernel (.*?)\)", rules)[1]
        compiled = {(kernel, isa)
                    for isa, kernels in re.findall(r"^ +bitnet_isa\((\w+)[^)]*?KERNELS ([^)]*)\)", rules, re.MULTILINE)
                    for kernel in kernels.replace("${every_kernel}", every).split()}
        self.assertGreater(len(compiled), 40)
        table = text("plugins/cpu/kernels/variants.hpp").split("isa_forms[] = {")[1]
        named = set(re.findall(r"BITNET_KERNEL\((\w+), (\w+)\)", table))
        # BITNET_ROWS(avx2) names the functions of rows_avx2.cpp, BITNET_SCORES(avx2) those of attn_scores_avx2.cpp.
        of_files = re.findall(r"BITNET_(?!KERNEL)([A-Z]+)\((\w+)\)", table)
        unused = {(kernel, isa) for kernel, isa in compiled - named
                  if not any(kernel.endswith(macro.lower()) and isa == of for macro, of in of_files)}
        self.assertEqual(unused, set(), "compiled, and in no row of isa_forms")
        # Rows are best first: none has a slower form of a kernel than a row below it.
        rows = re.split(r"\{\.name = ", table)[1:]
        order = [re.match(r'"([\w-]+)"', row)[1].replace("-", "_") for row in rows]
        lowest = {}
        for row, name in zip(reversed(rows), reversed(order), strict=True):
            for member, arguments in re.findall(r"\.(\w+) = BITNET_\w+\(([^)]*)\)", row):
                form = arguments.split(", ")[-1]
                if form in order and name != "scalar":
                    self.assertLessEqual(order.index(form), lowest.get(member, len(order)),
                                         f"the row {name} has {form} as {member}, a row below it has a faster form")
                    lowest[member] = order.index(form)

    def test_each_list_of_kv_types_is_complete(self):
        """Each list of KV types has all of them, and so have the pages."""
        types = rows_of("common/tables/kv_types.hpp", "BITNET_KV_TYPES")
        self.assertGreater(len(types), 3)
        self.assertEqual(types, rows_of("plugins/sdk/include/bitnet/sdk/compute/kv_storage.hpp", "BITNET_SDK_KV_TYPES"))
        kit = text("tests/conformance/model/kv_types.hpp").split("all_kv_types[] = {")[1].split("};")[0]
        self.assertEqual(types, set(re.findall(r"BITNET_DTYPE_(\w+)", kit)), "all_kv_types of the kit")
        for name in ("kv_store", "attn_paged", "kv_write"):
            tried = set(re.findall(r"BITNET_DTYPE_(\w+)", text(f"tests/conformance/reference/{name}.cpp")))
            self.assertEqual(types - tried, set(), f"tests/conformance/reference/{name}.cpp")
        spoken = {name.lower() for name in types}
        row = re.search(r"^\| \*KV type\* \|.*$", page("glossary"), re.MULTILINE)[0]
        self.assertEqual(spoken - set(re.findall(r"\w+", row)), set(), "reference/glossary.md")
        for path in ("docs/how-to/long-texts.md", "docs/reference/models.md"):
            smaller = spoken - {"f32", "f16"}
            self.assertEqual(smaller - set(re.findall(r"`(\w+)`", text(path))), set(), path)

    def test_kv_types_of_gpus(self):
        """Each GPU backend names all types of the mask that they share, with the numbers of the contract."""
        self.need("plugins/gpu-common")
        types = rows_of("plugins/gpu-common/kernels.hpp", "BITNET_GPU_KV_TYPES")
        self.assertGreater(len(types), 3)
        numbers = dict(re.findall(r"^#define BITNET_DTYPE_(\w+) (\d+)u$", text("abi/include/bitnet/abi/tensor.h"), re.MULTILINE))
        for path, form in (("vulkan/kernels/common.glsl", r"\bDTYPE_{} = {}\b"),
                           ("webgpu/kernels/common.wgsl", r"\bconst DTYPE_{} = {}u;"),
                           ("gpu-common/opencl-c/common.cl", r"#define DTYPE_{} {}\n"),
                           ("level-zero/forms.cmake", r"foreach\(keys IN ITEMS[^#]* {1}[) ].*# BITNET_DTYPE_"),
                           ("level-zero/forms.cmake", r"foreach\(values IN ITEMS[^#]* {1}[) ]"),
                           ("gpu-common/simt_kernels.cpp", r"\bBITNET_DTYPE_{}\b")):
            if not (ROOT / "plugins" / path).is_file():
                continue  # a backend that was taken out of the tree
            for name in types:
                with self.subTest(f"plugins/{path}: {name}"):
                    found = re.search(form.format(name, numbers[name]), text(f"plugins/{path}"))
                    self.assertTrue(found, "a type of BITNET_GPU_KV_TYPES that it lacks")

    def test_each_list_of_weight_formats_is_complete(self):
        """Each list of weight formats has all of them, and so have the tests that read them and the page."""
        formats = set(re.findall(r"^#define BITNET_FORMAT_(\w+) \d+u$", text("abi/include/bitnet/abi/tensor.h"), re.MULTILINE)) - {"NONE"}
        self.assertGreater(len(formats), 7)
        self.assertEqual(formats - {"TERNARY2"}, rows_of("core/src/base/dense_formats.hpp", "BITNET_DENSE_FORMATS"))
        for path, begin, end in (("plugins/sdk/include/bitnet/sdk/formats.hpp", "formats[] = {", "};"),
                                 ("tests/conformance/model/formats.cpp", "all_formats() {", "return rows;")):
            listed = text(path).split(begin)[1].split(end)[0]
            self.assertEqual(formats, set(re.findall(r"BITNET_FORMAT_(\w+)", listed)), path)
        on_page = {name.upper() for name in re.findall(r"^\| \d+ \| (\w+)", page("weights"), re.MULTILINE)}
        self.assertEqual(formats - on_page, {"TERNARY2"}, "reference/weights.md")
        for path in ("tests/conformance/reference/linear_dense.cpp", "tests/core/formats/dense_test.cpp"):
            self.assertEqual(formats - set(re.findall(r"BITNET_FORMAT_(\w+)", text(path))) - {"TERNARY2"}, set(), path)

    def test_each_gpu_kernel_is_used_and_compared(self):
        """Plans use each kernel of the list, and a test compares each that all backends bring with the reference."""
        self.need("plugins/gpu-common")
        listed = text("plugins/gpu-common/kernel_list.hpp")
        of_all, of_some = (re.findall(r"X\((\w+), \d+, \d+\)", part) for part in listed.split("_OF_SOME(X) ", 1))
        self.assertGreater(len(of_all), 15)
        def used(folder):
            code = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / folder).glob("*.[ch]pp")))
            return set(re.findall(r"kernel_id::(\w+)", code))
        self.assertEqual({*of_all, *of_some} - used("plugins/gpu-common"), set(), "no plan has it")
        self.assertEqual(set(of_all) - used("tests/opencl"), set(), "no test in tests/opencl runs it alone")

    def test_kernels_written_to_join_are_joined(self):
        """The host launches the kernels together that are written for it."""
        self.need("plugins/gpu-common")
        joined = {name for path in sorted((ROOT / "plugins/gpu-common/simt").glob("*.cu"))
                  for name in re.findall(r"^BITNET_KERNEL_JOINED\((\w+),", path.read_text(encoding="utf-8"), re.MULTILINE)}
        body = re.search(r"^bool joins\(.*?^}", text("plugins/gpu-common/simt_kernels.cpp"), re.MULTILINE | re.DOTALL).group()
        self.assertTrue(joined)
        self.assertEqual(set(re.findall(r'"(\w+)"', body)), joined)

    def test_tiled_forms_of_cuda_are_on_the_page(self):
        """The page names each tiled form in the row of the file that has its code."""
        self.need("plugins/cuda")
        forms = re.findall(r'\{&images\[(\w+)\], "(\w+)"', text("plugins/cuda/kernel_table.cpp"))
        self.assertGreater(len(forms), 20)
        of_page = dict(re.findall(r"^\| \[(\w+)\.cu\]\(.*\|(.*) \|$", text("docs/explain/kernel-ladder-cuda.md"), re.MULTILINE))
        on_page = {(file, name) for file, names in of_page.items() for name in re.findall(r"`(\w+)`", names)}
        self.assertEqual(set(forms), on_page, "docs/explain/kernel-ladder-cuda.md")

    def test_numbers_of_the_contract(self):
        """Kernels in the languages of GPUs, which cannot include the contract, have its numbers."""
        contract = text("abi/include/bitnet/abi/tensor.h") + text("abi/include/bitnet/abi/ops.h")
        numbers = dict(re.findall(r"^#define BITNET_((?:DTYPE|FORMAT)_\w+) (\d+)u$", contract, re.MULTILINE))
        numbers |= {"OP_" + name: number for name, number in re.findall(r"^  X\((\w+), (\d+),", contract, re.MULTILINE)}
        named = 0
        for file in [*(ROOT / "plugins").glob("*/kernels/*l"), *(ROOT / "plugins").glob("*/opencl-c/*.cl"),
                     *(ROOT / "plugins").glob("*/kernels/*.comp")]:
            for name, number in re.findall(r"\b((?:DTYPE|FORMAT|OP)_[A-Z]\w*)(?: = | )(\d+)u?\b", file.read_text(encoding="utf-8")):
                if name in numbers:
                    named += 1
                    self.assertEqual(number, numbers[name], f"{file.relative_to(ROOT)}: {name}")
        self.assertTrue(named > 30 or not (ROOT / "plugins/gpu-common").is_dir(), named)

    def test_the_page_of_tokenizers_has_each_pre_tokenizer(self):
        rows = re.findall(r"\.names = \{(.*?)\}", text("core/src/tokenizer/pre_rules.cpp"), re.DOTALL)
        in_code = {name for row in rows for name in re.findall(r'"([^"]+)"', row)}
        self.assertGreater(len(in_code), 80)
        on_page = {name for span in re.findall(r"`([^`\n]+)`", page("tokenizers")) for name in span.split()}
        self.assertEqual(in_code - on_page, set(), "names in pre_rules.cpp that the page lacks")

    def test_each_architecture_is_in_the_reference_and_on_the_page(self):
        folder = ROOT / "core/src/model/architectures"
        rows = re.findall(r"^  X\((\w+)\)", (folder / "list.hpp").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertGreater(len(rows), 5)
        code = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.cpp")))
        names = dict(re.findall(r'rows::(\w+) =\s*(?:\w+\(|\{\s*\.name = )"([^"]+)"', code))
        self.assertEqual(set(names), set(rows), "rows of list.hpp, and files that define one")
        for path, lines in (("tests/reference/reference.py", r"^\w*ARCHITECTURES = .*$"), ("tests/reference/make_models.py", r"^.*$")):
            code = "\n".join(re.findall(lines, text(path), re.MULTILINE))
            quoted = {word.replace("-", "").replace(".", "") for word in re.findall(r'"([\w.-]+)"', code)}
            missing = {name for name in names.values() if name.replace("-", "").replace(".", "") not in quoted}
            self.assertEqual(missing, set(), path)
        table = page("models").split("## Architectures")[1].split("\n## ")[0]
        self.assertEqual(set(names.values()) - set(re.findall(r"`([^`]+)`", table)), set(), "not on the page")

    def test_each_ternary_form_has_a_name_a_page_and_a_test(self):
        rows = re.search(r"#define BITNET_TERNARY_FORMS\(X\)(.*?)\n\n", text("core/src/formats/ternary.hpp"),
                         re.DOTALL).group(1)
        forms = re.findall(r"X\((\w+), (\w+)\)", rows)
        self.assertGreater(len(forms), 12)
        code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "core/src/formats").glob("*.[ch]pp"))
        readers = re.findall(r"^result<reading> understand_(\w+)\(const source& from\) \{", code, re.MULTILINE)
        self.assertEqual([one for one in readers if one not in {reader for _, reader in forms}
                          and code.count(f"understand_{one}(") == 1], [], "defined, and in no row of BITNET_TERNARY_FORMS")
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

    def test_a_decision_has_the_number_of_ops(self):
        listed = re.search(r"#define BITNET_OP_LIST\(X\)(.*?)\n\n", text("abi/include/bitnet/abi/ops.h"),
                           re.DOTALL)
        ids = [int(i) for i in re.findall(r"X\(\w+, (\d+),", listed.group(1))]
        primitives = sum(i < 256 for i in ids)
        said = f"{primitives} primitives and {len(ids) - primitives}\ncomposites"
        self.assertIn(said, text("docs/adr/0003-ops-as-one-list.md"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
