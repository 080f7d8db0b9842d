"""What `scripts/package gpu-bundle` makes runs where there are no tree, build, git and modules of Python but NumPy.

    test_bundle.py TREE BUILD STAND_IN

The root has the system's /usr, without git and compilers, and a driver that computes on the processor. Libraries are
looked at one by one, as the system's /usr has those that a bare machine has not.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE, BUILD, STAND_IN = (pathlib.Path(word) for word in sys.argv[1:4])
SKIP = 77
NAMESPACES = ("unshare", "--mount", "--pid", "--fork")
MOST_BYTES = 45 << 20
RUN = ("/bundle/run", "--short", "--models", "/tmp/models")
# What every machine with Python has: glibc, and the libraries of GCC.
OF_THE_SYSTEM = re.compile(r"(ld-linux[-.\w]*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s))\.so[.\d]*")
# In namespaces that end with it. Words: root, bundle, driver, modules, command.
INSIDE = r"""
root=$1 bundle=$2 driver=$3 modules=$4
shift 4
mount -t tmpfs -o mode=755 root "$root"
mkdir "$root"/usr "$root"/etc "$root"/proc "$root"/dev "$root"/bundle "$root"/driver "$root"/modules
mkdir -m 1777 "$root"/tmp
mount --rbind /usr "$root/usr"
for link in bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$link" ]; then cp -a "/$link" "$root/$link"; fi
done
for program in git gcc g++ cc c++ cmake nvcc; do
  if [ -e "$root/usr/bin/$program" ]; then mount --bind /dev/null "$root/usr/bin/$program"; fi
done
mount --bind "$bundle" "$root/bundle"
mount --bind "$driver" "$root/driver"
mount --bind "$modules" "$root/modules"
mount -t proc proc "$root/proc"
for node in null zero random urandom; do : >"$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"; done
mkdir "$root/dev/shm"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp PYTHONPATH=/modules LD_LIBRARY_PATH=/driver "$@"
"""


def modules_of(folder):
    """NumPy alone, of the Python that runs this, into a folder."""
    import numpy  # pylint: disable=import-outside-toplevel
    place = pathlib.Path(numpy.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (place.parent / name).is_dir():
            shutil.copytree(place.parent / name, folder / name)


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="bitnet-bundle-", ignore_cleanup_errors=True)
        cls.addClassCleanup(cls.folder.cleanup)
        to = pathlib.Path(cls.folder.name)
        made = subprocess.run([TREE / "scripts/package", "gpu-bundle", "--build", BUILD, "--to", to / "made", "--in",
                               to / "work"], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
        shutil.rmtree(to / "work")
        cls.archive, = (to / "made").iterdir()
        subprocess.run(["tar", "-C", to, "-xJf", cls.archive], check=True)
        cls.bundle = to / "bitnet-gpu"
        (to / "driver").mkdir()
        shutil.copy(STAND_IN / "libcuda.so.1", to / "driver/libcuda.so.1")
        (to / "modules").mkdir()
        modules_of(to / "modules")
        (to / "root").mkdir()

    def inside(self, *words):
        places = [str(pathlib.Path(self.folder.name, name)) for name in ("root", "bitnet-gpu", "driver", "modules")]
        return subprocess.run([*NAMESPACES, "--kill-child", "sh", "-ec", INSIDE, "sh", *places, *words],
                              capture_output=True, text=True, check=False, timeout=1200, stdin=subprocess.DEVNULL)

    def test_it_is_small(self):
        self.assertLessEqual(self.archive.stat().st_size, MOST_BYTES)
        self.assertEqual(self.archive.name, "bitnet-gpu-cuda.tar.xz")

    def test_it_names_the_driver_that_it_needs(self):
        written = (self.bundle / "DRIVER").read_text(encoding="utf-8")
        self.assertEqual(written, (BUILD / "plugins/cuda/driver.txt").read_text(encoding="utf-8"))
        self.assertRegex(written, r"must support CUDA \d+\.0 or newer")

    def test_it_has_its_libraries(self):
        release = self.bundle / "build/release"
        elves = [file for file in self.bundle.rglob("*") if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
        ours = [file for file in elves if release in file.parents]
        self.assertGreater(len(ours), 10)
        for file in ours:
            printed = subprocess.run(["ldd", file], capture_output=True, text=True, check=False,
                                     env={**os.environ, "LD_LIBRARY_PATH": str(release / "lib")}).stdout
            for name, where in re.findall(r"^\t(\S+) => (not found|/\S+)", printed, re.MULTILINE):
                if not OF_THE_SYSTEM.fullmatch(name):
                    self.assertTrue(where.startswith(str(release / "lib")), f"{file.name} takes {name} from {where}")

    def test_the_first_steps_of_the_lane(self):
        done = self.inside(*RUN, "--only", "kernels,conformance,parity,models", "--shapes", "2b-4t", "--seconds", "900")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        revision = (self.bundle / "REVISION").read_text(encoding="utf-8").strip()
        self.assertIn(f", {revision}\n", done.stdout.splitlines(keepends=True)[0])
        for start in ("| kernels, states, switches off |", "| conformance |", "| parity |", "| demo model: text |",
                      "| random 2b-4t: KL, --activations float |"):
            self.assertEqual(done.stdout.count(f"\n{start}"), 1, f"{start}\n{done.stdout}\n{done.stderr}")

    def test_steps_for_which_there_is_no_time(self):
        done = self.inside(*RUN, "--only", "parity,soak", "--seconds", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there was no time for parity, soak", done.stderr)

    def test_without_a_driver_it_says_why(self):
        done = self.inside("env", "LD_LIBRARY_PATH=/nonexistent", *RUN)
        self.assertEqual(done.returncode, SKIP, done.stdout + done.stderr)
        self.assertIn("skip: lane gpu: cuda: BN-P-UNAVAILABLE: ", done.stdout)


if __name__ == "__main__":
    try:
        import numpy  # noqa: F401 pylint: disable=unused-import
    except ImportError:
        print(f"skip: {sys.executable} has no numpy; scripts/setup makes build/venv, which has it")
        sys.exit(SKIP)
    for tool in ("xz", "strip", "ldd", "unshare"):
        if shutil.which(tool) is None:
            print(f"skip: there is no {tool}; apt-get install xz-utils binutils libc-bin util-linux")
            sys.exit(SKIP)
    if subprocess.run([*NAMESPACES, "sh", "-c", "mount -t tmpfs none /mnt && chroot / true"], capture_output=True,
                      check=False).returncode != 0:
        print("skip: mounting and changing the root folder are not permitted here, as in most containers")
        sys.exit(SKIP)
    unittest.main(argv=sys.argv[:1], verbosity=2)
