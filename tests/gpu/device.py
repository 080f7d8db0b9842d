"""A device under test: the program on it, the models, and a folder whose plugin is replaced."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests/cli"))
import reloading  # pylint: disable=wrong-import-position
import support  # pylint: disable=wrong-import-position

PROMPT = "Once upon a time"
PROMPTS = (PROMPT, "Tell me a story about a mole", "The sun was warm and the cat", "Lily and Tom went to the park")
SHAPES = ("2b-4t", "8b", "10b", "27b")
NARROW = ("--layers 1 --embedding 256 --feed-forward 384 --heads 2 --kv-heads 1 --vocabulary 512").split()


class Failed(Exception):
    """What the device did that it must not."""


def must(holds, *why):
    if not holds:
        raise Failed(" ".join(str(w) for w in why))


def parting(got, want):
    """Where two texts part, or where the shorter one ends."""
    return next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))


def same_text(got, want, where):
    at = parting(got, want)
    must(got == want, f"{where}: another text than the cpu's from {at} of {len(want)} on:", got[at:at + 40],
         "in place of", want[at:at + 40])


@dataclasses.dataclass
class Sizes:
    """How much is done."""
    tokens: int  # of a text
    soak: int    # steps of it
    reloads: int
    prompts: str  # lengths of a measurement
    rounds: int
    megabytes: int  # copied for the limit
    sessions: int
    patience_s: int  # with a step
    kernel_tests: int  # programs of them


FULL = Sizes(64, 1000, 12, "8,64,512,2048", 5, 1024, 4, 3600, 99)
SHORT = Sizes(6, 40, 1, "4,34", 1, 1, 2, 240, 1)


class Lane:
    """The program, the models and the device. Has what divergence.py wants of a test case."""

    def __init__(self, options):
        self.build, self.device, self.short = options.build.resolve(), options.device, options.short
        self.models, self.sanitizer = options.models.resolve(), options.sanitizer
        self.shapes, self.variants = options.shapes.split(","), options.variants
        self.program = os.environ.get("BITNET_PROGRAM", str(self.build / "bin/bitnet"))
        self.sizes = SHORT if self.short else FULL
        self.demo = support.demo_model()
        if not self.demo or not os.access(self.program, os.X_OK):
            sys.exit(f"expected {self.program} and a TinyTales*.gguf in models/; build the target `product` first")
        self.models.mkdir(parents=True, exist_ok=True)
        self.scratch = tempfile.TemporaryDirectory(prefix="bitnet-gpu-")

    def environment(self, extra=None):
        libraries = [str(self.build / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
        homes = {f"XDG_{kind}_HOME": str(self.models / "home") for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
        return {**os.environ, **homes, "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
                "PYTHONPATH": ":".join(filter(None, (str(TREE / "python/src"), os.environ.get("PYTHONPATH", "")))),
                "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1",
                "BITNET_BACKENDS": f"cpu,{self.device}", "BITNET_PROBE_WAIT": "60000", "BITNET_MODEL": self.demo,
                **(extra or {})}

    def call(self, *words, env=None):
        return subprocess.run([str(w) for w in words], capture_output=True, text=True, env=self.environment(env),
                              stdin=subprocess.DEVNULL, cwd=TREE, timeout=3600, check=False)

    def ok(self, *words, env=None, codes=(0,)):
        """The program, which must end well; its standard output."""
        done = self.call(self.program, *words, env=env)
        must(done.returncode in codes, "bitnet", *words, f"ends with {done.returncode}:", done.stderr.strip()[-2000:])
        return done.stdout

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    @staticmethod
    def assertEqual(one, other):  # pylint: disable=invalid-name
        must(one == other, one, "is not", other)

    def answer(self, device, model, *words, env=None):
        """A greedy text and all that --json says of it."""
        return json.loads(self.ok("run", "--device", device, "-m", model, "--temp", "0", "--ignore-eos", "-n",
                                  self.sizes.tokens, "--json", "-p", PROMPT, *words, env=env))

    def of(self, file):
        """What the tables show of a command's words."""
        return f"-m {os.path.relpath(file, TREE)} --device {self.device}"

    def all_models(self):
        """(what it is called, its file); makes what is missing."""
        yield "demo model", self.demo
        for shape in self.shapes:
            file = self.models / f"{'narrow' if self.short else 'random'}-{shape}.gguf"
            if not file.exists():
                begun = file.with_suffix(".part")
                done = self.call(sys.executable, TREE / "tests/bench/make_model.py", begun, "--shape", shape,
                                 *(NARROW if self.short else ()),
                                 # The fourth layer of this one attends.
                                 *(("--layers", 4) if self.short and shape == "27b" else ()))
                must(done.returncode == 0, "no model of the shape", shape, "was made:", done.stderr)
                begun.rename(file)
            yield f"random {shape}", str(file)

    def facts(self, *words):
        """Of the first device, as `bitnet backends` has it; (None, why) without one."""
        report = json.loads(self.ok("backends", "why", "--json", "--device", self.device, *words, codes=(0, 4, 22)))
        mine = next((b for b in report["backends"] if b["name"] == self.device), None)
        if mine is None:
            return None, f"{self.device}: no backend of that name is installed"
        usable = [d for d in mine.get("devices", []) if d.get("usable")]
        if not usable:
            return None, f"{self.device}: {mine['code']}: {mine['reason']}"
        return {**usable[0], "library": mine["library"], "manifest": mine["manifest"],
                "disabled": mine["probe"].get("disabled_kernels", [])}, ""


