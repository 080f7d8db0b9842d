"""bitnet-backend-lint: everything about a plugin file at once."""

import glob
import hashlib
import json
import os
import re
import subprocess

import support

BIN = os.path.dirname(os.path.realpath(support.PROGRAM))
LINT = os.path.join(BIN, "bitnet-backend-lint")
FAKES = os.path.join(BIN, "..", "tests", "fakes")

MANIFEST = """schema: 1
name: %s
version: 1.2.3
vendor: org.example
license: CC0-1.0
library: x.so
abi: {major: %d, min: %d, max: %d}
class: other
"""


def abi_range():
    """The ABI versions in the notes of this tree's plugins: (major, oldest minor, newest minor)."""
    with open(os.path.join(support.SOURCE, "abi/include/bitnet/abi/base.h")) as f:
        said = re.search(r'BITNET_ABI_RANGE "(\d+)\.(\d+)-(\d+)"', f.read())
    return tuple(int(number) for number in said.groups())


def manifest(name):
    return MANIFEST % (name, *abi_range())


class Asking(support.Case):
    def lint(self, *words):
        done = subprocess.run([LINT, *words], capture_output=True, cwd=self.home,
                              env=self.environment(), timeout=support.TIMEOUT_S)
        result = support.Result(done.returncode, done.stdout, done.stderr)
        self.assertIsNone(support.SANITIZER.search(result.stderr), result)
        return result

    def fake(self, name):
        """A copy, so that owner and mode are ours."""
        with open(os.path.join(FAKES, f"libfake-{name}.so"), "rb") as f:
            return self.path(f"lib/libfake-{name}.so", f.read())

    def findings(self, *words, code):
        result = self.lint("--json", *words)
        self.assertEqual(result.code, code, result)
        return {one["check"]: one for one in result.json["files"][0]["findings"]}


