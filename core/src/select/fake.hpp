#pragma once
// Backends that are only pretended, for trying out selection and what reads its report:
// BITNET_GPU_FAKE.
//
// A fake is listed, ranked and can win, with "(fake)" behind its name wherever it appears. It
// computes nothing: a request that ends at one is an error.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bitnet::select {

struct fake_backend {
  std::string name;
  uint32_t n_devices = 1;  // of class gpu
};

// A comma list of NAME or NAME:N, N devices of the backend; "none" or "" for none. Case and blanks
// do not matter. BITNET_INVALID_ARGUMENT.
[[nodiscard]] result<std::vector<fake_backend>> parse_fakes(std::string_view text);

}  // namespace bitnet::select
