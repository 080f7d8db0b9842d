#pragma once
// Names that libraries of others contain, for which an analysis searches. The core opens none of
// these libraries and calls none of these interfaces. This is the one file of the core that may
// name them (tests/scripts/vendors_test.py).

#include <array>
#include <string_view>

namespace bitnet::plugin::foreign_names {

// The group, its words in a symbol's name and its inference line are those of BitNet-rs.
inline constexpr std::string_view accelerator_group = "cuda";
inline constexpr auto accelerator_words = std::to_array<std::string_view>({"cuda", "__global__"});
inline constexpr std::string_view accelerator_inference = "CUDA backend";

// Interfaces to devices: "cudart" stands for libcudart.so.12. The stem stands alone, since
// scripts/check-licences takes a whole name for a library that is opened.
inline constexpr auto accelerator_libraries = std::to_array<std::string_view>(
    {"cuda", "cudart", "cublas", "cublasLt", "nvrtc", "amdhip64", "hipblas", "rocblas", "vulkan",
     "OpenCL", "ze_loader", "sycl", "musa", "ascendcl"});

}  // namespace bitnet::plugin::foreign_names