class Lint(Asking):
    def test_a_sound_plugin_has_no_findings(self):
        file = self.fake("hardened")
        result = self.lint(file)
        self.assertEqual((result.code, result.stderr), (0, ""), result)
        self.assertIn("0 errors, 0 warnings", result.text)
        report = self.lint("--json", file).json["files"][0]
        self.assertEqual((report["name"], report["version"], report["errors"]),
                         ("hardened", "1.2.3", 0))
        self.assertEqual({one["level"] for one in report["findings"]}, {"ok"})

    def test_all_errors_at_once(self):
        with open(self.fake("textrel"), "rb") as f:
            data = f.read().replace(b"vendor=", b"vendor ")
        found = self.findings(self.path("two.so", data), code=22)
        for check, code in (("identity", "BN-I-NOTE"), ("text relocations", "BN-I-TEXTREL")):
            self.assertEqual((found[check]["level"], found[check]["code"]), ("error", code))
            self.assertTrue(found[check]["hint"])
        self.assertEqual(found["exports"]["level"], "ok")

    def test_each_defect_has_its_code(self):
        for fake, check, code in (("unique", "exports", "BN-I-EXPORTS"),
                                  ("static-tls", "static TLS", "BN-I-STATIC-TLS"),
                                  ("exec-stack", "stack", "BN-I-EXEC-STACK"),
                                  ("needs-new-glibc", "versions", "BN-I-VERSION"),
                                  ("needy", "dependencies", "BN-I-DEPENDENCY"),
                                  ("undefined", "symbols", "BN-A-LOAD"),
                                  ("relative-run-path", "run path", "BN-I-RUN-PATH"),
                                  ("pinned", "unloadable", "BN-I-PINNED"),
                                  ("other-major", "exports", "BN-A-MAJOR"),
                                  ("note-minor", "abi", "BN-A-MINOR")):
            with self.subTest(fake):
                found = self.findings(self.fake(fake), code=22)
                self.assertEqual((found[check]["level"], found[check]["code"]), ("error", code))

    def test_warnings_do_not_fail_lint(self):
        for fake, check, code in (("lazy", "hardening", "BN-I-HARDENING"),
                                  ("nodelete", "unloadable", "BN-I-PINNED"),
                                  ("origin-run-path", "run path", "BN-I-RUN-PATH")):
            with self.subTest(fake):
                found = self.findings(self.fake(fake), code=0)
                self.assertEqual((found[check]["level"], found[check]["code"]), ("warning", code))

    def test_a_writable_file_before_installation_is_a_warning(self):
        file = self.fake("hardened")
        os.chmod(file, 0o666)
        found = self.findings(file, code=0)
        self.assertEqual((found["trust"]["level"], found["trust"]["code"]),
                         ("warning", "BN-T-MODE"))

    def test_a_manifest_that_differs_from_its_file_is_reported(self):
        file = self.fake("hardened")
        with open(file, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        good = self.path("50-hardened.yaml", manifest("hardened") + f"sha256: {digest}\n")
        found = self.findings("--manifest", good, file, code=0)
        self.assertEqual(found["hash"]["text"], digest)
        wrong = self.path("50-other.yaml", manifest("other") + f"sha256: {'0' * 64}\n")
        found = self.findings("--manifest", wrong, file, code=22)
        self.assertEqual(found["hash"]["code"], "BN-T-HASH")
        self.assertEqual(found["manifest"]["code"], "BN-I-NAME")
        packages = self.path("50-needy.yaml",
                             manifest("needy") + "packages: {libfake-absent-one.so: one-package}\n")
        found = self.findings("--manifest", packages, self.fake("needy"), code=22)
        self.assertIn("install one-package", found["dependencies"]["hint"])
        bad = self.path("bad.yaml", "schema: 1\n")
        self.assertEqual(self.findings("--manifest", bad, file, code=22)["manifest"]["code"],
                         "BN-M-FIELD")

    def test_manifests_of_this_tree(self):
        """What packages bring together says the same."""
        libraries = glob.glob(os.path.join(BIN, "../lib*/**/libbitnet-backend-*.so"), recursive=True)
        if not libraries:
            self.skipTest("no backend was built")
        for library in libraries:
            name = os.path.basename(library)[len("libbitnet-backend-"):-len(".so")]
            with self.subTest(name):
                beside = os.path.join(BIN, "../share/bitnet/backends.d", f"50-{name}.yaml")
                found = self.findings("--manifest", beside, library, code=0)
                self.assertNotIn("manifest", found, "a warning")

    def test_one_bad_file_of_several_decides_the_exit_code(self):
        good, bad = self.fake("hardened"), self.fake("textrel")
        self.assertEqual(self.lint(good, good).code, 0)
        self.assertEqual(self.lint(good, bad).code, 22)
        result = self.lint(good, "nowhere.so")
        self.assertEqual(result.code, 1)
        self.assertIn("nowhere.so", result.stderr)
        self.assertEqual(self.lint("nowhere.so", bad).code, 22)
        self.assertIn("problem", self.lint("--json", "nowhere.so").json["files"][0])
        self.assertEqual(self.lint(self.path("text.so", b"\033[2Jhello")).code, 22)
        self.assertNotIn("\033", self.lint(self.path("text.so")).text)

    def test_big_files_are_not_read_whole(self):
        """A sparse file: 64 GiB could be neither read in time nor held in memory."""
        file = self.fake("hardened")
        try:
            os.truncate(file, 64 << 30)
        except OSError as e:
            self.skipTest(f"the file system has no such files: {e}")
        self.assertEqual(self.lint(file).code, 0)

    def test_wrong_command_lines_are_rejected(self):
        self.assertEqual(self.lint().code, 2)
        self.assertEqual(self.lint("--frob", "x").code, 2)
        self.assertEqual(self.lint("--manifest").code, 2)
        self.assertIn("--manifest", self.lint("--help").text)


class Sign(support.Case):
    def setUp(self):
        super().setUp()
        with open(os.path.join(FAKES, "libfake-hardened.so"), "rb") as f:
            self.file = self.path("lib/libfake-hardened.so", f.read())
        os.mkdir(self.path("keys"))
        for name in ("vendor", "stranger"):
            try:
                subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out",
                                self.path(f"{name}.key")], check=True, capture_output=True)
            except FileNotFoundError:
                self.skipTest("no program openssl to make keys with")
            os.chmod(self.path(f"{name}.key"), 0o600)
        subprocess.run(["openssl", "pkey", "-in", self.path("vendor.key"), "-pubout", "-out",
                        self.path("keys/vendor.pem")], check=True)
        self.manifest = self.path("backends.d/50-hardened.yaml", manifest("hardened").replace(
            "x.so", self.file))
        self.keys = ("--trusted-keys", self.path("keys"))
        self.dir = ("--backend-dir", self.path("backends.d"))

    def state(self, *words):
        got = self.why("--json", *self.dir, *words).json
        return got["backends"][0]["code"]

    def test_a_signed_file_is_verified_until_it_changes(self):
        self.rejected(22, "is not signed", "backends", "verify", self.file, *self.keys)
        result = self.ok("backends", "sign", self.file, "--key", self.path("vendor.key"))
        self.assertEqual(result.text, self.file + ".sig\n")
        self.assertIn("signed by vendor.pem",
                      self.ok("backends", "verify", self.file, *self.keys).text)
        got = self.ok("backends", "verify", self.file, *self.keys, "--json").json
        self.assertEqual(got["key_file"], "vendor.pem")
        with open(self.file, "ab") as f:
            f.write(b"!")
        self.rejected(22, "this one has", "backends", "verify", self.file, *self.keys)
        self.ok("backends", "sign", self.file, "--key", self.path("stranger.key"))
        self.rejected(22, "none of the 1 trusted", "backends", "verify", self.file, *self.keys)

    def test_a_required_signature_must_be_there(self):
        self.assertEqual(self.state(), "BN-OK")
        self.assertEqual(self.state("--require-signature", *self.keys), "BN-T-SIGNATURE")
        self.ok("backends", "sign", self.file, "--key", self.path("vendor.key"))
        self.assertEqual(self.state("--require-signature", *self.keys), "BN-OK")
        self.assertEqual(self.state("--require-signature", "--trusted-keys",
                                    self.path("nowhere")), "BN-T-MISSING")

    def test_without_a_trusted_key_the_advice_is_about_keys(self):
        os.mkdir(self.path("empty"))
        for folder, code in (("nowhere", "BN-T-MISSING"), ("empty", "BN-T-SIGNATURE")):
            got = self.why(*self.dir, "--require-signature", "--trusted-keys",
                          self.path(folder)).text
            with self.subTest(folder):
                self.assertIn(code, got)
                self.assertIn(f"put the public keys of those who may sign, as *.pem, into "
                              f"{self.path(folder)}, or name another folder in --trusted-keys", got)
                self.assertNotIn("install the backend's package again", got)

    def test_keys_that_others_may_read_are_rejected(self):
        os.chmod(self.path("vendor.key"), 0o644)
        self.rejected(22, "may be read by others", "backends", "sign", self.file, "--key",
                     self.path("vendor.key"))
        self.rejected(2, "needs --key", "backends", "sign", self.file)
        self.rejected(2, "takes one FILE", "backends", "verify")

    def test_the_allow_list_decides_which_backends_are_used(self):
        build_id = json.loads(subprocess.run([LINT, "--json", self.file], capture_output=True,
                                             check=True).stdout)["files"][0]["build_id"]
        for allowed, code in (("hardened", "BN-OK"), ("cpu", "BN-T-NOT-ALLOWED"),
                              (f"cpu,hardened@{build_id}", "BN-OK"),
                              ("hardened@00112233445566", "BN-T-HASH")):
            with self.subTest(allowed):
                self.assertEqual(self.state("--allow-backends", allowed), code)
        self.rejected(2, "the allow-list has '*'", "backends", "why", "--allow-backends", "*")


if __name__ == "__main__":
    support.main()
