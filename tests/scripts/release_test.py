"""scripts/release in a small tree: which releases it rejects, and that a user can verify the files that it made."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSIONS = '''case $* in
  --list) echo "bitnet 1.2.0"; echo "cpu 1.2.0"; echo "cuda 1.1.7"; echo "vulkan 1.2.1" ;;
  *cuda) echo 1.1.7 ;; *vulkan) echo 1.2.1 ;; *bitnet) echo 1.2.0 ;; *) exit 2 ;;
esac'''
# deb-core and rpm make packages of several components.
PACKAGE = '''if [ "$1" = deb-backend ]; then name=$2; shift; fi
mkdir -p "$3"; echo "$1 $name" >> ../packaged
case $1 in
  source) echo a > "$3/bitnet-1.2.0.tar.gz" ;;
  deb-core) for name in libbitnet0_1.2.0-1_amd64.deb bitnet-backend-dev_1.2.0-1_amd64.deb bitnet-backend-gpu_1.2.0-1_all.deb; do
      echo a > "$3/$name"; done ;;
  rpm) for name in libs-1.2.0 backend-devel-1.2.0 backend-cpu-1.2.0 backend-vulkan-1.2.1; do
      echo a > "$3/bitnet-$name-1.x86_64.rpm"; done ;;
  wheel) echo a > "$3/bitnet_runtime-1.2.0-py3-none-any.whl" ;;
  vulkan) echo a > "$3/bitnet-backend-vulkan_1.2.1-1_amd64.deb"; echo a > "$3/bitnet-backend-vulkan-dbgsym_1.2.1-1_amd64.deb" ;;
  cuda) if [ -e ../cuda ]; then exit $(cat ../cuda); fi; echo a > "$3/bitnet-backend-cuda_1.1.7-1_amd64.deb" ;;
esac'''
CHANGES = "# Changes\n\n## Unreleased\n\n- Something else.\n\n## 1.2.0 - 2026-11-24\n\n- It does more.\n\n## 1.1.0 - 2026-01-01\n\n- Old.\n"


def run(*words, **more):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, **more)


class Release(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.tree = self.folder / "tree"
        (self.tree / "scripts").mkdir(parents=True)
        (self.folder / "bin").mkdir()
        shutil.copy(ROOT / "scripts/release", self.tree / "scripts")
        self.script("check-versions", VERSIONS)
        self.script("check-abi", 'echo "compared with ${2:-what is recorded}"; if [ -e ../broken ]; then exit 1; fi')
        self.script("package", PACKAGE)
        self.script("sbom", 'echo "$4" > "$2/parts.spdx.json"; exit 77')
        self.write(self.tree / "packaging/rpm/bitnet.spec", "%package backend-cpu\n%package backend-vulkan\n")
        for name, version in (("vulkan", "1.2.1"), ("cuda", "1.1.7")):
            self.write(self.tree / f"plugins/{name}/CHANGELOG.md", f"# Changes\n\n## Unreleased\n\n- Next.\n\n## {version} - 2026-12-01\n\n- Of {name}.\n")
        self.write(self.folder / "bin/cmake", "#!/bin/sh\n[ ! -e ../unbuilt ]\n")
        self.write(self.tree / "CHANGELOG.md", CHANGES)
        self.write(self.tree / ".gitignore", "build/\n")
        self.write(self.tree / "abi/layout/a.golden", "A = 1\n")
        self.git("init", "-q", "-b", "main")
        self.commit("first")
        self.commit("second")
        self.git("tag", "v1.2.0")
        self.key = self.folder / "release.key"
        run("openssl", "genpkey", "-algorithm", "ed25519", "-out", self.key)
        run("openssl", "pkey", "-in", self.key, "-pubout", "-out", self.folder / "release.pem")

    def write(self, file, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def script(self, name, text):
        self.write(self.tree / "scripts" / name, f"#!/bin/sh\n{text}\n")

    def git(self, *words):
        done = run("git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words, cwd=self.tree)
        self.assertEqual(done.returncode, 0, done.stderr)

    def commit(self, text):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", text)

    def release(self, *words):
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return run(self.tree / "scripts/release", *words, env={**os.environ, "PATH": path})

    def rejected(self, why, *words, ends=1):
        done = self.release(*words)
        self.assertEqual(done.returncode, ends, done.stdout + done.stderr)
        self.assertIn(why, done.stderr)
        self.assertFalse((self.tree / "build/release-1.2.0/SHA256SUMS").exists(), "and it made one all the same")

    def made(self, *words):
        done = self.release(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def test_a_signed_release_has_each_file_and_its_signature(self):
        said = self.made("--key", self.key)
        self.assertIn("there is no release before this one", said)
        self.assertIn("were not validated", said)
        folder = self.tree / "build/release-1.2.0"
        self.assertEqual({file.name for file in folder.iterdir()}, {
            "bitnet-1.2.0.tar.gz", "libbitnet0_1.2.0-1_amd64.deb", "bitnet-libs-1.2.0-1.x86_64.rpm",
            "bitnet-backend-dev_1.2.0-1_amd64.deb", "bitnet-backend-devel-1.2.0-1.x86_64.rpm", "bitnet-backend-gpu_1.2.0-1_all.deb",
            "bitnet_runtime-1.2.0-py3-none-any.whl", "parts.spdx.json", "CHANGES.md", "SHA256SUMS", "SHA256SUMS.sig"})
        self.assertEqual((folder / "CHANGES.md").read_text(encoding="utf-8"), "- It does more.\n")
        # As users do it by docs/how-to/release.md.
        check = ("openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", self.folder / "release.pem",
                 "-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig")
        self.assertEqual(run(*check, cwd=folder).returncode, 0)
        self.assertEqual(run("sha256sum", "--check", "SHA256SUMS", cwd=folder).returncode, 0)
        self.assertEqual(len((folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()), 9)
        with open(folder / "SHA256SUMS", "a", encoding="utf-8") as file:
            file.write("0  more\n")
        self.assertNotEqual(run(*check, cwd=folder).returncode, 0)

    def test_an_unsigned_release_has_no_signature(self):
        self.made("--unsigned")
        self.assertFalse((self.tree / "build/release-1.2.0/SHA256SUMS.sig").exists())

    def test_missing_or_wrong_keys_are_rejected(self):
        self.rejected("no key was named")
        self.rejected("contradict", "--unsigned", "--key", self.key)
        self.rejected("is no private Ed25519 key", "--key", self.folder / "absent")
        self.rejected("is no private Ed25519 key", "--key", self.folder / "release.pem")
        self.rejected("Usage", "--unsigned", "more", ends=2)

    def test_a_tree_that_is_not_the_tag_is_rejected(self):
        self.git("tag", "-d", "v1.2.0")
        self.rejected("v1.2.0 is not this commit", "--unsigned")
        self.git("tag", "v1.2.0", "HEAD^")
        self.rejected("v1.2.0 is not this commit", "--unsigned")
        self.write(self.tree / "more", "")
        self.rejected("something is not committed", "--unsigned")
        self.made("--unsigned", "--trial")
        self.assertEqual((self.tree / "build/release-1.2.0/CHANGES.md").read_text(encoding="utf-8"),
                         "- Something else.\n")

    def test_versions_that_differ_are_rejected(self):
        self.script("check-versions", "exit 1")
        self.rejected("the versions differ", "--unsigned", "--trial")

    def test_a_changelog_without_the_version_is_rejected(self):
        self.write(self.tree / "CHANGELOG.md", CHANGES.replace("1.2.0", "1.2.01"))
        self.rejected("something is not committed", "--unsigned")
        self.commit("another version")
        self.git("tag", "-f", "v1.2.0")
        self.rejected("no section '## 1.2.0'", "--unsigned")

    def test_failed_lists_of_parts_stop_the_release(self):
        self.script("sbom", "exit 1")
        self.rejected("the lists of parts", "--unsigned", "--trial")

    def test_a_backend_is_released_by_its_own_tag(self):
        """Of its own tag, version and changelog, whatever those of the core are."""
        self.rejected("vulkan-v1.2.1 is not this commit", "--unsigned", "--component", "vulkan")
        self.git("tag", "vulkan-v1.2.1")
        self.git("tag", "-d", "v1.2.0")
        self.made("--unsigned", "--component", "vulkan")
        folder = self.tree / "build/release-vulkan-1.2.1"
        self.assertEqual({file.name for file in folder.iterdir()}, {
            "bitnet-backend-vulkan_1.2.1-1_amd64.deb", "bitnet-backend-vulkan-dbgsym_1.2.1-1_amd64.deb",
            "bitnet-backend-vulkan-1.2.1-1.x86_64.rpm", "parts.spdx.json", "CHANGES.md", "SHA256SUMS"})
        self.assertEqual((folder / "CHANGES.md").read_text(encoding="utf-8"), "- Of vulkan.\n")
        self.assertEqual((folder / "parts.spdx.json").read_text(encoding="utf-8"), "vulkan\n")

    def test_a_backend_without_an_rpm_package_is_packaged_for_debian_alone(self):
        self.git("tag", "cuda-v1.1.7")
        self.made("--unsigned", "--component", "cuda")
        self.assertTrue((self.tree / "build/release-cuda-1.1.7/bitnet-backend-cuda_1.1.7-1_amd64.deb").exists())
        self.assertNotIn("rpm", (self.folder / "packaged").read_text(encoding="utf-8"))
        for status in ("77", "1"):  # no compiler for it, and a build that fails
            shutil.rmtree(self.tree / "build")
            self.write(self.folder / "cuda", status)
            self.rejected("bitnet-backend-cuda could not be made", "--unsigned", "--component", "cuda")

    def test_a_component_that_cannot_be_released_is_rejected(self):
        self.rejected("mend what it says above", "--unsigned", "--component", "rocm")
        self.git("tag", "vulkan-v1.2.1")
        (self.folder / "broken").touch()
        self.git("tag", "v1.1.0", "HEAD^")
        # No released core could load a plugin for a contract that is not released.
        self.rejected("the gate of the contract ended with 1", "--unsigned", "--component", "vulkan")

    def test_packages_of_before(self):
        before = self.folder / "before"
        before.mkdir()
        (before / "libbitnet0_1.2.0-1_amd64.deb").touch()
        self.rejected("there is no bitnet-libs-1.2.0-*.rpm", "--unsigned", "--packages", before)
        (before / "bitnet-libs-1.2.0-1.x86_64.rpm").touch()
        self.rejected("there is no bitnet_runtime-1.2.0-*.whl", "--unsigned", "--packages", before)

    def test_a_failed_gate_of_the_contract_stops_the_release(self):
        (self.folder / "broken").touch()
        self.rejected("the gate of the contract ended with 1", "--unsigned")
        (self.folder / "unbuilt").touch()
        self.rejected("the gate of the contract ended with 3", "--unsigned")
        (self.folder / "unbuilt").unlink()
        for last, breaks in (("v1.1.0", False), ("v0.9.0", True)):
            with self.subTest(last):
                self.git("tag", last, "HEAD^")
                if breaks:
                    said = self.made("--unsigned")
                    self.assertIn(f"v1.2.0 may break what {last} promised", said)
                    self.assertIn("/abi/layout", said, "compared with the recorded baseline, not with the release's")
                else:
                    self.rejected("the gate of the contract ended with 1", "--unsigned")
                self.git("tag", "-d", last)

    def test_minors_before_one(self):
        (self.folder / "broken").touch()
        for version, last, breaks in (("0.3.0", "v0.2.9", True), ("0.3.1", "v0.3.0", False)):
            with self.subTest(version):
                self.script("check-versions", f"echo bitnet {version} | sed 's/bitnet //'")
                self.script("package", f'mkdir -p "$3"; touch "$3/libbitnet0_{version}-1_amd64.deb" '
                            f'"$3/bitnet-libs-{version}-1.x86_64.rpm" "$3/bitnet_runtime-{version}-py3-none-any.whl"')
                self.git("tag", last)
                self.commit("work goes on")
                done = self.release("--unsigned", "--trial")
                self.assertEqual(done.returncode, 0 if breaks else 1, done.stderr)
                self.git("tag", "-d", last)


if __name__ == "__main__":
    unittest.main()
