"""`bitnet serve` whose engine hangs or is lost, on a device of the tests' own."""

import threading

import support
from second_device import TwoDevices
from support import needs_backend
from test_serve import LONG, PROMPT


@needs_backend
class Engine(TwoDevices):
    def ask_later(self, **body):
        """A request in a thread of its own, and what comes of it."""
        got = []

        def ask():
            try:
                got.append(self.server.ask("POST", "/v1/completions", {"prompt": PROMPT, **LONG, **body}))
            except OSError as e:
                got.append(e)
        thread = threading.Thread(target=ask)
        thread.start()
        return thread, got

    def test_a_lost_device_without_another_ends_the_server(self):
        self.serve("--device", "fragile", env={"BITNET_FRAGILE_STEPS": "5"})
        thread, got = self.ask_later()
        thread.join()
        status, _, out = got[0]
        self.assertEqual(status, 500, out)
        self.assertIn("fell off the bus", out["error"]["message"])
        code, log = self.server.end()
        self.assertEqual(code, 4, log)
        self.assertIn("was lost, and no other could take its place", log)

    def test_a_lost_device_with_another_moves_the_requests(self):
        self.serve("--device", "fragile,cpu", env={"BITNET_FRAGILE_STEPS": "5"})
        thread, got = self.ask_later()
        thread.join()
        self.assertEqual(got[0][0], 200, got)
        self.assertEqual(self.server.ask("GET", "/backends")[2]["live"]["device"], "cpu:0")
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)

    def test_a_hanging_device_fails_the_health_check(self):
        self.serve("--device", "fragile", "--step-timeout", "1",
                   env={"BITNET_FRAGILE_STEPS": "5", "BITNET_FRAGILE_HANG_MS": "60000"})
        thread, _ = self.ask_later()

        def hangs():
            status, _, out = self.server.ask("GET", "/health")
            return status == 503 and out["error"]["code"] == "engine_hangs"
        self.server.wait_for(hangs, "it is not alive")
        self.assertEqual(self.server.ask("GET", "/ready")[0], 503)
        self.server.kill()
        thread.join()


if __name__ == "__main__":
    support.main()
