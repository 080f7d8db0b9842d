"""ptx.py follows the words of PTX that decide how often others are executed. Each expected count is by hand."""

import unittest

import ptx


def counts(text, special=None, param=None):
    kernel = ptx.Kernel("text", "{\n" + text + "}\n")
    return ptx.Thread(kernel, param or ptx.launch([], [], []), ptx.Memory(), {"%tid.x": 0, **(special or {})}).run()


def loop(condition):
    """Adds floats while a number, 0 at first, is less than 4. `condition` makes %p2, true at the end, from %p1, which is true before."""
    return ("mov.u32 %r1, 0;\n$L__again:\nsetp.lt.u32 %p1, %r1, 4;\n" + condition + "@%p2 bra $L__end;\nadd.rn.f32 %f1, %f1, %f2;\n"
            "add.s32 %r1, %r1, 1;\nbra.uni $L__again;\n$L__end:\nret;\n")


class Follower(unittest.TestCase):
    def test_a_loop_ends_by_each_operation_on_predicates(self):
        for condition in ("not.pred %p2, %p1;\n", "setp.ge.u32 %p2, %r1, 4;\n", "mov.pred %p3, -1;\nxor.pred %p2, %p1, %p3;\n",
                          "not.pred %p3, %p1;\nor.pred %p2, %p3, %p3;\n", "not.pred %p3, %p1;\nand.pred %p2, %p3, %p3;\n",
                          "setp.lt.u32 %p3, %r1, 9;\nsetp.ge.and.u32 %p2, %r1, 4, %p3;\n",
                          "selp.b32 %r2, 0, 1, %p1;\nsetp.ne.s32 %p2, %r2, 0;\n"):
            found = counts(loop(condition))
            self.assertEqual((found["add.rn.f32"], found["setp.lt.u32"]), (4, 10 if "9" in condition else 5), condition)

    def test_a_guard_may_be_negated(self):
        found = counts(loop("setp.ge.u32 %p2, %r1, 4;\n").replace("@%p2 bra", "@!%p1 bra"))
        self.assertEqual(found["add.rn.f32"], 4)

    def test_wide_products_keep_64_bits_of_an_address(self):
        found = counts("mov.u64 %rd1, 51539607552;\nmov.u32 %r1, 4294967295;\nmov.u32 %r2, 256;\nmad.wide.u32 %rd2, %r1, %r2, %rd1;\n"
                       "setp.eq.s64 %p1, %rd2, 1151051235072;\n@%p1 bra $L__same;\nadd.rn.f32 %f1, %f1, %f2;\n$L__same:\nret;\n")
        self.assertEqual(found["add.rn.f32"], 0)

    def test_words_that_become_operands_weigh_nothing(self):
        self.assertEqual(ptx.weighed({"mov.u32": 9, "add.s32": 2, "add.s64": 3, "mad.wide.u32": 1}), 2 + 2 * 3 + 1)


if __name__ == "__main__":
    unittest.main()
