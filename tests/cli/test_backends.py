"""Which backend is selected, the reason, and the message if none can compute."""

import json
import os
import resource
import subprocess

import support


class NoBackend(support.Case):
    """An empty manifest folder is a machine where nothing is installed."""

    def setUp(self):
        super().setUp()
        self.empty = self.path("empty")
        os.makedirs(self.empty)

    @support.needs_model
    def test_run_exits_4_and_says_what_to_install(self):
        result = self.bitnet("run", "-p", "a", "--backend-dir", self.empty)
        self.assertEqual((result.code, result.stdout), (4, b""), result)
        self.assertIn("requested=auto detected=[] selected=none", result.stderr.splitlines())
        self.assertEqual(len(result.errors), 1, result)
        self.assertIn("install", result.errors[0])

    def test_why_names_the_searched_folders(self):
        got = self.why("--json", "--backend-dir", self.empty).json
        self.assertEqual((got["requested"], got["detected"], got["backends"]), ("auto", [], []))
        self.assertIn(self.empty, [one["directory"] for one in got["searched"]])
        text = self.why("--backend-dir", self.empty).text
        self.assertIn("requested=auto detected=[] selected=none", text)
        self.assertIn(self.empty, text)

    def test_list_says_what_to_install(self):
        self.assertIn("install", self.ok("backends", "--backend-dir", self.empty).text)

    def test_dir_prints_the_folder_of_plugins(self):
        self.assertEqual(self.ok("backends", "dir", "--backend-dir", self.empty).text,
                         self.empty + "\n")
        self.assertTrue(self.ok("backends", "dir").text.startswith("/"))

    def test_info_of_an_unknown_backend_is_rejected(self):
        self.rejected(4, "none-such", "backends", "info", "none-such")


class Request(support.Case):
    @support.needs_model
    def test_a_missing_backend_ends_with_4(self):
        for device in ("cuda", "none-such", "cuda:0", "gpu"):
            detected = support.report()["detected"]
            if device.split(":")[0] in detected or (device == "gpu" and "cuda" in detected):
                continue
            with self.subTest(device):
                result = self.bitnet("run", "-p", "a", "-n", "1", "--device", device)
                self.assertEqual((result.code, result.stdout), (4, b""), result)
                self.assertEqual(len(result.errors), 1, result)
                self.assertIn(f"requested={device} ", result.stderr)
                self.assertIn("selected=none", result.stderr)

    def test_a_malformed_request_is_rejected(self):
        for device, why in ((":", "no name"), ("cpu:x", "no index"), ("a,,b", "an empty name")):
            with self.subTest(why):
                self.rejected(2, "", "backends", "why", "--device", device)

    def test_why_names_each_loser(self):
        got = self.why("--json", "--device", "none-such").json
        self.assertEqual(got["requested"], "none-such")
        self.assertEqual(got["requested_by"], "--device")
        for backend in got["backends"]:
            for key in ("name", "stage", "code", "reason", "hint"):
                self.assertIn(key, backend)


