"""The demo model's own states: stories by the two-stage head and by the full one, word for word alike.

Minutes, so that ctest knows it only in its configuration: scripts/test --lane states. DEMO_STORIES says how many (200).
"""

import os

import support

OPENINGS = ("Once upon a time", "One day, a", "Lily and Tom", "The old", "In the forest, there")


@support.needs_backend
class DemoStates(support.Case):
    def test_stories_are_alike(self):
        states = 0
        for seed in range(int(os.environ.get("DEMO_STORIES", "200"))):
            words = ("run", "--json", "-p", OPENINGS[seed % len(OPENINGS)], "-n", "200", "--seed", str(seed))
            words += ("--temp", "0") if seed < len(OPENINGS) else ("--temp", "1", "--top-k", "40", "--top-p", "1")
            full, exact = (self.ok(*words, "--head", head).json for head in ("full", "exact"))
            with self.subTest(seed=seed):
                self.assertEqual(exact["text"], full["text"])
                self.assertEqual(exact["tokens"], full["tokens"])
            states += len(full["tokens"]["generated"])
        print(f"{states} states of the demo model")
        self.assertGreater(states, 0)


if __name__ == "__main__":
    support.main()
