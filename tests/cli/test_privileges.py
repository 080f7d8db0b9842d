"""Whose folders and settings decide which code runs: the user's own for a user, and only root's for root."""

import os
import shutil
import subprocess
import unittest

import support

NOBODY = 65534


class Places(support.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.home, 0o755)
        self.mine = self.path("mine")
        os.makedirs(self.mine)

    def searched(self, *words, env=None):
        result = self.why("--json", *words, env=env)
        return {one["directory"]: one["result"] for one in result.json["searched"]}, result.stderr


@unittest.skipUnless(os.geteuid() == 0, "only root can show what root does")
class Root(Places):
    def test_variables_do_not_name_code(self):
        found, _ = self.searched(env={"BITNET_BACKEND_PATH": self.mine})
        self.assertIn("not searched: root", found[self.mine])
        self.assertRegex(found[self.home + "/data/bitnet/backends.d"],
                         "^not searched: root .* without --user-backends$")
        found, errors = self.searched(env={"BITNET_BACKEND_DIR": self.mine})
        self.assertNotIn(self.mine, found)
        self.assertIn("'backend-dir' of BITNET_BACKEND_DIR is ignored", errors)

    def test_root_ignores_folders_of_variables_and_config(self):
        config = self.path("any.yaml", f"backend-dir: [{self.mine}]\nuser-backends: on\n")
        self.path("config/bitnet/bitnet.yaml", f"backend-dir: [{self.mine}]\nuser-backends: on\n")
        for env in ({}, {"BITNET_CONFIG": config}, {"BITNET_USER_BACKENDS": "on"}):
            with self.subTest(env):
                found, errors = self.searched(env={"BITNET_BACKEND_PATH": self.mine, **env})
                self.assertIn("not searched: root", found[self.mine])
                self.assertIn("is ignored, as root", errors)

    def test_root_searches_folders_of_the_command_line(self):
        found, _ = self.searched("--user-backends", env={"BITNET_BACKEND_PATH": self.mine})
        self.assertEqual(found[self.mine], "0 manifests")
        found, _ = self.searched("--backend-dir", self.mine)
        self.assertEqual(found, {self.mine: "0 manifests"})
        config = self.path("any.yaml", f"backend-dir: [{self.mine}]\n")
        found, errors = self.searched("--config", config)
        self.assertEqual(found, {self.mine: "0 manifests"})
        self.assertEqual(errors, "")

    def test_a_request_for_a_user_backend_names_the_flag(self):
        self.path("mine/60-sketch.yaml", "schema: 1\n")
        env = {"BITNET_BACKEND_PATH": self.mine}
        got = self.why("--device", "sketch", env=env).text
        self.assertRegex(got, f"root does not search {self.mine}, which has one; .*"
                              f"try: set --user-backends, without which root does not look into")
        self.rejected(4, f"{self.mine}: not searched: root does not listen to the user's folders "
                        "without --user-backends", "backends", "info", "sketch", env=env)
        other = self.why("--device", "another", env=env).text
        self.assertNotIn("set --user-backends", other)

    def test_the_user_adds_and_replaces_nothing(self):
        system = self.why("--json").json["backends"]
        if not system:
            self.skipTest("no backend was built")
        name = os.path.basename(system[0]["manifest"])
        self.path(f"mine/{name}", "")
        self.path("mine/60-broken.yaml", "schema: 1\n")
        got = self.why("--json", "--user-backends",
                      env={"BITNET_BACKEND_PATH": self.mine}).json["backends"]
        codes = {one["name"]: one["code"] for one in got}
        self.assertEqual(codes[system[0]["name"]], system[0]["code"])
        self.assertEqual(codes["broken"], "BN-M-FIELD")

    def test_a_variable_cannot_lift_a_limit(self):
        config = self.path("any.yaml", "allow-backends: none-such\n")
        result = self.why("--json", "--config", config,
                         env={"BITNET_ALLOW_BACKENDS": "cpu"})
        self.assertEqual(result.json["detected"], [])

    def test_a_variable_that_asks_for_a_limit_is_not_left_out(self):
        for name, option, value in (("BITNET_ALLOW_BACKENDS", "allow-backends", "cpu"),
                                    ("BITNET_REQUIRE_SIGNATURE", "require-signature", "on")):
            self.rejected(2, f"'{option}' of {name} is ignored, as root does not let", "backends", "why", env={name: value})
            self.why(f"--{option}" + ("=cpu" if value == "cpu" else ""), env={name: value})
        self.why(env={"BITNET_REQUIRE_SIGNATURE": "off"})


@unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
class Others(Places):
    def as_nobody(self, program, *words, env):
        done = subprocess.run([program, *words], capture_output=True, cwd="/",
                              env=self.environment(env), user=NOBODY, group=NOBODY,
                              extra_groups=[], timeout=support.TIMEOUT_S)
        return support.Result(done.returncode, done.stdout, done.stderr)

    def setUp(self):
        super().setUp()
        try:
            if self.as_nobody(support.PROGRAM, "version", env={}).code != 0:
                self.skipTest("others may not run the program of this build")
        except PermissionError:
            self.skipTest("others may not reach the program of this build")

    def test_a_user_is_listened_to(self):
        result = self.as_nobody(support.PROGRAM, "backends", "why", "--json",
                                env={"BITNET_BACKEND_PATH": self.mine})
        found = {one["directory"]: one["result"] for one in result.json["searched"]}
        self.assertEqual(found[self.mine], "0 manifests")
        result = self.as_nobody(support.PROGRAM, "backends", "why", "--json",
                                env={"BITNET_BACKEND_DIR": self.mine})
        self.assertEqual([one["directory"] for one in result.json["searched"]], [self.mine])

    def test_raised_privileges_are_not(self):
        program = self.path("raised")
        shutil.copy(support.PROGRAM, program)
        os.chmod(program, 0o4755)
        flags = ("--backend-dir", self.mine, "--user-backends")
        result = self.as_nobody(program, "backends", "why", "--json", *flags,
                                env={"BITNET_BACKEND_PATH": self.mine,
                                     "BITNET_BACKEND_DIR": self.mine})
        if "error while loading shared libraries" in result.stderr:
            self.skipTest("the library cannot be found with raised privileges")
        self.assertEqual(result.code, 0, result)
        if "root" in result.stderr and "raised" not in result.stderr:
            self.skipTest("the file system of TMPDIR knows no setuid")
        found = {one["directory"]: one["result"] for one in result.json["searched"]}
        self.assertIn("not searched: raised privileges", found.get(self.mine, ""), result)
        for name in ("BITNET_BACKEND_DIR", "--backend-dir", "--user-backends"):
            self.assertIn(f"of {name} is ignored, as raised privileges", result.stderr)


if __name__ == "__main__":
    support.main()
