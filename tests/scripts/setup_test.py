"""scripts/setup with fake commands: which packages it installs, and that it stops at each failing step."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Each fake records its call, and fails if FAIL names it, and its first argument if FAIL has one.
HEAD = """#!/bin/bash
me=${0##*/}
echo "$me $*" >>"$FAKES/calls"
for word in "" "$@"; do
  if [[ "$me${word:+ $word}" == "$FAIL" ]]; then echo "$me says: planted" >&2; exit "${FAIL_STATUS:-100}"; fi
done
"""
FAKES = {
    # Knows what is installed and nothing else, as dpkg does of packages it never heard of.
    "dpkg-query": """status=0
for word in "${@:4}"; do
  if grep -qx "$word" "$FAKES/installed"; then echo "ii  $word"; else
    echo "dpkg-query: no packages found matching $word" >&2; status=1; fi
done
exit $status
""",
    "apt-get": """words=()
while (($#)); do
  case $1 in -o) shift ;; -*) ;; *) words+=("$1") ;; esac
  shift
done
case ${words[0]} in
  update) ;;
  install) echo "0 upgraded, 3 newly installed, 0 to remove and 0 not upgraded."
    [[ $FAIL == nothing ]] || printf '%s\\n' "${words[@]:1}" >>"$FAKES/installed" ;;
  download) for name in "${words[@]:1}"; do : >"${name}_1_amd64.deb"; done ;;
  *) echo "unknown: ${words[*]}" >&2; exit 1 ;;
esac
""",
    "sudo": 'exec "$@"\n',
    "dpkg": "echo amd64\n",
    "dpkg-deb": """/bin/mkdir -p "$3"/usr/{lib/chromium,lib/x86_64-linux-gnu,bin}
touch "$3"/usr/lib/chromium/{libvk_swiftshader.so,vk_swiftshader_icd.json}
touch "$3"/usr/lib/x86_64-linux-gnu/{libocloc.so,libigc.so.1} "$3/usr/bin/ocloc"
""",
    "python3": """/bin/mkdir -p "$3/bin"
