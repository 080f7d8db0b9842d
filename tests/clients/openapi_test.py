"""schemathesis asks what /openapi.json describes: no answer is a 5xx, and each is as the description says."""

import os
import subprocess
import sys

from client_case import KEY, Client, main, needs

SEED = "20260"
EXAMPLES = "5"


@needs("schemathesis")
class Description(Client):
    OPTIONS = ("--alias", "tales", "--api-key", KEY, "-n", "2", "-c", "128")

    def test_is_true_of_generated_requests(self):
        words = [sys.executable, "-m", "schemathesis.cli", "run", self.url + "/openapi.json",
                 "-H", "Authorization: Bearer " + KEY,
                 "--checks", "not_a_server_error,content_type_conformance,response_schema_conformance,"
                 "status_code_conformance", "--max-examples", EXAMPLES, "--seed", SEED, "--phases", "examples,fuzzing",
                 "--request-timeout", "30", "--no-color"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=280, cwd=self.home,
                              env={**os.environ, "HOME": self.home})
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-8000:])
        self.assertRegex(done.stdout, r"[1-9]\d* generated")  # it did ask
        self.assertEqual(self.server.ask("GET", "/health")[:1], (200,))


if __name__ == "__main__":
    main()
