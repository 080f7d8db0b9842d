#pragma once
// Fake backends, to test selection and readers of its report: BITNET_GPU_FAKE.
//
// A fake is listed, ranked and can be selected; reports show "(fake)" behind its name. It computes
// nothing: a request that selects one is an error.

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

// Parses a comma list of NAME or NAME:N, N devices of the backend; "none" or "" for none. Case and
// blanks do not matter. BITNET_INVALID_ARGUMENT.
[[nodiscard]] result<std::vector<fake_backend>> parse_fakes(std::string_view text);

}  // namespace bitnet::select