/bin/cp "$FAKES/pip" "$3/bin/pip"
""",
    # Wheels of NVIDIA's, one folder of files each.
    "pip": """while (($#)); do
  if [[ $1 == --target ]]; then
    /bin/mkdir -p "$2"/nvidia/{one/bin,two/include,one/lib} "$2/nvidia_cuda_nvcc-1.dist-info/licenses"
    for program in nvcc ptxas nvlink; do
      printf '#!/bin/sh\\n' >"$2/nvidia/one/bin/$program"
      /bin/chmod 755 "$2/nvidia/one/bin/$program"
    done
    [[ $FAIL != "no nvcc" ]] || /bin/rm "$2/nvidia/one/bin/nvcc"
    : >"$2/nvidia/two/include/cuda.h"
    : >"$2/nvidia_cuda_nvcc-1.dist-info/licenses/License.txt"
  fi
  shift
done
""",
}
# Real tools, which fail only where a fault is planted.
for tool in ("cp", "mkdir", "mktemp", "mv", "awk", "tee", "rm"):
    FAKES[tool] = f'exec {shutil.which(tool)} "$@"\n'

STEPS = [  # what fails, the message, why the row is here
    ("dpkg-query", 2, "dpkg-query failed: dpkg-query says: planted", "its list is damaged"),
    ("apt-get update", 100, "apt-get update failed", "no network"),
    ("apt-get install", 100, "apt-get install failed", "a package cannot be had"),
    ("nothing", 0, "these are not there: g++ cmake", "apt-get says yes and does nothing"),
    ("awk", 2, "apt-get install failed", "what reads apt-get's words dies"),
    ("tee", 1, "apt-get install failed", "the disk of the log is full"),
    ("python3", 1, "python3 -m venv build/venv failed", "no ensurepip"),
    ("pip", 1, "pip could not install", "no network"),
    ("cp", 1, "requirements.stamp cannot be written", "the disk is full"),
    ("apt-get download", 100, "SwiftShader", "the package is gone"),
    ("apt-get libigc1", 100, "ocloc", "the package is gone"),
    ("apt-get --download-only", 100, "libraries for aarch64", "the other architecture is not served"),
    ("dpkg-deb", 2, "SwiftShader", "half of a package"),
    ("pip --target", 1, "the CUDA compiler of plugins/cuda/toolkit.txt", "no network, or a version that is gone"),
    ("no nvcc", 1, "the CUDA compiler of plugins/cuda/toolkit.txt", "wheels of CUDA 12 have no nvcc"),
    ("mkdir", 1, "build/logs cannot be made", "the tree is another's"),
    ("mktemp", 1, "temporary file", "no room"),
    ("mv", 1, "SwiftShader", "the disk is full"),
    ("rm", 1, "build/venv", "an old environment that is another's"),
]


class Setup(unittest.TestCase):
    def setUp(self):
        self.tree = pathlib.Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.tree)
        self.fakes = self.tree / "fakes"
        for folder in ("scripts", "tests/reference", "plugins/cuda", "fakes"):
            (self.tree / folder).mkdir(parents=True)
        for script in ("setup", "aarch64-libraries"):
            shutil.copy(ROOT / "scripts" / script, self.tree / "scripts")
        (self.tree / "tests/reference/requirements.txt").write_text("nothing==1\n", encoding="utf-8")
        self.toolkit_version = self.tree / "plugins/cuda/toolkit.txt"
        self.toolkit_version.write_text("toolkit==1\n", encoding="utf-8")
        for name, text in FAKES.items():
            (self.fakes / name).write_text(HEAD + text, encoding="utf-8")
            (self.fakes / name).chmod(0o755)
        (self.fakes / "installed").write_text("bash\n", encoding="utf-8")

    def setup(self, *words, fail="", status=100, env=None):
        (self.fakes / "calls").write_text("", encoding="utf-8")
        env = {**(env or {}), "PATH": f"{self.fakes}:{os.environ['PATH']}", "HOME": str(self.tree), "FAIL": fail,
               "FAIL_STATUS": str(status), "FAKES": str(self.fakes), "TMPDIR": str(self.tree)}
        return subprocess.run([self.tree / "scripts/setup", *words], check=False, capture_output=True,
                              text=True, env=env, stdin=subprocess.DEVNULL, timeout=60)

    def calls(self):
        return (self.fakes / "calls").read_text(encoding="utf-8")

    def installed(self):
        return set((self.fakes / "installed").read_text(encoding="utf-8").split())

    def test_a_machine_that_has_nothing(self):
        done = self.setup()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual({"g++", "libyaml-cpp-dev", "glslc", "clang-19"}, self.installed())
        self.assertIn("3 packages with all that they need", done.stderr)
        for made in ("build/venv/requirements.stamp", "build/swiftshader/vk_swiftshader_icd.json",
                     "build/ocloc/ocloc", "build/ocloc/lib/libigc.so.1", "build/aarch64-libraries/packages", "build/cuda-toolkit/bin/nvcc",
                     "build/cuda-toolkit/include/cuda.h", "build/cuda-toolkit/LICENSE"):
            self.assertTrue((self.tree / made).exists(), made)

        again = self.setup()
        self.assertEqual((again.returncode, again.stdout, again.stderr), (0, "", ""))
        self.assertNotRegex(self.calls(), "(?m)^(apt-get|python3|pip|sudo) ")

    def test_the_cuda_compiler_is_that_of_one_file(self):
        """Another version is another folder; NVIDIA's is installed only on request."""
        self.assertEqual(self.setup(env={"BITNET_CUDA_TOOLKIT": "skip"}).returncode, 0)
        toolkit = self.tree / "build/cuda-toolkit"
        self.assertFalse(toolkit.exists())
        self.assertIn("missing: the CUDA compiler", self.setup("--check").stderr)
        self.assertEqual(self.setup().returncode, 0)
        self.assertFalse((toolkit / "lib").exists() or (toolkit / "bin/nvlink").exists(), "what nothing uses")
        self.toolkit_version.write_text("toolkit==2\n", encoding="utf-8")
        self.assertEqual(self.setup().returncode, 0)
        self.assertIn("pip --disable-pip-version-check", self.calls())
        self.assertEqual((toolkit / "toolkit.stamp").read_text(encoding="utf-8"), "toolkit==2\n")
        self.assertEqual([p.name for p in (self.tree / "build").glob("cuda-toolkit*")], ["cuda-toolkit"])
        self.toolkit_version.unlink()  # a tree without plugins/cuda
        self.assertEqual(self.setup().stderr, "")

    def test_fewer_parts_install_less(self):
        self.assertEqual(self.setup("--for", "demo").returncode, 0)
        few = self.installed()
        self.assertIn("libyaml-cpp-dev", few)
        self.assertNotIn("glslc", few)
        self.assertFalse((self.tree / "build/venv").exists())
        self.assertEqual(self.setup("--for", "build").returncode, 0)
        self.assertEqual(self.installed() - few,
                         {"make", "glslc", "spirv-tools", "libvulkan-dev", "opencl-headers",
                          "libgtest-dev", "clang-14", "llvm-spirv-14", "libze-dev",
                          "clang-15", "lld-15", "clang-19", "lld-19", "rocm-device-libs", "python3",
                          "systemtap-sdt-dev"})

    def test_check_installs_nothing(self):
        done = self.setup("--check")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"setup: missing: g\+\+ cmake .*\n.*scripts/setup --for test")
        self.assertEqual(self.installed(), {"bash"})
        self.assertNotIn("apt-get", self.calls())

    def test_each_step_that_fails_ends_it_and_is_reported(self):
        for fail, status, words, why in STEPS:
            with self.subTest(f"{fail}: {why}"):
                self.doCleanups()
                self.setUp()
                # A stale environment, so that it has to be removed.
                (self.tree / "build/venv").mkdir(parents=True)
                done = self.setup(fail=fail, status=status)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(words, done.stderr)
                if not fail.startswith("no"):
                    self.assertIn("planted", done.stderr)
                # The advice comes last.
                last = done.stderr.splitlines()[-1]
                self.assertRegex(last, "^setup: .*(start|check|all that it said)")
                self.assertEqual(re.findall("<<|syntax error", done.stderr), [])

                done = self.setup()
                self.assertEqual(done.returncode, 0, f"once mended: {done.stderr}")
                self.assertEqual(self.setup().stderr, "")


if __name__ == "__main__":
    unittest.main()
