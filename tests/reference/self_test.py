#!/usr/bin/env python3
"""Tests of the judge itself: the worked examples, and facts that any right forward pass obeys.

    self_test.py    takes a few seconds; exit code 77: the Python packages are missing
"""

import pathlib
import sys
import tempfile
import unittest

try:
    import gguf
    import numpy as np

    import compare
    import gguf_file
    import make_models
    import packing
    import reference
    import steadiness
except ImportError as error:
    print(f"skip: {error}; scripts/setup installs tests/reference/requirements.txt into build/venv")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
sys.path.insert(0, str(GOLDEN))
import vectors  # noqa: E402


def golden():
    """The entries of vectors.txt by name: bytes or lists of numbers."""
    out = {}
    for line in (GOLDEN / "vectors.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        kind, name, count, *rest = line.split(" ")
        out[name] = bytes.fromhex(rest[1]) if kind == "bytes" else [float(v) for v in rest]
        assert len(out[name]) == int(count), name
    return out


GOLD = golden()
T = np.array(GOLD["ternary"]).reshape(4, 256)


def tensor(kind, data, cols=256, rows=4):
    return reference.Tensor("w", [cols, rows], kind, np.frombuffer(data, np.uint8))


class WorkedExamples(unittest.TestCase):
    def test_the_file_is_what_the_script_makes(self):
        self.assertEqual(vectors.render(vectors.build()), (GOLDEN / "vectors.txt").read_text())

    def test_every_type_decodes_to_the_same_matrix(self):
        for name, kind, layout in (("i2s_a", 36, "a"), ("i2s_b", 36, "b"), ("i2s_c", 36, "c"), ("tq1_0", 34, "a"),
                                   ("tq2_0", 35, "a"), ("q8_0", 8, "a"), ("f16", 1, "a"), ("bf16", 30, "a"),
                                   ("q2_0_example", 42, "a"), ("pq2_0_example", 142, "a"), ("ptq1_0_example", 143, "a")):
            with self.subTest(name):
                got = reference.dense(tensor(kind, GOLD[name]), layout)
                # Q8_0 keeps d = 0.25 / 127 in 11 bits
                np.testing.assert_allclose(got, 0.25 * T, rtol=0, atol=1e-4 if kind == 8 else 0)

    def test_every_type_with_groups_decodes_to_the_values_of_its_vector(self):
        for name, kind in (("q1_0", 41), ("q2_0_64", 42), ("q2_0_128", 42), ("q2_0_128_last", 42), ("q2_0_128", 142),
                           ("ptq1_0", 143), ("stq1_0", 43), ("stq1_0", 42)):
            with self.subTest(name=name, kind=kind):
                one = tensor(kind, GOLD[name], 256, 1)
                one.scale_last = name.endswith("_last")
                np.testing.assert_array_equal(reference.dense(one, "a")[0], 0.5 * np.array(GOLD[name + "_ternary"]))

    def test_q4_0_clips_the_positive_end(self):
        # d = max / -8 with the sign of the first largest: that end is exact, the other reaches 7/8
        got = reference.dense(tensor(2, GOLD["q4_0"]), "a")
        self.assertTrue(np.isin(np.abs(got), [0, 0.25, 0.25 * 7 / 8]).all())
        self.assertTrue((np.sign(got) == T).all())

    def test_a_wrong_layout_is_seen(self):
        self.assertFalse((reference.dense(tensor(36, GOLD["i2s_a"]), "b") == 0.25 * T).all())

    def test_code_3_counts_as_zero(self):
        t, scale = reference.i2s_ternary(tensor(36, b"\xff" * 256 + np.float32(2).tobytes() + bytes(28)), "a")
        self.assertEqual((t.min(), t.max(), scale), (0, 0, 2))

    def test_integer_products_equal_the_examples(self):
        q = np.array(GOLD["matvec_q"])
        t, _ = reference.ternary(tensor(36, GOLD["i2s_a"]), "a")
        self.assertEqual((t @ q).tolist(), GOLD["matvec_sum_tq"])
        self.assertEqual(((t + 1) @ q).tolist(), GOLD["matvec_sum_codeq"])
        self.assertEqual((t @ np.full(256, 127)).tolist(), GOLD["matvec_all127"])

    def test_quantised_activations_equal_the_examples(self):
        for name in ("half_even", "no_clamp", "zeros", "tiny"):
            with self.subTest(name):
                s, q = reference.quantize_activations(np.array([GOLD[f"quant_{name}_x"]]))
                self.assertAlmostEqual(s[0, 0] / GOLD[f"quant_{name}_s"][0], 1, delta=1e-7)
                self.assertEqual(q[0].tolist(), GOLD[f"quant_{name}_q"])

    def test_norm_rope_and_activation_equal_the_golden_rows(self):
        near = lambda got, wanted: np.testing.assert_allclose(np.ravel(got), wanted, rtol=0, atol=1e-6)
        near(reference.rms_norm(np.array([GOLD["rmsnorm_x"]]), np.array(GOLD["rmsnorm_w"]), 1e-5), GOLD["rmsnorm_y"])
        x, angles = np.array(GOLD["rope_x"]).reshape(1, 1, 4), reference.rope_angles(np.array([3]), 4, 10000.0)
        near(reference.rope(x, angles, True), GOLD["rope_neox_y"])
        near(reference.rope(x, angles, False), GOLD["rope_norm_y"])
        near(reference.relu2(np.array(GOLD["relu2_gate"])) * GOLD["relu2_up"], GOLD["relu2_y"])

    def test_the_delta_rule_equals_two_steps_by_hand(self):
        """A head of two keys and two values, by hand."""
        k, q = np.array([[[1, 0]], [[0.6, 0.8]]]), np.array([[[1.0, 0]], [[0, 1]]])
        v = np.array([[[2.0, 4]], [[1, -1]]])
        out, state = reference.delta_rule(q, k, v, np.array([[0.5], [0.5]]), np.array([[0.5], [1.0]]))
        np.testing.assert_allclose(out[:, 0], [[1, 2], [0.56, -1.28]], rtol=0, atol=1e-15)
        np.testing.assert_allclose(state[0], [[0.92, 0.04], [0.56, -1.28]], rtol=0, atol=1e-15)

    def test_a_causal_convolution_equals_sums_by_hand(self):
        x = np.array([[1.0, 0], [0, 1], [0, 0], [1, 0]])
        got = reference.causal_convolution(x, np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]]))
        np.testing.assert_array_equal(got.T, [[4, 3, 2, 5], [0, 8, 7, 6]])

    def test_l2_norm_divides_by_the_root_of_the_sum(self):
        np.testing.assert_allclose(reference.l2_norm(np.array([3.0, 4]), 0.0), [0.6, 0.8])
        np.testing.assert_allclose(reference.l2_norm(np.array([3.0, 4]), 11.0), [0.5, 4 / 6])  # of the sum, no mean
        np.testing.assert_array_equal(reference.l2_norm(np.zeros(4), 1e-6), np.zeros(4))

    def test_stretched_waves_equal_those_of_transformers(self):
        """Divisors of waves 0, 3, 5, 6, 8, 12 and 31 of heads of 64, by transformers 4.57.1."""
        near = lambda got, wanted: np.testing.assert_allclose(  # noqa: E731
            np.asarray(got)[[0, 3, 5, 6, 8, 12, 31]], wanted, rtol=1e-5)
        near(reference.llama3_divisors(64, 1e4, 8.0, 1.0, 4.0, 64), (1, 1, 1.85928, 2.76517, 7.66739, 8, 8))
        near(reference.yarn_divisors(64, 1e4, 4.0, 64), (1, 1.33333, 1.71429, 2, 3, 4, 4))
        near(reference.yarn_divisors(64, 1e4, 4.0, 64, 16.0, 2.0), (1, 1.6, 2.66667, 4, 4, 4, 4))
        near(reference.yarn_divisors(64, 1e4, 4.0, 512), (1, 1, 1.13043, 1.2093, 1.40541, 2.08, 4))
        # Of heads of 32, context 512 over 256: the base grows so that wave 15 is 3 times as long.
        base = reference.dynamic_base(1e4, 32, 2.0, 256, 512)
        self.assertAlmostEqual((base / 1e4) ** (30 / 32), 3.0, places=5)
        self.assertEqual(reference.dynamic_base(1e4, 32, 2.0, 256, 256), 1e4)

    def test_the_smallest_file_is_read_and_a_cut_one_rejected(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "smallest.gguf"
            path.write_bytes(GOLD["minimal_gguf"])
            metadata, tensors = reference.read_file(path)
            self.assertEqual(metadata["general.architecture"], "bitnet")
            self.assertEqual(tensors["w"].shape, [128, 1])
            np.testing.assert_array_equal(reference.dense(tensors["w"], "a"), 0.25 * T[:1, :128])
            path.write_bytes(GOLD["minimal_gguf"][:-40])
            with self.assertRaises(reference.Unsupported):
                reference.read_file(path)

    def test_k_quants_by_the_letter(self):
        """Element by element from the block description, against the package's decoder."""
        rng = np.random.Generator(np.random.PCG64(1))
        sc, mn, q = (rng.integers(0, n, s) for n, s in ((64, (3, 8)), (64, (3, 8)), (16, (3, 256))))
        d, dmin = np.float16(rng.uniform(0.1, 1, (2, 3)))
        got = reference.dense(tensor(12, packing.q4_k(d, dmin, sc, mn, q), rows=3), "a")
        for b, e in np.ndindex(3, 256):
            self.assertAlmostEqual(got[b, e], float(d[b]) * sc[b, e // 32] * q[b, e] - float(dmin[b]) * mn[b, e // 32],
                                   delta=1e-4)
        sc, q = rng.integers(-128, 128, (3, 16)), rng.integers(0, 64, (3, 256))
        block = packing.q6_k(d, sc, q)
        got = reference.dense(tensor(14, block, rows=3), "a")
        for b, e in np.ndindex(3, 256):
            self.assertAlmostEqual(got[b, e], float(d[b]) * sc[b, e // 16] * (int(q[b, e]) - 32), delta=2e-2)
        ql, qh, half, l = block[:128], block[128:192], 1, 5  # one value by hand: element 128 + 64 + 5
        value = (ql[64 * half + l] >> 4 | (qh[32 * half + l] >> 4 & 3) << 4) - 32
        self.assertEqual(value, int(q[0, 128 * half + 64 + l]) - 32)

    def test_packers_agree_with_the_package(self):
        rng = np.random.Generator(np.random.PCG64(2))
        w = rng.standard_normal((4, 256)).astype(np.float32)
        for pack, kind in ((packing.q8_0, 8), (packing.q4_0, 2), (packing.bf16, 30)):
            wanted = gguf.quants.quantize(w, gguf.GGMLQuantizationType(kind)).tobytes()
            self.assertEqual(pack(w), wanted)

    def test_q4_0_keys_and_values_equal_those_of_the_package(self):
        rng = np.random.Generator(np.random.PCG64(3))
        x = rng.standard_normal((7, 2, 96)).astype(np.float32)
        x[0, 0, :32], x[1, 1, 32:64] = 0, x[1, 1, 32]  # no step; all of them the largest
        kind = gguf.GGMLQuantizationType.Q4_0
        wanted = gguf.quants.dequantize(gguf.quants.quantize(x.reshape(-1, 96), kind), kind).reshape(x.shape)
        np.testing.assert_array_equal(reference.through_q4_0(x), wanted)
        # Half a step, and a whole one beyond 7; the step loses 2^-11 of itself as float16.
        largest = np.abs(x.reshape(7, 2, 3, 32)).max(axis=-1).repeat(32, axis=-1).reshape(x.shape)
        self.assertTrue((np.abs(reference.through_q4_0(x) - x) <= largest / 8 * (1 + 8 * 2.0**-11)).all())


class ForwardPass(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.ids = [3, 141, 59, 26, 53, 58, 97, 93, 23]

    def logits(self, spec, ids=None, **options):
        file = make_models.write_model(self.directory, spec)
        return reference.Model(self.directory / file, **options).logits(ids or self.ids)

    def spec(self, **fields):
        return make_models.Spec("same-seed", "test", **fields)

    def test_a_prefix_knows_nothing_of_what_follows(self):
        for arch in reference.ARCHITECTURES:
            with self.subTest(arch):
                spec = self.hybrid() if arch == "qwen35" else self.spec(arch=arch)
                whole = self.logits(spec)
                np.testing.assert_allclose(self.logits(spec, self.ids[:4]), whole[:4], atol=1e-9)

    def test_later_logits_depend_on_the_prefix(self):
        first = self.logits(self.spec())
        other = self.logits(self.spec(), [4] + self.ids[1:])
        self.assertTrue((np.abs(first - other).max(axis=1) > 1e-3).all())

    def test_a_window_hides_what_lies_before_it(self):
        one_layer = self.spec(n_layer=1)  # more layers reach back further: each adds a window
        whole = self.logits(one_layer)
        np.testing.assert_array_equal(self.logits(one_layer, window=9), whole)
        np.testing.assert_array_equal(self.logits(one_layer, window=1, keep=9), whole)
        seen = self.logits(one_layer, window=3)
        np.testing.assert_array_equal(seen[:3], whole[:3])
        self.assertTrue((np.abs(seen - whole).max(axis=1)[3:] > 1e-3).all())
        other = self.logits(one_layer, [4, 5] + self.ids[2:], window=3)
        np.testing.assert_allclose(other[4:], seen[4:], atol=1e-9)
        kept = self.logits(one_layer, [4, 5] + self.ids[2:], window=3, keep=1)
        self.assertTrue((np.abs(kept - self.logits(one_layer, window=3, keep=1)).max(axis=1) > 1e-3).all())

    def test_a_layer_has_its_own_window(self):
        pattern = "gemma3.attention.sliding_window_pattern"
        one_layer = lambda n: self.spec(arch="gemma3", n_layer=1, keys={"gemma3.attention.sliding_window": n})
        seen, whole = self.logits(one_layer(3)), self.logits(one_layer(9))
        np.testing.assert_array_equal(seen[:3], whole[:3])
        self.assertTrue((np.abs(seen - whole).max(axis=1)[3:] > 1e-3).all())
        np.testing.assert_allclose(seen, self.logits(one_layer(9), window=3), atol=1e-9)
        np.testing.assert_allclose(self.logits(one_layer(3), window=4, keep=2), seen, atol=1e-9)
        last_sees_all = self.spec(arch="gemma3", keys={"gemma3.attention.sliding_window": 3, pattern: 2})
        other = self.logits(last_sees_all, [4, 5] + self.ids[2:])
        self.assertTrue((np.abs(other - self.logits(last_sees_all)).max(axis=1) > 1e-3).all())

    def test_minicpm_is_a_llama_with_scales(self):
        scaled = lambda *scales: self.logits(  # noqa: E731
            self.spec(arch="minicpm", keys=make_models.minicpm_scales(*scales)))
        plain = scaled(1.0, 1.0, 1.0)
        np.testing.assert_allclose(plain, self.logits(self.spec(arch="llama")), atol=1e-9)
        np.testing.assert_allclose(scaled(1.0, 1.0, 4.0), plain / 4, atol=1e-9)
        # The more is looked up, the less layers change; where they add nothing a norm undoes it.
        file = make_models.write_model(self.directory, self.spec(arch="minicpm"))
        model = reference.Model(self.directory / file)
        rows = model.matrix("token_embd.weight")
        alone = model.norm(rows[self.ids], "output_norm.weight") @ rows.T
        np.testing.assert_allclose(scaled(1.0, 1e-12, 1.0), alone, atol=1e-9)
        self.assertGreater(np.abs(plain - alone).max(), 0.1)

    def states(self, seed=5, n=9, heads=3, dk=4, dv=6):
        """Queries, keys of length 1, values, decays and betas as a layer with a state may see them."""
        rng = np.random.Generator(np.random.PCG64(seed))
        q, k = reference.l2_norm(rng.standard_normal((2, n, heads, dk)), 0.0)
        decay, beta = rng.uniform(0.3, 1, (n, heads)), rng.uniform(0, 1, (n, heads))
        return q, k, rng.standard_normal((n, heads, dv)), decay, beta

    def test_one_pass_over_the_state_is_enough(self):
        """What a state knew and what it says can be read before it changes."""
        q, k, v, decay, beta = self.states()
        wanted, last = reference.delta_rule(q, k, v, decay, beta)
        state = np.zeros_like(last)
        for t in range(len(q)):
            g = decay[t][:, None]
            change = beta[t][:, None] * (v[t] - g * np.einsum("hk,hkv->hv", k[t], state))
            said = g * np.einsum("hk,hkv->hv", q[t], state) + (k[t] * q[t]).sum(axis=1)[:, None] * change
            np.testing.assert_allclose(said, wanted[t], rtol=0, atol=1e-14)
            state = g[:, :, None] * state + k[t][:, :, None] * change[:, None]
        np.testing.assert_allclose(state, last, rtol=0, atol=1e-14)

    def test_token_by_token_is_all_at_once(self):
        """A state, and the last rows before a convolution, are all that a layer has to keep."""
        inputs = self.states()
        wanted, last = reference.delta_rule(*inputs)
        state = 0.0
        for t in range(len(wanted)):
            said, state = reference.delta_rule(*(x[t:t + 1] for x in inputs), state=state)
            np.testing.assert_array_equal(said[0], wanted[t])
        np.testing.assert_array_equal(state, last)
        x, taps = inputs[2].reshape(len(wanted), -1), np.random.Generator(np.random.PCG64(7)).standard_normal((18, 4))
        whole = reference.causal_convolution(x, taps)
        for t in range(3, len(x)):
            np.testing.assert_array_equal(reference.causal_convolution(x[t - 3:t + 1], taps)[-1], whole[t])

    def test_a_state_is_a_sum_over_what_was_written(self):
        """S = sum of decays since then, times key, times change: attention without softmax, over the changes."""
        q, k, v, decay, beta = self.states()
        wanted, _ = reference.delta_rule(q, k, v, decay, beta)
        since = lambda t, i: decay[i + 1:t + 1].prod(axis=0)[:, None]
        changes = []
        for t in range(len(q)):
            known = sum((since(t, i) * (k[t] * k[i]).sum(axis=1)[:, None] * changes[i] for i in range(t)), 0)
            changes.append(beta[t][:, None] * (v[t] - known))
            said = sum(since(t, i) * (q[t] * k[i]).sum(axis=1)[:, None] * changes[i] for i in range(t + 1))
            np.testing.assert_allclose(said, wanted[t], rtol=0, atol=1e-14)

    def test_a_state_written_whole_answers_with_the_value(self):
        """beta 1 and a key of length 1: the key then finds its value, whatever was there."""
        _, k, v, decay, _ = self.states()
        out, _ = reference.delta_rule(k, k, v, decay, np.ones_like(decay))
        np.testing.assert_allclose(out, v, rtol=0, atol=1e-14)

    def hybrid(self, **fields):
        return self.spec(**({"arch": "qwen35", "weights": "F32", "head_size": 64, "n_rotated": 16, "n_layer": 4,
                             "n_ff": 96, "state_size": 32} | fields))

    def test_a_layer_with_a_state_remembers(self):
        """No layer attends: what the first tokens were reaches the last one, less and less; but not without decay and
        convolution."""
        one_layer = self.hybrid(n_layer=1)
        shift = np.abs(self.logits(one_layer) - self.logits(one_layer, [4] + self.ids[1:])).max(axis=1)
        self.assertTrue((shift > 1e-3).all())
        path = self.directory / make_models.write_model(self.directory, one_layer)
        forgets = reference.Model(path)
        forgets.ready["blk.0.ssm_a", reference.dense] = np.full((1, 6), -1e9)
        taps = forgets.matrix("blk.0.ssm_conv1d.weight")
        whole = forgets.logits(self.ids)
        shift = np.abs(whole - forgets.logits([4] + self.ids[1:])).max(axis=1)
        self.assertTrue((shift[:4] > 1e-3).all() and (shift[4:] < 1e-12).all())  # four taps see the first token
        taps[:, :3] = 0
        shift = np.abs(forgets.logits(self.ids) - forgets.logits([4] + self.ids[1:])).max(axis=1)
        self.assertTrue(shift[0] > 1e-3 and (shift[1:] < 1e-12).all())

    def test_a_state_has_no_window(self):
        for spec, is_seen in ((self.hybrid(n_layer=3), False), (self.hybrid(), True)):  # the fourth layer attends
            whole, windowed = self.logits(spec), self.logits(spec, window=3)
            np.testing.assert_array_equal(windowed[:3], whole[:3])
            self.assertEqual((np.abs(windowed - whole).max(axis=1)[3:] > 1e-3).all(), is_seen)
            self.assertEqual(np.array_equal(windowed, whole), not is_seen)

    def test_value_heads_take_turns_with_key_heads(self):
        """Head h of six goes with key head h % 2: keys repeated in that order are the same model."""
        path = self.directory / make_models.write_model(self.directory, self.hybrid())
        turns = reference.Model(path)
        repeated = reference.Model(path)
        repeated.n_key_heads = 6
        for n in (0, 1, 2):
            for name, per in ((f"blk.{n}.attn_qkv.weight", 128), (f"blk.{n}.ssm_conv1d.weight", 4)):
                w = repeated.matrix(name)
                q, k, v = w[:64], w[64:128], w[128:]
                six = [np.tile(x.reshape(2, 32, per), (3, 1, 1)).reshape(192, per) for x in (q, k)]
                repeated.ready[name, reference.dense] = np.concatenate([*six, v])
        np.testing.assert_allclose(repeated.logits(self.ids), turns.logits(self.ids), atol=1e-12)

    def test_a_gate_opens_and_closes_attention(self):
        """Of layer 3: gates of minus infinity leave what the layer adds to the others; of infinity, plain attention."""
        path = self.directory / make_models.write_model(self.directory, self.hybrid())
        shut, without = reference.Model(path), reference.Model(path)
        x = np.ones((2, 128))
        rows = shut.matrix("blk.3.attn_q.weight").reshape(2, 2, 64, 128)  # heads, query and gate
        rows[:, 1] = -100.0 / 128
        np.testing.assert_allclose(shut.attention(x, "blk.3"), 0, atol=1e-12)
        rows[:, 1] = 100.0 / 128
        plain = shut.attention(x, "blk.3")
        # All see the same token: attention says its values, each head of two.
        values = without.linear(x, "blk.3.attn_v").reshape(2, -1, 64)
        values = np.repeat(values, 2 // values.shape[1], axis=1)
        np.testing.assert_allclose(plain.reshape(2, -1, 64), values, atol=1e-12)

    def test_unrotated_dimensions_are_independent_of_position(self):
        x = np.random.Generator(np.random.PCG64(6)).standard_normal((3, 2, 64))
        model = reference.Model(self.directory / make_models.write_model(self.directory, self.hybrid()))
        turned = model.rotate(x, reference.rope_angles(np.arange(3), 16, model.rope_base))
        np.testing.assert_array_equal(turned[..., 16:], x[..., 16:])
        np.testing.assert_array_equal(turned[0], x[0])
        alone = reference.rope(x[..., :16], reference.rope_angles(np.arange(3), 16, model.rope_base), True)
        np.testing.assert_array_equal(turned[..., :16], alone)

    def test_layers_that_look_ahead_are_no_part(self):
        """The same file without its last layer."""
        path = self.directory / make_models.write_model(self.directory, self.hybrid(n_ahead=1))
        _, tensors = reference.read_file(path)
        self.assertIn("blk.4.nextn.eh_proj.weight", tensors)
        model = reference.Model(path)
        whole = model.logits(self.ids)
        model.tensors = {name: t for name, t in model.tensors.items() if not name.startswith("blk.4.")}
        model.ready = {}
        np.testing.assert_array_equal(model.logits(self.ids), whole)

    def test_rotated_and_grouped_is_the_same_model(self):
        """ssm_out with columns in the order of key heads, then rotated: the inverse of what the activations see."""
        spec = self.hybrid(n_layer=1, state_size=64)
        path = self.directory / make_models.write_model(self.directory, spec)
        plain, turned = reference.Model(path), reference.Model(path)
        turned.rotated, turned.values_grouped = {"blk.0.ssm_out"}, True
        turned.block_matrix = reference.hadamard(128)
        turned.signs = {384: np.where(np.arange(384) % 3, 1.0, -1.0)}
        w = plain.matrix("blk.0.ssm_out.weight")
        order = [64 * (2 * r + k) + i for k in range(2) for r in range(3) for i in range(64)]  # tiled, by key head
        rotated = turned.turned(w[:, order] * turned.signs[384])
        turned.ready["blk.0.ssm_out.weight", reference.dense] = rotated
        np.testing.assert_allclose(turned.logits(self.ids), plain.logits(self.ids), atol=1e-9)

    def test_the_order_of_tokens_changes_the_logits(self):
        """Without rotation the last position would not depend on the order of the others."""
        swapped = [self.ids[i] for i in (1, 0, 2, 3, 4, 5, 6, 7, 8)]
        self.assertGreater(np.abs(self.logits(self.spec()) - self.logits(self.spec(), swapped))[-1].max(), 1e-3)

    def test_layouts_hold_the_same_weights(self):
        a, b, c = (self.logits(self.spec(layout=l), layout=l) for l in "abc")
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)

    def test_tq1_and_tq2_hold_the_same_weights(self):
        one, two = (self.logits(self.spec(weights=w, n_embd=256)) for w in ("TQ1_0", "TQ2_0"))
        np.testing.assert_array_equal(one, two)

    def test_containers_hold_the_same_model(self):
        for fields in ({}, {"weights": "TQ2_0", "n_embd": 256}):
            whole = self.logits(self.spec(**fields))
            np.testing.assert_array_equal(whole, self.logits(self.spec(version=2, **fields)))
            np.testing.assert_array_equal(whole, self.logits(self.spec(split=True, **fields)))

    def test_spellings_name_one_graph(self):
        np.testing.assert_array_equal(self.logits(self.spec(arch="bitnet-b1.58")),
                                      self.logits(self.spec(arch="bitnet-b158")))

    def test_the_activation_follows_architecture_and_vocabulary(self):
        for arch, vocab, rule in (("bitnet-25", "gpt2", "relu2"), ("bitnet", "gpt2", "silu"),
                                  ("bitnet-b1.58", "gpt2", "relu2"), ("bitnet-b1.58", "spm", "silu"),
                                  ("llama", "gpt2", "silu")):
            with self.subTest(f"{arch} {vocab}"):
                spec = self.spec(arch=arch, vocab=vocab)
                usual = self.logits(spec)
                np.testing.assert_array_equal(usual, self.logits(spec, activation=rule))
                other = {"relu2": "silu", "silu": "relu2"}[rule]
                self.assertGreater(np.abs(usual - self.logits(spec, activation=other)).max(), 1e-2)

    def test_a_scale_tensor_multiplies(self):
        spec = self.spec(scale_tensors=True, weights="TQ2_0", n_embd=256, n_layer=1)
        model = reference.Model(self.directory / make_models.write_model(self.directory, spec))
        x = np.linspace(-1, 1, 256)[None]
        scale = model.matrix("blk.0.attn_q.scale")[0, 0]
        np.testing.assert_allclose(model.linear(x, "blk.0.attn_q"), model.bit_linear(x, "blk.0.attn_q.weight") * scale)

    def test_a_bit_linear_is_near_the_plain_product(self):
        model = reference.Model(self.directory / make_models.write_model(self.directory, self.spec(n_layer=1)))
        x = np.sin(np.arange(128.0))[None]
        plain = x @ model.matrix("blk.0.attn_q.weight").T
        rounded = model.bit_linear(x, "blk.0.attn_q.weight")
        np.testing.assert_allclose(rounded, plain, atol=0.05)
        self.assertGreater(np.abs(rounded - plain).max(), 1e-4)

    def test_rotating_permuted_rows_in_pairs_is_rotating_halves(self):
        """llama files hold Q and K with permuted rows, so that both conventions score alike."""
        rng = np.random.Generator(np.random.PCG64(3))
        q, k = rng.standard_normal((2, 5, 2, 8))  # positions, heads, size
        pairs = np.arange(8).reshape(2, 4).T.reshape(-1)
        angles = reference.rope_angles(np.arange(5), 8, 10000.0)
        score = lambda a, b: np.einsum("ihd,jhd->hij", a, b)
        halves = score(reference.rope(q, angles, True), reference.rope(k, angles, True))
        paired = score(reference.rope(q[..., pairs], angles, False), reference.rope(k[..., pairs], angles, False))
        np.testing.assert_allclose(halves, paired, atol=1e-12)

    def test_linear_scaling_divides_positions(self):
        near = reference.rope_angles(np.arange(4) / 2.0, 8, 10000.0)
        np.testing.assert_array_equal(near[2], reference.rope_angles(np.arange(4), 8, 10000.0)[1])
        self.assertGreater(np.abs(self.logits(self.spec()) - self.logits(self.spec(rope={"type": "linear", "factor": 2.0}))).max(), 1e-2)

    def test_shared_keys_equal_repeated_ones(self):
        """Grouped queries: the same as a model that repeats each key and value head."""
        spec = self.spec(arch="llama", weights="F32", n_head=4, n_head_kv=2, n_layer=1)
        path = self.directory / make_models.write_model(self.directory, spec)
        grouped = reference.Model(path).logits(self.ids)
        repeated = reference.Model(path)
        repeated.n_head_kv = 4
        for name in ("blk.0.attn_k.weight", "blk.0.attn_v.weight"):
            heads = repeated.matrix(name).reshape(2, 32, 128)
            repeated.ready[name, reference.dense] = np.repeat(heads, 2, axis=0).reshape(128, 128)
        np.testing.assert_allclose(repeated.logits(self.ids), grouped, atol=1e-12)

    def test_unsupported_models_are_rejected(self):
        vocab = {"tokenizer.ggml.model": "gpt2"}
        good = make_models.make_metadata(self.spec(), {"tokenizer.ggml.tokens": ["a"]} | vocab)
        path = self.directory / "rejected.gguf"
        for key, value in (("general.architecture", "gemma2"), ("bitnet-b1.58.rope.dimension_count", 32),
                           ("bitnet-b1.58.rope.scaling.type", "su"), ("bitnet-b1.58.attention.value_length", 32)):
            with self.subTest(key):
                gguf_file.write(path, good | {key: value}, [])
                with self.assertRaises(reference.Unsupported):
                    reference.Model(path)
        gguf_file.write(path, good, [("blk.0.attn_q.bias", [32], 0, bytes(128))])
        with self.assertRaises(reference.Unsupported):
            reference.Model(path)


class Judgement(unittest.TestCase):
    def setUp(self):
        rng = np.random.Generator(np.random.PCG64(4))
        self.wanted = 3 * rng.standard_normal((6, 300))

    def test_float32_copies_pass(self):
        self.assertTrue(compare.compare(self.wanted.astype(np.float32), self.wanted).ok)

    def test_a_constant_added_to_a_position_changes_nothing(self):
        self.assertTrue(compare.compare(self.wanted + 0.5, self.wanted).ok)

    def test_defects_are_seen(self):
        def changed(edit):
            ours = self.wanted.copy()
            edit(ours)
            return ours

        def swap_best(x):
            order = x[2].argsort()
            x[2, order[-1]], x[2, order[-2]] = x[2, order[-2]], x[2, order[-1]]

        for why, ours in (("one position off", changed(lambda x: np.multiply(x[3], 1.02, out=x[3]))),
                          ("another best token", changed(swap_best)),
                          ("not a number", changed(lambda x: x.__setitem__((0, 0), np.nan))),
                          ("a position missing", self.wanted[1:]),
                          ("shifted by one position", np.roll(self.wanted, 1, axis=0))):
            with self.subTest(why):
                self.assertFalse(compare.compare(ours, self.wanted).ok)

    def test_measured_noise_widens_the_bound_no_further_than_measured(self):
        ours = self.wanted.copy()
        ours[3] *= 1.02
        kl = steadiness.divergence(self.wanted, ours)[3]
        quiet = np.zeros((2, 6))
        for factor, passes in ((0.5, True), (0.1, False)):
            noise = quiet.copy()
            noise[0, 3] = factor * kl
            self.assertEqual(compare.compare(ours, self.wanted, noise).ok, passes)
        noise = quiet.copy()
        noise[0, 2] = kl  # another position's noise excuses nothing
        self.assertFalse(compare.compare(ours, self.wanted, noise).ok)


class Models(unittest.TestCase):
    def test_names_are_unique_and_every_demand_is_met(self):
        specs = make_models.specs()
        self.assertEqual(len({s.name for s in specs}), len(specs))
        self.assertEqual({s.arch for s in specs}, set(reference.ARCHITECTURES))
        self.assertEqual({s.layout for s in specs}, {"a", "b", "c", "qk256"})
        dense = {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"}
        self.assertLessEqual(dense | {"I2_S", "TQ1_0", "TQ2_0"}, {s.weights for s in specs})
        self.assertLessEqual(dense, {s.embedding for s in specs})
        self.assertLessEqual(dense | {""}, {s.output for s in specs})

    def test_the_same_bytes_every_time(self):
        spec = make_models.specs()[0]
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            files = [pathlib.Path(d) / make_models.write_model(pathlib.Path(d), spec) for d in (one, two)]
            self.assertEqual(files[0].read_bytes(), files[1].read_bytes())


if __name__ == "__main__":
    unittest.main()
