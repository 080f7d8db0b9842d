"""Options that divide layers over devices: accepted values, and the report for one device."""

import support


@support.needs_backend
class Split(support.Case):
    def test_one_device_has_all_layers_whatever_the_options(self):
        whole = self.ok("run", "-p", "a fox", "-n", "8", "--temp", "0", "--json", "--device", "cpu").json
        part, = whole["parts"]
        self.assertEqual((part["device"], part["embedding"], part["head"]), ("cpu:0", True, True))
        self.assertEqual(part["layers"], {"first": 0, "count": len(part["layer_bytes"])})
        self.assertEqual(part["weight_bytes"], whole["model"]["weight_bytes"])
        self.assertEqual(sum(part["layer_bytes"]) + part["embedding_bytes"] + part["head_bytes"],
                         part["weight_bytes"])
        for words in (("-ngl", "1"), ("-ngl", "all"), ("--gpu-layers", "0"), ("-ngl", "auto"), ("-sm", "none"),
                      ("-ts", "1")):
            answer = self.ok("run", "-p", "a fox", "-n", "8", "--temp", "0", "--json", "--device", "cpu", *words)
            self.assertEqual((answer.json["tokens"], answer.json["parts"]), (whole["tokens"], [part]), words)
            self.assertNotIn("layers:", answer.stderr)

    def test_every_command_accepts_split_options(self):
        for command in (("run", "-n", "1"), ("embed",), ("logits", "-o", self.path("rows.npy"))):
            self.ok(*command, "-p", "a", "-ngl", "all", "-sm", "layer", "--device", "cpu")
        self.ok("bench", "-p", "0", "-n", "2", "-r", "1", "--ceiling-mb", "0", "-ngl", "all", "--device", "cpu")

    def test_invalid_values_of_variables_are_rejected(self):
        rejected = self.bitnet("run", "-p", "a", env={"BITNET_N_GPU_LAYERS": "x"})
        self.assertEqual(rejected.code, 2, rejected.stderr)
        rejected = self.bitnet("run", "-p", "a", env={"LLAMA_ARG_TENSOR_SPLIT": "0,0"})
        self.assertEqual(rejected.code, 2, rejected.stderr)
        self.assertIn("not all of them 0", rejected.stderr)

    def test_invalid_split_options_are_rejected(self):
        many = ",".join("1" * 65)
        for words, says in ((("-ngl", "-1"), "auto, all or a number of layers from 0 to 1000000, found '-1'"),
                            (("-ngl", "abc"), "found 'abc'"),
                            (("-ngl", "1000000000000"), "found '1000000000000'"),
                            (("-ngl", ""), "found ''"),
                            (("-sm", "row"), "one of layer|none"),
                            (("-ts", "0,0"), "not all of them 0"),
                            (("-ts", "nan"), "numbers from 0 on"),
                            (("-ts", "1,-1"), "found '-1' in '1,-1'"),
                            (("-ts", many), "at most 64 of them, found 65"),
                            (("-ts", "1", "-sm", "none"), "leave one of them out"),
                            (("-ts", "1", "--device", "cpu:0"), "the request names one of them, cpu:0")):
            rejected = self.bitnet("run", "-p", "a", *words)
            self.assertEqual(rejected.code, 2, (words, rejected.stderr))
            self.assertIn(says, rejected.stderr, words)


if __name__ == "__main__":
    support.main()
