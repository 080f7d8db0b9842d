"""The units of the service: systemd reads them without a complaint, and they confine it."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SERVICE = pathlib.Path(__file__).resolve().parents[2] / "packaging/service"
UNITS = ("bitnet-server.service", "bitnet-server@small.service", "bitnet-server.socket")
VENDORS = sorted(file.stem for file in (SERVICE / "drop-ins").glob("*.conf"))
WORST = 2.5  # of 10, by systemd-analyze security


def values(unit, key):
    return re.findall(rf"^{key}=(.*)$", (SERVICE / unit).read_text(encoding="utf-8"), re.MULTILINE)


def analyze(*words):
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False, timeout=30)
    return done.returncode, done.stdout + done.stderr


class Units(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for unit in SERVICE.glob("bitnet-server*.s*[et]"):
            # The program need not be installed, and systemd looks for it.
            text = unit.read_text(encoding="utf-8").replace("/usr/bin/bitnet-server", "/bin/true")
            (self.folder / unit.name).write_text(text, encoding="utf-8")

    def use(self, vendor):
        for unit in ("bitnet-server.service", "bitnet-server@.service"):
            (self.folder / f"{unit}.d").mkdir(exist_ok=True)
            shutil.copy(SERVICE / f"drop-ins/{vendor}.conf", self.folder / f"{unit}.d")

    def verified(self):
        return analyze("verify", "--man=no", *(str(self.folder / unit) for unit in UNITS))

    def test_systemd_reads_them(self):
        self.assertEqual(self.verified(), (0, ""))

    def test_systemd_accepts_each_drop_in(self):
        self.assertIn("nvidia", VENDORS)
        for vendor in VENDORS:
            self.use(vendor)
            self.assertEqual(self.verified(), (0, ""), vendor)

    def test_a_wrong_key_is_seen(self):
        with open(self.folder / "bitnet-server.service", "a", encoding="utf-8") as file:
            file.write("\n[Service]\nProtectSytem=strict\n")
        self.assertIn("ProtectSytem", self.verified()[1])

    def exposure(self, unit):
        _, said = analyze("security", "--offline=yes", "--no-pager", str(self.folder / unit))
        return float(re.search(r"exposure level for \S+: ([0-9.]+)", said)[1])

    def test_the_exposure_of_each_unit_stays_below_the_limit(self):
        for unit in ("bitnet-server.service", "bitnet-server@.service"):
            self.assertLessEqual(self.exposure(unit), WORST, unit)


class Texts(unittest.TestCase):
    """Checks that systemd-analyze does not make."""

    def test_the_units_of_names_differ_by_the_name_only(self):
        one, many = ((SERVICE / f"bitnet-server{at}.service").read_text(encoding="utf-8").split("[Unit]")[1] for at in ("", "@"))
        many = many.replace("servers/%i.yaml", "server.yaml").replace("bitnet-server/%i", "bitnet-server")
        self.assertEqual(many.replace(" (%i)", ""), one)

    def test_settings_that_are_wrong_end_it_for_good(self):
        (codes,) = values("bitnet-server.service", "RestartPreventExitStatus")
        self.assertLessEqual({"2", "3"}, set(codes.split()))

    def test_listens_on_this_machine_only(self):
        self.assertEqual(values("bitnet-server.socket", "ListenStream"), ["127.0.0.1:8080"])
        set_keys = dict(re.findall(r"^([a-z-]+): *(.*)$", (SERVICE / "server.yaml").read_text(encoding="utf-8"), re.MULTILINE))
        self.assertEqual(set_keys, {"host": "127.0.0.1", "port": "8080"})


if __name__ == "__main__":
    if not shutil.which("systemd-analyze"):
        print("skip: there is no systemd-analyze; apt install systemd")
        sys.exit(77)
    unittest.main()
