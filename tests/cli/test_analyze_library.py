"""`bitnet analyze-library`: libraries that this test compiles, judged by nm and readelf.

The link audit stands on it: what the built library and plugins name, and what they must not.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

import support

# The rules, written a second time: the first match counts.
RULES = [("bitnet", lambda n: n.startswith("bitnet_")), ("llama", lambda n: n.startswith("llama_")),
         ("cuda", lambda n: "cuda" in n or "__global__" in n),
         ("quantization", lambda n: "quants" in n or "i2_s" in n)]

LLAMA = """
int llama_model_load(void) { return 1; }
int llama_decode(void) { return 2; }
int bitnet_eval(void) { return 3; }
int cudaMalloc(void *);
int use(void) { return cudaMalloc(0) + llama_decode(); }
static int hidden_cuda_helper(int a) { return a * 3; }
int call(int a) { return hidden_cuda_helper(a) + hidden_cuda_helper(a + 1); }
void quantize_i2_s(void) {}
void dequantize_row_tq1_0(void) {}
void ggml_vec_dot_q4_0_q8_0(void) {}
void ggml_quants_init(void) {}
"""
PLAIN = "int add(int a, int b) { return a + b; }\n"
HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER = shutil.which(os.environ.get("CC", "cc"))


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def names_by_nm(path):
    """{name: is it defined} of both tables, as nm prints them, without versions."""
    out = {}
    for words in (["nm", "-D", path], ["nm", path]):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            kind, name = line.split()[-2:] if len(line.split()) >= 2 else ("", "")
            name = name.split("@")[0]
            if name:
                out[name] = out.get(name, False) or kind not in "Uwv"
    return out


def groups_by_nm(path):
    groups = {key: {} for key, _ in RULES}
    for name, defined in names_by_nm(path).items():
        for key, fits in RULES:
            if fits(name):
                groups[key][name] = defined
                break
    return {key: {"count": len(found), "defined": sum(found.values()), "names": sorted(found)}
            for key, found in groups.items()}


def patched(path, to, offset, data):
    with open(path, "rb") as file:
        content = bytearray(file.read())
    content[offset:offset + len(data)] = data
    with open(to, "wb") as file:
        file.write(content)
    return to


class AnalyzeLibrary(support.Case):
    def compiled(self, name, source, *flags, compiler=COMPILER):
        source_file = self.path(name + ".c", source)
        out = self.path(name)
        # -g0: no files of counts, whatever the options of the build.
        subprocess.run([compiler, "-shared", "-fPIC", "-g0", "-O0", "-o", out, source_file, *flags], check=True,
                       capture_output=True)
        return out

    def analyzed(self, path, code=0, *words):
        done = self.bitnet("analyze-library", path, "--json", "--symbols", "100000", *words)
        self.assertEqual(done.code, code, done)
        return done.json

    def same_as_nm(self, path, code=0):
        report = self.analyzed(path, code)
        self.assertEqual(report["groups"], groups_by_nm(path))
        head = run("readelf", "-hW", path)
        self.assertIn(f"ELF{report['format']['bits']}", head)
        self.assertIn(f"{report['format']['byte_order']} endian", head)
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))
        self.assertEqual(report["needed"], needed)
        return report

    def setUp(self):
        super().setUp()
        if COMPILER is None or not shutil.which("nm") or not shutil.which("readelf"):
            self.skipTest("there is no C compiler, nm or readelf")

    def test_groups_of_symbols_equal_those_of_nm(self):
        path = self.compiled("libllama.so", LLAMA)
        report = self.same_as_nm(path)
        groups = report["groups"]
        self.assertEqual(groups["bitnet"], {"count": 1, "defined": 1, "names": ["bitnet_eval"]})
        self.assertEqual(groups["cuda"], {"count": 2, "defined": 1, "names": ["cudaMalloc", "hidden_cuda_helper"]})
        self.assertEqual(report["formats"], ["i2_s", "q4_0", "q8_0", "tq1_0"])
        self.assertEqual(report["inference"], "CUDA backend")
        self.assertFalse(report["format"]["stripped"])
        self.assertNotIn("backend", report)

    def test_the_form_of_its_text(self):
        path = self.compiled("libllama.so", LLAMA)
        text = self.ok("analyze-library", path, "--symbols", "1").text
        self.assertTrue(text.startswith(
            "Library: libllama.so\n"
            "Bitnet symbols:   1 found\n  - bitnet_eval\n\n"
            "Llama symbols:    2 found\n  - llama_decode\n  ...\n\n"
            "CUDA symbols:     2 found\n  - cudaMalloc\n  ...\n  Inference: CUDA backend\n\n"
            "Quantization:     2 found\n  - ggml_quants_init\n  ...\n  - Detected: i2_s, q4_0, q8_0, tq1_0\n"), text)
        self.assertIn("\nBitNet backend ABI\n  no identity note: no bitnet backend\n", text)
        self.assertTrue(text.endswith("This library can be loaded here.\n"), text)

    def test_without_cuda_it_is_for_cpus(self):
        report = self.same_as_nm(self.compiled("libggml.so", "void quantize_row_tl2(void) {}\nvoid iquants(void) {}\n"))
        self.assertEqual((report["inference"], report["formats"]), ("CPU-only backend", ["tl2"]))
        report = self.same_as_nm(self.compiled("libother.so", PLAIN))
        self.assertEqual((report["inference"], report["formats"]), ("no backend, by its symbols", []))

    def test_a_library_that_needs_one_of_a_gpu_is_reported_as_a_gpu_backend(self):
        self.compiled("libcudart.so", PLAIN, "-Wl,-soname,libcudart.so.12")
        self.compiled("libcudartoon.so", "int sub(int a, int b) { return a - b; }\n")
        path = self.compiled("libggml.so", "int add(int, int); int sub(int, int);\nint f(void) { return add(1, 2) + sub(1, 2); }\n",
                             "-L" + self.home, "-lcudart", "-lcudartoon", "-Wl,-rpath,$ORIGIN")
        report = self.analyzed(path, 3)
        self.assertEqual((report["accelerators"], report["inference"]), (["libcudart.so.12"], "GPU backend, by libcudart.so.12"))
        self.assertEqual(report["missing"], [{"name": "libcudart.so.12"}], "only its plain name is there")

    def test_a_stripped_library_has_the_exported_names(self):
        path = self.compiled("libllama.so", LLAMA)
        run("strip", path)
        report = self.same_as_nm(path)
        self.assertTrue(report["format"]["stripped"])
        self.assertEqual(report["groups"]["cuda"]["names"], ["cudaMalloc"], "what is not exported went")

    def test_without_section_headers(self):
        """As strippers of sections leave it: the dynamic linker needs none, and neither does this."""
        path = self.compiled("libllama.so", LLAMA)
        expected = self.analyzed(path)["groups"]["llama"]
        bare = patched(path, self.path("bare.so"), 40, bytes(8))  # e_shoff
        patched(bare, bare, 60, bytes(4))  # e_shnum, e_shstrndx
        report = self.analyzed(bare)
        self.assertEqual(report["groups"]["llama"], expected)
        self.assertTrue(report["format"]["stripped"])

    def test_each_style_of_hash_table_gives_the_symbols_of_nm(self):
        for style in ("sysv", "gnu", "both"):
            with self.subTest(style):
                self.same_as_nm(self.compiled("libllama.so", LLAMA, f"-Wl,--hash-style={style}"))

    def test_libraries_of_other_machines_are_read(self):
        targets = [("gcc -m32", [COMPILER, "-m32"], "i386", 32, "little"),
                   ("aarch64", ["aarch64-linux-gnu-gcc"], "aarch64", 64, "little"),
                   ("powerpc64", ["clang", "--target=powerpc64-linux-gnu", "-fuse-ld=lld"], "ppc64", 64, "big"),
                   ("mips", ["clang", "--target=mips-linux-gnu", "-fuse-ld=lld"], "machine 8", 32, "big"),
                   ("arm", ["clang", "--target=armv7-linux-gnueabihf", "-fuse-ld=lld"], "arm", 32, "little")]
        seen = set()
        for title, compiler, machine, bits, order in targets:
            out = self.path("foreign.so")
            done = subprocess.run([*compiler, "-shared", "-fPIC", "-nostdlib", "-g0", "-o", out,
                                   self.path("f.c", LLAMA)], capture_output=True, check=False) \
                if shutil.which(compiler[0]) else None
            if done is None or done.returncode != 0:
                print(f"not compared: no compiler for {title}", file=sys.stderr)
                continue
            with self.subTest(title):
                report = self.same_as_nm(out, 3)
                form = report["format"]
                self.assertEqual((form["machine"], form["bits"], form["byte_order"]), (machine, bits, order))
                self.assertFalse(form["for_this_machine"])
                self.assertNotIn("missing", report, "it was not looked for")
                self.assertEqual([p["code"] for p in report["problems"]], ["BN-I-MACHINE"])
                seen.add(title)
        if not seen:
            self.skipTest("no compiler here makes libraries for other machines")

    def test_dependencies_are_found_as_the_loader_finds_them(self):
        self.compiled("libdeep.so", PLAIN)
        os.makedirs(self.path("private"))
        self.compiled("private/libinner.so", "int add(int, int);\nint inner(void) { return add(1, 2); }\n", "-L" + self.home,
                      "-ldeep", "-Wl,-rpath,$ORIGIN/..")
        path = self.compiled("libouter.so", "int inner(void);\nint outer(void) { return inner(); }\n",
                             "-L" + self.path("private"), "-linner", "-Wl,-rpath,$ORIGIN/private",
                             "-Wl,-rpath-link," + self.home)
        report = self.same_as_nm(path)
        found = {row["name"]: row for row in report["present"]}
        self.assertEqual(os.path.realpath(found["libinner.so"]["file"]), os.path.realpath(self.path("private/libinner.so")))
        self.assertEqual(found["libdeep.so"]["needed_by"], "libinner.so")
        self.assertEqual(report["missing"], [])
        os.remove(self.path("libdeep.so"))
        report = self.analyzed(path, 3)
        self.assertEqual(report["missing"], [{"name": "libdeep.so", "needed_by": "libinner.so"}])
        self.assertEqual([p["code"] for p in report["problems"]], ["BN-I-DEPENDENCY"])
        text = self.bitnet("analyze-library", path).text
        self.assertRegex(text, r"\n  libdeep\.so +missing \(for libinner\.so\)\n")
        self.assertIn("This library cannot be loaded here:\n  BN-I-DEPENDENCY", text)

    def test_the_newest_version_of_each_family_is_reported(self):
        """The newest of each family, by the numbers that readelf prints."""
        path = self.compiled("libneeds.so", "#include <math.h>\n#include <stdio.h>\n"
                             "double f(double x) { puts(\"\"); return pow(x, 2) + exp(x); }\n", "-lm")
        expected = {}
        for family, number in re.findall(r"Name: ([A-Z]+)_([0-9.]+)  Flags: none", run("readelf", "-VW", path)):
            key = [int(n) for n in number.split(".")]
            if family not in expected or key > [int(n) for n in expected[family].split(".")]:
                expected[family] = number
        report = self.analyzed(path)
        self.assertEqual(report["versions"], expected)
        self.assertEqual(report["min_glibc"], expected["GLIBC"])

    def test_a_version_that_this_machine_lacks(self):
        self.compiled("libv.so", PLAIN, "-Wl,--version-script=" + self.path("new.map", "V_2 { global: add; };\n"))
        path = self.compiled("libuser.so", "int add(int, int);\nint f(void) { return add(1, 1); }\n", "-L" + self.home,
                             "-lv", "-Wl,-rpath,$ORIGIN")
        self.analyzed(path)
        self.compiled("libv.so", PLAIN, "-Wl,--version-script=" + self.path("old.map", "V_1 { global: add; };\n"))
        report = self.analyzed(path, 3)
        self.assertEqual([p["code"] for p in report["problems"]], ["BN-I-VERSION"])
        self.assertIn("V_2", report["problems"][0]["text"])

    def test_the_noted_cpu_level_is_reported(self):
        seen = 0
        for level in ("v2", "v3", "v4"):
            try:
                path = self.compiled("libfast.so", PLAIN, f"-Wl,-z,x86-64-{level}")
            except subprocess.CalledProcessError:
                continue
            noted = run("readelf", "-nW", path)
            if f"x86 ISA needed: x86-64-{level}" not in noted.replace("x86-64-baseline, ", ""):
                continue
            self.assertEqual(self.analyzed(path)["cpu_baseline"], f"x86-64-{level}")
            seen += 1
        self.assertNotIn("cpu_baseline", self.analyzed(self.compiled("libany.so", PLAIN)))
        if not seen:
            self.skipTest("this linker notes no level of x86-64")

    def test_build_id_and_soname_are_reported(self):
        path = self.compiled("libid.so", PLAIN, "-Wl,--build-id=sha1", "-Wl,-soname,libid.so.7")
        report = self.analyzed(path)
        self.assertIn(report["format"]["build_id"], run("readelf", "-nW", path))
        self.assertEqual(report["format"]["soname"], "libid.so.7")

    def test_files_that_are_not_libraries_are_rejected(self):
        source = self.path("m.c", "int main(void) { return 0; }\n")
        run(COMPILER, "-c", "-o", self.path("m.o"), source)
        run(COMPILER, "-o", self.path("program"), source)
        run(COMPILER, "-no-pie", "-o", self.path("fixed"), source)
        run("ar", "rcs", self.path("lib.a"), self.path("m.o"))
        run("ar", "rcsT", self.path("thin.a"), self.path("m.o"))
        self.path("text", "no library")
        self.path("script.so", "/* GNU ld script */\nGROUP ( libc.so.6 )\n")
        self.path("windows.dll", b"MZ\x90\0")
        self.path("mac.dylib", b"\xcf\xfa\xed\xfe" + bytes(64))
        self.path("m.gguf", b"GGUF" + bytes(64))
        self.path("empty", b"")
        self.path("head.so", b"\x7fELF\x02\x01\x01" + bytes(9))
        self.path("class.so", b"\x7fELF\x09\x01\x01" + bytes(80))
        for name, words in (("m.o", "an object file that is not linked yet"), ("program", "is a program"),
                            ("fixed", "is a program"), ("lib.a", "is a static archive (ar)"), ("thin.a", "thin static archive"),
                            ("text", "begins with 'no library'"), ("script.so", "a linker script"),
                            ("windows.dll", "Windows (PE)"), ("mac.dylib", "macOS (Mach-O)"), ("m.gguf", "bitnet inspect"),
                            ("empty", "is empty"), ("head.so", "is cut off"), ("class.so", "damaged ELF header"),
                            ("absent.so", "No such file"), (".", "not a regular file")):
            with self.subTest(name):
                self.rejected(2, words, "analyze-library", self.path(name) if name != "." else self.home)

    def test_cut_and_changed_files(self):
        """Whatever is wrong with it: a report or one line of error, and no crash."""
        path = self.compiled("libllama.so", LLAMA)
        with open(path, "rb") as file:
            content = file.read()
        for size in [*range(0, 4096, 97), *range(4096, len(content), 1009)]:
            with self.subTest(size=size):
                self.path("cut.so", content[:size])
                self.assertIn(self.bitnet("analyze-library", self.path("cut.so")).code, (2, 3))
        for at in range(16, 1200, 13):
            with self.subTest(at=at):
                changed = bytearray(content)
                changed[at:at + 4] = b"\xff\xff\xff\x7f"
                self.path("changed.so", bytes(changed))
                self.assertIn(self.bitnet("analyze-library", self.path("changed.so")).code, (0, 2, 3))

    def test_control_characters_of_names_are_escaped(self):
        path = self.compiled("libevil.so", "void llama_abcdef(void) {}\n", "-Wl,--hash-style=sysv")
        with open(path, "rb") as file:
            content = file.read()
        self.path("libevil.so", content.replace(b"llama_abcdef", b"llama_\x1b[2J\n\xff"))
        done = self.ok("analyze-library", path)
        self.assertNotIn("\x1b", done.text)
        self.assertIn(r"  - llama_\x1b[2J\n\xff", done.text)
        self.assertEqual(self.analyzed(path)["groups"]["llama"]["names"], [r"llama_\x1b[2J\n\xff"])

    def test_other_than_one_path_is_rejected(self):
        self.rejected(2, "needs the path of a library", "analyze-library")
        self.rejected(2, "found also", "analyze-library", "a", "b")


class LinkAudit(support.Case):
    """Only the plugin of cuda has names of CUDA, and no built file needs a driver when it is loaded."""

    def built(self):
        root = os.path.dirname(os.path.dirname(os.path.realpath(support.PROGRAM)))
        found = {}
        for pattern in ("lib*/**/libbitnet-backend-*.so", "lib*/**/libbitnet.so.*.*.*", "lib*/libbitnet.so.*.*.*"):
            for path in glob.glob(os.path.join(root, pattern), recursive=True):
                found[os.path.realpath(path)] = os.path.basename(path)
        return found

    def test_built_libraries_need_no_vendor_library(self):
        built = self.built()
        if not any("backend" in name for name in built.values()):
            self.skipTest("no plugin lies beside the program")
        self.assertTrue(any(name.startswith("libbitnet.so") for name in built.values()), built)
        for path, name in built.items():
            with self.subTest(name):
                done = self.bitnet("analyze-library", path, "--json", "--symbols", "1000000")
                report = done.json
                self.assertEqual(done.code, 0, report["problems"])
                every = [n for group in report["groups"].values() for n in group["names"]]
                if "cuda" not in name:
                    self.assertEqual([n for n in every if "cuda" in n.lower() or "__global__" in n], [])
                self.assertEqual(report["accelerators"], [], "drivers are opened when a device is asked for")
                self.assertEqual(report["groups"], groups_by_nm(path) if shutil.which("nm") else report["groups"])
                if not name.startswith("libbitnet-backend-"):
                    self.assertNotIn("backend", report)
                    continue
                backend = report["backend"]
                self.assertEqual(name, f"libbitnet-backend-{backend['name']}.so")
                self.assertEqual((backend["entry"], backend["abi_spoken"]), ("bitnet_backend_abi0", True))
                self.assertEqual(backend["license"], backend.get("manifest_license", backend["license"]))
                self.assertRegex(backend["license"], r"^[A-Za-z0-9.+-]+( (OR|AND) [A-Za-z0-9.+-]+)*$")
                if report["format"]["machine"] == "x86-64":
                    self.assertNotIn(report.get("cpu_baseline"), ("x86-64-v3", "x86-64-v4"), "old processors run it")

    def test_the_audit_finds_calls_of_cuda(self):
        """The audit is no blind one: a plugin that named it would be found."""
        if COMPILER is None:
            self.skipTest("there is no C compiler")
        out = self.path("libbitnet-backend-cpu.so")
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", out, self.path(
            "p.c", "int cuInit(int); int cudaFree(void *);\nint f(void) { return cudaFree(0) + cuInit(0); }\n")], check=True)
        report = json.loads(self.bitnet("analyze-library", out, "--json").text)
        self.assertEqual(report["groups"]["cuda"]["names"], ["cudaFree"])


if __name__ == "__main__":
    support.main()
