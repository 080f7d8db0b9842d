#pragma once
// Names in other projects' libraries that an analysis searches for. The core opens none of these
// libraries and calls none of these interfaces. No other file of the core may contain them
// (tests/scripts/vendors_test.py).

#include <array>
#include <string_view>

namespace bitnet::plugin::foreign_names {

// BitNet-rs uses the same group, words in symbols and inference line.
inline constexpr std::string_view accelerator_group = "cuda";
inline constexpr auto accelerator_words = std::to_array<std::string_view>({"cuda", "__global__"});
inline constexpr std::string_view accelerator_inference = "CUDA backend";

// Interfaces to devices: "cudart" stands for libcudart.so.12. The table has stems, since
// scripts/check-licences takes a whole name for a library that is opened.
inline constexpr auto accelerator_libraries = std::to_array<std::string_view>(
    {"cuda", "cudart", "cublas", "cublasLt", "nvrtc", "amdhip64", "hipblas", "rocblas", "vulkan",
     "OpenCL", "ze_loader", "sycl", "musa", "ascendcl"});

}  // namespace bitnet::plugin::foreign_names
