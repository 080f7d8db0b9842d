"""The version is CMake's; and a wheel with libbitnet in it is for one platform and any Python 3."""

import re
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

HERE = Path(__file__).parent
VERSION = re.search(r"^project\(bitnet VERSION ([0-9.]+)",
                    (HERE.parent / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE)


class NativeDistribution(Distribution):
    def has_ext_modules(self):
        return (HERE / "src/bitnet/native/lib").is_dir()


class NativeWheel(bdist_wheel):
    def run(self):
        if not self.distribution.has_ext_modules():
            raise SystemExit("there is no libbitnet here to put into a wheel: scripts/package wheel builds one")
        super().run()

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=VERSION[1], distclass=NativeDistribution, cmdclass={"bdist_wheel": NativeWheel})