@support.needs_model
class Fakes(support.Case):
    """BITNET_GPU_FAKE and the strict variables: one grammar, marked, and never computing."""

    def test_reports_mark_each_fake(self):
        got = self.ok("backends", "--json", "--allow-fake", env={"BITNET_GPU_FAKE": "cuda:2"}).json
        self.assertTrue(got["fake"])
        self.assertIn("cuda(fake)", got["detected"])
        cuda = next(b for b in got["backends"] if b["name"] == "cuda")
        self.assertTrue(cuda["fake"] and all(d["fake"] for d in cuda["devices"]))
        text = self.why("--allow-fake", env={"BITNET_GPU_FAKE": "cuda"}).text
        self.assertIn("selected=cuda(fake)", text)
        self.rejected(4, "computes nothing", "run", "-n", "1", "--allow-fake",
                     env={"BITNET_GPU_FAKE": "cuda"})

    def test_a_backend_that_ignores_signals(self):
        for env, words, why in (
                ({"BITNET_GPU_FAKE": "cuda"}, (), "not allowed"),
                ({"BITNET_GPU_FAKE": "none"}, ("--allow-fake",), "none"),
                ({"BITNET_GPU_FAKE": "cuda", "BITNET_STRICT_MODE": "1"}, ("--allow-fake",), "strict")):
            with self.subTest(why):
                got = self.ok("backends", "--json", *words, env=env).json
                self.assertNotIn("fake", got, why)

    def test_wrong_and_forbidden_fakes_are_rejected(self):
        for code, part, env in (
                (23, "forbids fakes", {"BITNET_GPU_FAKE": "cuda", "BITNET_STRICT_NO_FAKE_GPU": "1"}),
                (2, "comma list", {"BITNET_GPU_FAKE": "cuda;rocm"}),
                (2, "BITNET_STRICT_MODE", {"BITNET_STRICT_MODE": "perhaps"}),
                (2, "BITNET_STRICT_NO_FAKE_GPU",
                 {"BITNET_GPU_FAKE": "cuda", "BITNET_STRICT_NO_FAKE_GPU": "perhaps"})):
            with self.subTest(part):
                self.rejected(code, part, "backends", env=env)
        self.ok("backends", env={"BITNET_GPU_FAKE": "none", "BITNET_STRICT_NO_FAKE_GPU": "1"})