class Yard:
    """A folder of manifests with plugins that are replaced, as packages do it."""

    def __init__(self, lane, replacement=None, folder=None):
        self.folder = folder or lane.scratch.name
        self.lane, self.device, self.manifests = lane, lane.device, os.path.join(self.folder, "manifests")
        self.serial = 0
        os.makedirs(self.manifests, exist_ok=True)
        facts, _ = lane.facts()
        folder = pathlib.Path(facts["manifest"]).parent
        self.plugin = facts["library"]
        self.library = os.path.join(self.folder, f"libbitnet-backend-{self.device}.so")
        for name, library in (("cpu", str(pathlib.Path(self.plugin).with_name("libbitnet-backend-cpu.so"))),
                              (self.device, self.library)):
            text = (folder / f"50-{name}.yaml").read_text(encoding="utf-8")
            pathlib.Path(self.manifests, f"50-{name}.yaml").write_text(
                re.sub(r"(?m)^library: .*", f"library: {library}", text), encoding="utf-8")
        self.install(pathlib.Path(replacement or self.plugin).read_bytes())

    def install(self, content):
        fresh = pathlib.Path(self.library + ".new")
        fresh.write_bytes(content)
        fresh.chmod(0o755)
        fresh.rename(self.library)

    def upgrade(self):
        self.serial += 1
        self.install(reloading.rebuilt(pathlib.Path(self.plugin).read_bytes(), self.serial))

    @contextlib.contextmanager
    def model(self, device=None, file=None):
        import bitnet  # pylint: disable=import-outside-toplevel # of the tree, by PYTHONPATH
        with bitnet.Engine(device or self.device, manifest_dirs=[self.manifests], probe_wait_ms=60_000) as engine:
            with engine.open_model(file or self.lane.demo) as model:
                yield engine, model

    def session(self, model, **options):
        return model.session(**{"n_context": 256, "n_batch": 32, "deterministic": True, **options})

    def texts(self, model, prompts):
        """Generated by sessions of their own, one after the other."""
        out = []
        for prompt in prompts:
            with self.session(model) as session:
                out.append(self.generate(session, prompt))
        return out

    def of_cpu(self, prompts):
        with self.model("cpu") as (_, model):
            return self.texts(model, prompts)

    def generate(self, session, prompt, tokens=None):
        return session.generate(prompt, temperature=0, ignore_eos=True,
                                max_tokens=tokens or self.lane.sizes.tokens).text


def threads(work, arguments):
    with concurrent.futures.ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(work, arguments))
