"""bitnet plan and --plan: the listed kernels run, and each entry of a plan is followed or reported."""

import os
import re
import threading

import support


@support.needs_backend
class Plan(support.Case):
    QUICK = ("-p", "a fox", "-n", "2", "--temp", "0")

    def saved(self, *words, env=None):
        file = self.path("plan.yaml")
        self.ok("plan", "--device", "cpu", "--save", file, *words, env=env)
        with open(file, encoding="utf-8") as text:
            return file, text.read()

    def edited(self, old, new, text):
        self.assertIn(old, text)
        return self.path("edited.yaml", text.replace(old, new))

    def test_kernels_that_run_are_listed(self):
        part, = self.ok("plan", "--device", "cpu", "--json").json["parts"]
        listed = {k for op in part["ops"] for step in ("kernels", "prompt_kernels") for k in op.get(step, [])}
        ran = {k["id"] for k in self.ok("run", *self.QUICK, "--device", "cpu", "--json").json["kernels"]}
        self.assertLessEqual(ran, listed)
        self.assertEqual((part["device"], part["embedding"], part["head"]), ("cpu:0", True, True))
        self.assertIn("--device", part["why"])
        for op in part["ops"]:
            self.assertIn(op["level"], ("fused", "optimised", "reference"), op)
            self.assertTrue(op.get("kernels"), op)

    def test_bytes_are_those_of_the_weights(self):
        part, = self.ok("plan", "--device", "cpu", "--json").json["parts"]
        report = self.ok("run", *self.QUICK, "--device", "cpu", "--json").json["parts"][0]
        in_layers = sum(op["weight_bytes"] for op in part["ops"] if "layers" in op)
        self.assertGreaterEqual(in_layers, sum(report["layer_bytes"]) * 0.9)
        self.assertLessEqual(in_layers, sum(report["layer_bytes"]))

    def test_the_text_has_every_kernel(self):
        part, = self.ok("plan", "--device", "cpu", "--json").json["parts"]
        text = self.ok("plan", "--device", "cpu").text
        for op in part["ops"]:
            for kernel in op["kernels"]:
                self.assertIn(kernel, text)

    def test_each_command_follows_a_saved_plan(self):
        file, _ = self.saved()
        plain = self.ok("run", *self.QUICK, "--device", "cpu", "--json").json
        kept = self.ok("run", *self.QUICK, "--json", "--plan", file).json
        self.assertEqual((kept["tokens"], kept["parts"]), (plain["tokens"], plain["parts"]))
        self.assertEqual(kept["selection"]["requested_by"], "--plan")
        self.ok("plan", "--plan", file)
        self.ok("chat", *self.QUICK[:2], "-n", "2", "--plan", file)
        self.ok("bench", "-p", "0", "-n", "2", "-r", "1", "--ceiling-mb", "0", "--plan", file)
        self.path("in.jsonl", b"")
        self.ok("batch", self.path("in.jsonl"), self.path("out.jsonl"), "--plan", file)

    def test_every_command_rejects_a_deviation_from_the_plan(self):
        _, text = self.saved()
        file = self.edited("level: fused", "level: reference", text)
        self.path("in.jsonl", b"")
        for words in (("run", *self.QUICK), ("chat", "-p", "a", "-n", "1"), ("bench", "-p", "0", "-n", "1", "-r", "1"),
                      ("batch", self.path("in.jsonl"), self.path("out.jsonl")), ("serve", "--port", "0"), ("plan",)):
            done = self.bitnet(*words, "--plan", file)
            self.assertEqual(done.code, 14, done)
            self.assertRegex(done.stderr, r"layers? [0-9-]+ on cpu:0, op \w+: wanted level reference, had fused")
            self.assertEqual(done.stdout, b"" if isinstance(done.stdout, bytes) else "")

    def test_an_instruction_set_is_pinned(self):
        file, text = self.saved(env={"BITNET_CPU_ISA": "scalar"})
        self.assertIn(".scalar", text)
        ran = self.ok("run", *self.QUICK, "--json", "--plan", file).json["kernels"]
        self.assertTrue(all(k["id"].endswith(".scalar") for k in ran), ran)
        # The plan comes before the environment.
        ran = self.ok("run", *self.QUICK, "--json", "--plan", file, env={"BITNET_CPU_ISA": "avx2"}).json["kernels"]
        self.assertTrue(all(k["id"].endswith(".scalar") for k in ran), ran)

    def test_names_of_bitnet_rs(self):
        file, text = self.saved(env={"BITNET_CPU_ISA": "scalar"})
        alias = self.path("alias.yaml", re.sub(r"kernel: \w+\.ternary2\.scalar", "kernel: I2S_QK256_Scalar", text))
        self.ok("plan", "--plan", alias)
        other = self.path("other.yaml", re.sub(r"kernel: \w+\.ternary2\.scalar", "kernel: I2S_QK256_CUDA", text))
        self.rejected(14, "wanted kernel I2S_QK256_CUDA, had", "plan", "--plan", other)
        none = self.path("none.yaml", re.sub(r"kernel: \w+\.ternary2\.scalar", "kernel: Llama_CPU", text))
        self.rejected(2, "Llama_CPU is no kernel", "plan", "--plan", none)

    def test_an_unknown_kernel_is_rejected(self):
        _, text = self.saved()
        file = self.path("edited.yaml", re.sub(r"kernel: embed_gather\S*", "kernel: embed_gather.none", text))
        done = self.bitnet("run", *self.QUICK, "--plan", file)
        self.assertEqual(done.code, 14, done)
        self.assertIn("wanted kernel embed_gather.none, had embed_gather.", done.stderr)
        self.assertIn("named forms for all its kernels together: cpu.isa", done.stderr)

    def test_a_plan_of_another_device_or_model_is_rejected(self):
        _, text = self.saved()
        for old, new, says in (("device: cpu:0", "device: none-such:0", "cannot be kept to"),
                               ("device: cpu:0", "device: cpu:7", "cannot be kept to")):
            done = self.bitnet("run", *self.QUICK, "--plan", self.edited(old, new, text))
            self.assertEqual(done.code, 14, done)
            self.assertIn(says, done.stderr)
        number = re.search(r"parameters: (\d+)", text)[1]
        done = self.bitnet("run", *self.QUICK, "--plan", self.edited(f"parameters: {number}", "parameters: 5", text))
        self.assertEqual(done.code, 14, done)
        self.assertIn(f"the model: wanted parameters 5, had {number}", done.stderr)

    def test_a_plan_for_other_devices_is_rejected(self):
        _, text = self.saved()
        layers = int(re.search(r"layers: (\d+)", text)[1])
        head = text[:text.index("parts:")]
        file = self.path("cut.yaml", head + "parts:\n  - {device: cuda:0, embedding: true, layers: 0, head: false}\n"
                         f"  - {{device: vulkan:0, embedding: false, layers: 1-{layers - 1}, head: true}}\n")
        self.rejected(14, "its first layers are on cuda:0", "run", *self.QUICK, "--plan", file)

    def test_options_that_contradict_the_plan_are_rejected(self):
        file, _ = self.saved()
        for words in (("--device", "cpu"), ("-ngl", "1"), ("-sm", "none"), ("-ts", "1")):
            self.rejected(2, f"the plan of --plan says which device has which layers, and so does {self.option_of(words[0])}",
                         "run", *self.QUICK, "--plan", file, *words)
        self.rejected(2, "and so does --matrix", "bench", "--matrix", "--plan", file)

    @staticmethod
    def option_of(flag):
        return {"-ngl": "--n-gpu-layers", "-sm": "--split-mode", "-ts": "--tensor-split"}.get(flag, flag)

    def test_a_flag_comes_before_the_environment(self):
        file, _ = self.saved()
        ran = self.ok("run", *self.QUICK, "--json", "--plan", file, env={"BITNET_DEVICE": "none-such"}).json
        self.assertEqual((ran["selection"]["requested"], ran["selection"]["requested_by"]), ("cpu", "--plan"))
        self.rejected(2, "the plan of BITNET_PLAN says which device has which layers, and so does --device",
                     "run", *self.QUICK, "--device", "cpu", env={"BITNET_PLAN": file})
        self.rejected(2, "and so does BITNET_DEVICE", "run", *self.QUICK, env={"BITNET_PLAN": file, "BITNET_DEVICE": "cpu"})

    def test_a_plan_may_be_a_pipe(self):
        _, text = self.saved()
        pipe = self.path("pipe")
        os.mkfifo(pipe)

        def write():
            with open(pipe, "w", encoding="utf-8") as out:
                out.write(text)

        writer = threading.Thread(target=write)
        writer.start()
        self.ok("run", *self.QUICK, "--plan", pipe)
        writer.join()

    def test_a_file_that_is_not_a_plan_is_rejected(self):
        for content, says in ((b"", "expected keys and values"), (b"\xff\xfe\x00", "plan"), (b"a: &x 1\n", "anchor"),
                              (b"[" * 100000, "levels of nesting"), (b"bitnet-plan: 2\n", "expected version 1")):
            done = self.bitnet("run", *self.QUICK, "--plan", self.path("bad.yaml", content))
            self.assertEqual(done.code, 2, (content[:20], done))
            self.assertIn(says, done.stderr)

    def test_a_plan_of_the_environment_is_used_and_rejected_if_absent(self):
        file, _ = self.saved()
        self.ok("run", *self.QUICK, env={"BITNET_PLAN": file})
        done = self.bitnet("run", *self.QUICK, env={"BITNET_PLAN": file + ".none"})
        self.assertEqual(done.code, 2, done)

    def test_saving_leaves_other_files(self):
        self.rejected(2, "two", "plan", "one", "two")
        model = os.path.join(self.home, "model.gguf")
        with open(model, "wb") as out:
            out.write(b"GGUF")
        self.bitnet("plan", "--device", "cpu", "--save", model)
        with open(model, "rb") as kept:
            self.assertEqual(kept.read(), b"GGUF")


if __name__ == "__main__":
    support.main()
