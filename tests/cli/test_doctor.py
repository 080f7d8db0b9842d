"""bitnet doctor on folders that represent other machines: their hardware, and the first thing to do."""

import json
import os
import shutil
import subprocess

import support

SECTIONS = ("machine", "pages", "governor", "limits", "memory", "devices", "nodes", "backends", "caches",
            "findings", "first", "other_engines")


def walk(value):
    yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(one)


class Doctor(support.Case):
    def setUp(self):
        super().setUp()
        self.empty = self.path("empty")
        os.makedirs(self.empty)

    def tree(self, files, links=()):
        """A folder with files, and links to names, as the kernel would show them."""
        for name, content in files.items():
            self.path(f"machine/{name}", content)
        for name, to in links:
            os.makedirs(os.path.dirname(self.path(f"machine/{name}")), exist_ok=True)
            os.symlink(to, self.path(f"machine/{name}"))
        return {"BITNET_MACHINE_ROOT": self.path("machine")}

    def nvidia(self, driver=None):
        at = "sys/bus/pci/devices/0000:01:00.0/"
        return self.tree({at + "vendor": "0x10de\n", at + "device": "0x2335\n", at + "class": "0x030200\n",
                          "proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"},
                         [(at + "driver", f"../../drivers/{driver}")] if driver else ())

    def test_the_sections_describe_this_machine(self):
        got = self.ok("doctor", "--json").json
        self.assertEqual([key for key in got if key != "selected"], list(SECTIONS))
        self.assertNotIn(None, list(walk(got)), "what is unknown is left out")
        self.assertEqual(got["machine"]["cpus_online"], os.cpu_count())
        with open("/proc/meminfo", encoding="ascii") as file:
            kib = int(file.readline().split()[1])
        self.assertEqual(got["memory"]["total_bytes"], kib * 1024)

    @support.needs_backend
    def test_the_form_that_runs_is_one_that_exists(self):
        machine = self.ok("doctor", "--json").json["machine"]
        if "forms" not in machine or "cpu" not in support.report()["detected"]:
            self.skipTest("the cpu backend does not compute here")
        self.assertIn(machine["runs"].split("+")[0], machine["forms"])

    def test_the_last_line_says_what_to_do_first(self):
        lines = self.ok("doctor", "--backend-dir", self.empty).text.splitlines()
        self.assertEqual(lines[-1], "first: install bitnet-backend-cpu")
        self.assertEqual(len([line for line in lines if line.startswith("first: ")]), 1)

    def test_a_gpu_without_a_driver_is_reported(self):
        got = self.ok("doctor", "--json", "--backend-dir", self.empty, env=self.nvidia("nouveau")).json
        self.assertEqual(len(got["devices"]), 1, got)
        device = got["devices"][0]
        self.assertEqual((device["vendor"], device["driver"], device["state"]), ("10de", "nouveau", "other-driver"))
        self.assertIn("bitnet-backend-cuda", device["packages"])
        self.assertEqual(got["memory"], {"total_bytes": 8 << 30, "free_bytes": 4 << 30})
        self.assertEqual(got["findings"][0]["about"], "backends")
        self.assertIn("nvidia-driver", got["findings"][1]["advice"])
        self.assertEqual(got["first"], got["findings"][0]["advice"])

    @support.needs_backend
    def test_the_first_advice_is_a_driver_for_the_gpu(self):
        if "cuda" in support.report()["detected"]:
            self.skipTest("a GPU computes here")
        text = self.ok("doctor", env=self.nvidia()).text
        self.assertIn("install nvidia-driver", text.splitlines()[-1])

    def test_escape_sequences_do_not_reach_the_terminal(self):
        env = self.tree({"proc/cpuinfo": "model name\t: \x1b[2Jevil\u202e\n",
                         "proc/sys/kernel/osrelease": "\x1b]0;title\x07\n"})
        result = self.ok("doctor", "--backend-dir", self.empty, env=env)
        self.assertNotIn(b"\x1b", result.stdout)
        self.assertIn("evil", result.text)

    def test_a_machine_without_files_has_no_facts(self):
        got = self.ok("doctor", "--json", "--backend-dir", self.empty, env=self.tree({"none": ""})).json
        self.assertEqual((got["machine"], got["memory"], got["devices"], got["nodes"]), ({}, {}, [], []))

    def test_caches_are_counted_by_files_and_bytes(self):
        self.path("cache/bitnet/packed/a.packed", b"12345")
        got = self.ok("doctor", "--json", "--backend-dir", self.empty).json["caches"]
        by_name = {one["name"]: one for one in got}
        self.assertEqual(by_name["probes"]["folder"], self.home + "/cache/probe")
        if os.geteuid() != 0 or "weights" in by_name:  # root has none in a folder of another user
            self.assertEqual((by_name["weights"]["files"], by_name["weights"]["bytes"]), (1, 5))

    def test_hints_are_read_beside_the_program(self):
        copy = self.path("moved/bin/bitnet")
        os.makedirs(os.path.dirname(copy))
        shutil.copy(support.PROGRAM, copy)
        hints = self.path("moved/share/bitnet/hardware-hints.yaml", "schema: 1\nhardware:\n"
                          "  - {vendor: 10de, class: '0302', name: a card of ours, note: it is only an example}\n")
        words = [copy, "doctor", "--json", "--backend-dir", self.empty]
        env = self.environment(self.nvidia("nvidia"))
        done = subprocess.run(words, env=env, cwd=self.home, capture_output=True, timeout=support.TIMEOUT_S)
        if done.returncode == 127:
            self.skipTest("the program does not find its library from another folder")
        device = json.loads(done.stdout)["devices"][0]
        self.assertEqual((device["name"], device["state"]), ("a card of ours", "idle"))
        with open(hints, "a", encoding="ascii") as file:
            file.write("  - {vendor: card}\n")
        done = subprocess.run(words, env=env, cwd=self.home, capture_output=True, timeout=support.TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(b"hardware-hints.yaml:4: expected digits of base 16 for vendor, found 'card'", done.stderr)
        self.assertEqual(json.loads(done.stdout)["devices"][0]["state"], "unknown")

    def test_wrong_arguments_are_rejected(self):
        self.rejected(2, "doctor takes no 'x'", "doctor", "x")
        self.rejected(2, "malformed", "doctor", "--device", ":")


class Preflight(support.Case):
    def setUp(self):
        super().setUp()
        self.empty = self.path("empty")
        os.makedirs(self.empty)

    def verdict(self, code, *words, **more):
        result = self.bitnet("preflight", "--json", *words, **more)
        self.assertEqual(result.code, code, result)
        self.assertNotIn(None, list(walk(result.json)))
        plain = self.bitnet("preflight", *words, **more)
        self.assertEqual(plain.code, code, plain)
        self.assertEqual(plain.text.split(":")[0], result.json["verdict"], plain)
        return result.json

    @support.needs_backend
    def test_a_usable_device_ends_with_0(self):
        got = self.verdict(0)
        self.assertEqual((got["requested"], got["verdict"]), ("auto", "usable"))
        self.assertEqual(got["device"].split(":")[0], support.report()["selected"])
        name = support.report()["selected"]
        for words in (("--backend", name), ("--backend", name + ":0", "--require"), ("--device", name)):
            with self.subTest(words):
                self.assertEqual(self.verdict(0, *words)["device"].split(":")[0], name)

    def test_a_machine_without_backends_is_not_usable(self):
        got = self.verdict(1, "--backend-dir", self.empty)
        self.assertEqual(got["verdict"], "not usable")
        self.assertIn("install", got["problem"])
        self.assertNotIn("device", got)

    def test_a_missing_backend_is_not_usable(self):
        got = self.verdict(1, "--backend", "none-such")
        self.assertEqual((got["requested"], got["verdict"]), ("none-such", "not usable"))
        self.assertIn("none-such", got["problem"])

    @support.needs_backend
    def test_a_fallback_fails_the_preflight(self):
        got = self.verdict(1, "--backend", "none-such", "--allow-fallback")
        self.assertEqual((got["verdict"], got["requested"]), ("fallback", "none-such"))
        self.assertEqual(got["device"].split(":")[0], support.report()["selected"])
        got = self.verdict(1, "--backend", "none-such", "--allow-fallback", "--require")
        self.assertEqual(got["verdict"], "not usable")

    @support.needs_backend
    def test_require_takes_only_the_first_name(self):
        """Only the first name of a list will do; without a request, no processor."""
        name = support.report()["selected"]
        self.assertEqual(self.verdict(0, "--device", "none-such," + name)["verdict"], "usable")
        self.assertEqual(self.verdict(1, "--device", "none-such," + name, "--require")["verdict"], "not usable")
        if name == "cpu":
            got = self.verdict(1, "--require")
            self.assertEqual((got["verdict"], got["class"]), ("fallback", "cpu"))
            self.verdict(0, "--device", "cpu", "--require")

    def test_fakes_are_not_usable(self):
        got = self.verdict(1, "--backend", "cuda", "--allow-fake", env={"BITNET_GPU_FAKE": "cuda"})
        self.assertEqual(got["verdict"], "not usable")
        result = self.bitnet("preflight", env={"BITNET_GPU_FAKE": "cuda", "BITNET_STRICT_NO_FAKE_GPU": "1"})
        self.assertEqual(result.code, 1, result)

    def test_wrong_arguments_are_rejected(self):
        self.rejected(2, "preflight takes no 'x'", "preflight", "x")
        self.rejected(2, "", "preflight", "--backend", ":")
        self.rejected(2, "", "preflight", "--backend", "a,,b")
        self.rejected(2, "", "preflight", "--strict-mode", "--allow-fallback")
        self.rejected(2, "--no-such", "preflight", "--no-such")


if __name__ == "__main__":
    support.main()
