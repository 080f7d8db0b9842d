"""The story that the README shows is the one that scripts/demo prints.

readme_test.py BITNET
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    demo = (ROOT / "scripts/demo").read_text(encoding="utf-8")
    words = shlex.split(re.search(r"^exec build/release/bin/bitnet (.*)$", demo, re.M).group(1))
    words = [word.replace("$prompt", "Once upon a time") for word in words]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("BITNET_", "XDG_"))} | {"HOME": folder}
        # With HOME, all that is remembered of other backends is another machine's.
        done = subprocess.run([sys.argv[1], *words], capture_output=True, text=True, check=False, env=env, cwd=ROOT)
    if done.returncode == 4:
        print("skip: no backend that computes was built")
        return 77
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"The first ends in\n\n```\n(.*?)\n```", readme, re.S).group(1).split()
    printed = (done.stdout + done.stderr).split()
    if shown != printed:
        print("the README shows\n", " ".join(shown), "\nscripts/demo prints\n", " ".join(printed))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
