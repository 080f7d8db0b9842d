"""The core names no vendor of devices, none of their drivers and no interface to them: what a backend
needs to be known of them stands in its manifest (docs/reference/manifest.md)."""

import pathlib
import re
import unittest

CORE = pathlib.Path(__file__).resolve().parents[2] / "core"
# Names that `bitnet analyze-library` searches for in other libraries. Other files of the core use them from
# there.
EXEMPT = CORE / "src/plugin/analysis/foreign_names.hpp"
NAMES = ("adreno amd amdgpu amdxdna apple arc ascend cann cuda cudnn geforce habana hexagon hip hsa i915 icd "
         "intel kfd lavapipe llvmpipe mali mesa moltenvk musa nouveau npuw nvidia nvml nvrtc oneapi opencl "
         "openvino pocl qnn qualcomm radeon rocm rocr rusticl spirv swiftshader sycl tegra vaapi vulkan "
         "webgpu zluda").split()
# A name that stands alone or with _ - / . or digits: nvidia-uvm, libcuda.so.1, "cuda:0", VULKAN_SDK.
NAME = re.compile(r"(?<![a-z0-9])(?:lib)?(" + "|".join(NAMES) + r"|level.zero|ze_loader)(?![a-z])", re.IGNORECASE)


def named_in(text):
    return [match[0] for match in NAME.finditer(text)]


class Vendors(unittest.TestCase):
    def test_a_name_is_seen(self):
        for text in ('"/dev/nvidia-uvm"', "libcuda.so.1", "// for CUDA and ROCm", "is_amd_gpu()", "level-zero", "hip:1",
                     "libze_loader.so.1", "cuda_visible", "/etc/vulkan/icd.d"):
            self.assertTrue(named_in(text), text)
        for text in ("the chip", "shipped", "archive", "executed", "a domain", "intelligible", "cpu, gpu"):
            self.assertEqual(named_in(text), [], text)

    def test_the_core_names_no_vendor(self):
        found, files = [], 0
        self.assertTrue(named_in(EXEMPT.read_text(encoding="utf-8")), "needs no exemption")
        for file in sorted(set(CORE.rglob("*")) - {EXEMPT}):
            if file.suffix in (".hpp", ".cpp", ".h", ".c", ".txt", ".cmake", ".in", ".map"):
                files += 1
                for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                    found += [f"{file.relative_to(CORE.parent)}:{number}: {name}" for name in named_in(line)]
        self.assertGreater(files, 200, "the core lies elsewhere now")
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