@support.needs_backend
class Present(support.Case):
    def test_a_second_probe_is_cached_unless_it_is_fresh(self):
        first = self.ok("backends", "probe", "--all", "--json").json["backends"]
        again = self.ok("backends", "probe", "--all", "--json").json["backends"]
        fresh = self.ok("backends", "probe", "--all", "--fresh", "--json").json["backends"]
        for reports, cached in ((first, False), (again, True), (fresh, False)):
            for one in reports:
                with self.subTest(one["name"], cached=cached):
                    self.assertEqual(one["probe"]["cached"], cached, one)
        text = self.ok("backends", "probe").text
        for one in self.ok("backends", "--json").json["backends"]:
            self.assertIn(one["name"], text)

    def test_an_answer_is_given_when_its_cache_is_unwritable(self):
        def no_room():
            # Less than a probe's cache file of a backend.
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        for why in ("nothing is remembered", "nothing was left by the first"):
            with self.subTest(why):
                done = subprocess.run(
                    [support.PROGRAM, "backends", "probe", "--json"], capture_output=True,
                    cwd=self.home, env=self.environment(), preexec_fn=no_room,
                    timeout=support.TIMEOUT_S, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                report = json.loads(done.stdout)
                mine = next(b for b in report["backends"] if b["name"] == report["selected"])
                self.assertEqual((mine["code"], mine["probe"]["cached"]), ("BN-OK", False), mine)

    def test_backends_and_list_devices_print_the_same(self):
        chosen = support.report()["selected"]
        self.ok("backends", "probe", "--all")  # so that no answer reports a running probe
        text = self.ok("backends").text
        self.assertIn(chosen, text)
        self.assertEqual(self.ok("backends", "list").text, text)
        self.assertEqual(self.ok("run", "--list-devices").text, text)

    def test_why_explains_the_selected_backend(self):
        got = self.why("--json").json
        self.assertIn(got["selected"], got["detected"])
        mine = next(b for b in got["backends"] if b["name"] == got["selected"])
        self.assertEqual(mine["code"], "BN-OK")
        self.assertGreater(mine["devices"][0]["score"]["products_per_s"], 0, mine)
        text = self.why().text
        self.assertIn(f"selected={got['selected']}", text)

    def test_info_describes_the_selected_backend(self):
        chosen = support.report()["selected"]
        got = self.ok("backends", "info", chosen, "--json").json["backends"]
        self.assertEqual([one["name"] for one in got], [chosen])
        self.assertTrue(got[0]["devices"])
        text = self.ok("backends", "info", chosen).text
        self.assertIn(chosen, text)
        for device in got[0]["devices"]:
            if device["class"] != "cpu":  # no system tool reports the free memory of other devices
                self.assertNotIn("memory_free_bytes", device)
                continue
            self.assertGreater(device["memory_free_bytes"], 0)
            self.assertLessEqual(device["memory_free_bytes"], device["memory_total_bytes"])
            self.assertRegex(text, r"(?m)^ +memory_free_bytes +\d+$")

    def test_info_says_where_threads_are_kept(self):
        cpus = sorted(os.sched_getaffinity(0))
        words = ("backends", "info", "cpu", "-t", "2", "-C", f"{1 << cpus[0]:x}")
        self.assertRegex(self.ok(*words).text, rf"(?m)^  threads +2 on CPUs {cpus[0]}$")
        strict = (*words, "--cpu-strict", "on")
        self.assertRegex(self.ok(*strict).text,
                         rf"(?m)^  threads +2, kept to CPUs {cpus[0]}, {cpus[0]} in this order$")
        got = self.ok(*strict, "--json").json["backends"][0]["threads"]
        place = {"cpus": str(cpus[0]), "node": got["places"][0]["node"]}
        self.assertEqual(got, {"count": 2, "cpus": str(cpus[0]), "strict": True,
                               "places": [place, place]})

    def test_info_reports_device_status_of_the_probe(self):
        chosen = support.report()["selected"]
        got = self.ok("backends", "info", chosen, "--json", "--fresh").json["backends"][0]
        for device in got["devices"]:
            if "status" not in device:  # optional
                continue
            self.assertEqual(device["status"]["asked"], "probe")
            self.assertIn("age_s", device["status"])
            self.assertGreater(len(device["status"]), 2, "unknown values are left out")
        states = [d["status"] for d in got["devices"] if "status" in d]
        text = self.ok("backends", "info", chosen).text
        self.assertEqual(text.count("status (reported by the probe, "), len(states))
        if chosen == "cpu":
            self.assertEqual(len(states), 1)
            self.assertLessEqual(states[0]["memory_free_bytes"], states[0]["memory_total_bytes"])
            self.assertNotIn("utilisation_percent", states[0], "a load takes time to measure")
            self.assertNotIn("pool_bytes", states[0])

    def test_fakes_have_no_free_memory(self):
        got = self.ok("backends", "--json", "--allow-fake", env={"BITNET_GPU_FAKE": "cuda"}).json
        fake = next(b for b in got["backends"] if b["name"] == "cuda")
        self.assertNotIn("memory_free_bytes", fake["devices"][0])
        self.assertNotIn("status", fake["devices"][0])

    def test_the_message_names_the_flag_to_remove(self):
        self.rejected(2, "drop --allow-fallback or", "backends", "--strict-mode",
                     "--allow-fallback")

    def test_the_message_names_the_flag_that_selects_another(self):
        chosen = support.report()["selected"]
        self.rejected(4, f"use --device {chosen}:0", "run", "-p", "a", "--device", f"{chosen}:9")
        self.rejected(4, "or use --device auto", "run", "-p", "a", "--device", "none-such")
        why = self.bitnet("backends", "why", "--allow-backends", "none-such")
        self.assertIn(f"add {chosen} to --allow-backends", why.text)

    def test_fallback_and_its_absence(self):
        base = ("run", "-p", "a", "-n", "1")
        chosen = support.report()["selected"]
        self.assertEqual(self.bitnet(*base, "-dev", "none-such").code, 4)
        result = self.ok(*base, "-dev", "none-such", "--allow-fallback")
        self.assertIn("requested=none-such ", result.stderr)
        self.assertIn(f"selected={chosen}", result.stderr)
        self.ok(*base, "-dev", f"none-such,{chosen}")
        self.assertEqual(self.bitnet(*base, "-dev", f"none-such,{chosen}",
                                     "--require-backend").code, 4)

    def test_device_none_of_llama_cpp_selects_the_cpu(self):
        if "cpu" not in support.report()["detected"]:
            self.skipTest("no cpu backend")
        self.assertIn("requested=cpu ", self.ok("run", "-p", "a", "-n", "1", "-dev", "none").stderr)


if __name__ == "__main__":
    support.main()
