"""Code that was not judged must not be loaded with a plugin, whatever its file says."""

import os
import shutil

import support
from test_lint import FAKES, Asking, manifest

# Libraries of the fake, and the run path that it was linked with.
NEEDED = (b"libfake-absent-one.so", b"libfake-absent-two.so")
RUN_PATH = b"/nowhere:"


def replaced(data, old, new):
    """Replaces a name in the string table; a shorter one ends earlier."""
    assert data.count(old + b"\0") == 1 and len(new) <= len(old), (old, new)
    return data.replace(old + b"\0", new + bytes(len(old) - len(new) + 1))


class ForeignCode(Asking):
    """The fake needs two libraries. Where foreign code gets in, it ends the probe: BN-P-EXIT."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(FAKES, "libfake-run-path.so"), "rb") as f:
            self.data = f.read()
        begin = self.data.index(RUN_PATH)
        self.run_path = self.data[begin:self.data.index(b"\0", begin)]
        self.put("deps", *NEEDED)

    def put(self, folder, *names, foreign=False):
        os.makedirs(self.path(folder), exist_ok=True)
        for name in names:
            source = "libfake-foreign.so" if foreign else "absent/" + NEEDED[0].decode()
            shutil.copy(os.path.join(FAKES, source), self.path(f"{folder}/{name.decode()}"))
            os.chmod(self.path(f"{folder}/{name.decode()}"), 0o755)

    def verdict(self, data, run_path="deps", code=22):
        """What the loader says, and lint the same."""
        if run_path is not None:
            whole = run_path if "$" in run_path or run_path.startswith(".") else self.path(run_path)
            data = replaced(data, self.run_path, whole.encode())
        plugin = self.path("lib/plugin.so", data)
        self.path("backends.d/50-run-path.yaml", manifest("run-path").replace("x.so", plugin))
        report = self.lint("--json", plugin)
        errors = {one["code"] for one in report.json["files"][0]["findings"]
                  if one["level"] == "error"}
        self.assertEqual(report.code, code, report)
        got = self.why("--json", "--backend-dir", self.path("backends.d")).json
        said = got["backends"][0]["code"]
        self.assertTrue(said in errors or not errors, (said, errors))
        return said

    def test_a_sound_plugin_is_accepted(self):
        self.assertEqual(self.verdict(self.data, code=0), "BN-OK")

    def test_foreign_code_would_be_seen(self):
        self.put("deps", *NEEDED, foreign=True)
        self.assertEqual(self.verdict(self.data, code=0), "BN-P-EXIT")

    def test_names_that_are_paths(self):
        self.put(".", b"one.so", foreign=True)
        for name in (b"./one.so", b"deps/../one.so", b"$ORIGIN",
                     b"${ORIGIN}/../one.so"):
            with self.subTest(name):
                self.assertEqual(self.verdict(replaced(self.data, NEEDED[0], name)),
                                 "BN-I-FOREIGN")

    def test_libraries_that_others_may_write(self):
        os.chmod(self.path("deps/" + NEEDED[1].decode()), 0o777)
        self.assertEqual(self.verdict(self.data), "BN-T-MODE")

    def test_folders_that_others_may_write(self):
        os.chmod(self.path("deps"), 0o777)
        self.assertEqual(self.verdict(self.data), "BN-I-RUN-PATH")

    def test_links_out_of_the_run_path(self):
        self.put("public", *NEEDED, foreign=True)
        os.chmod(self.path("public"), 0o777)
        for name in NEEDED:
            link = self.path("deps/" + name.decode())
            os.remove(link)
            os.symlink(self.path("public/" + name.decode()), link)
        self.assertEqual(self.verdict(self.data), "BN-T-MODE")

    def test_run_paths_that_the_linker_expands(self):
        self.put(".", *NEEDED, foreign=True)
        for path in ("$ORIGIN/../cwd", "/${ORIGIN}/../cwd", "${ORIGIN}/../cwd", "/usr/$LIB",
                     "./deps"):
            with self.subTest(path):
                self.assertEqual(self.verdict(self.data, path), "BN-I-RUN-PATH")

    def test_filters_of_libraries_are_rejected_as_foreign(self):
        for fake in ("auxiliary", "filter", "needs-path"):
            with self.subTest(fake):
                shutil.copy(os.path.join(FAKES, f"libfake-{fake}.so"),
                            self.path("deps/" + NEEDED[0].decode()))
                self.assertEqual(self.verdict(self.data), "BN-I-FOREIGN")

    def test_a_writable_folder_of_ld_library_path_is_rejected(self):
        """A folder of LD_LIBRARY_PATH comes before the run path of the plugin."""
        self.put("public", *NEEDED, foreign=True)
        os.chmod(self.path("public"), 0o777)
        usual = self.environment
        self.environment = lambda extra=None: {**usual(extra),
                                               "LD_LIBRARY_PATH": self.path("public")}
        self.assertEqual(self.verdict(self.data), "BN-T-MODE")

    def test_hashes_of_the_manifest(self):
        plugin = self.path("lib/plugin.so", replaced(self.data, self.run_path,
                                                     self.path("deps").encode()))
        for digits, code in (("0", "BN-T-HASH"),):
            text = manifest("run-path").replace("x.so", plugin)
            text += "dependencies: {%s: %s}\n" % (NEEDED[0].decode(), digits * 64)
            installed = self.path("backends.d/50-run-path.yaml", text)
            got = self.why("--json", "--backend-dir",
                          self.path("backends.d")).json
            self.assertEqual(got["backends"][0]["code"], code)
            found = self.findings("--manifest", installed, plugin, code=22)
            self.assertEqual(found["hashes of dependencies"]["code"], code)


if __name__ == "__main__":
    support.main()
