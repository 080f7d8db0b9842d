#pragma once
// Parses the value of --device: auto, cpu, gpu, npu, a backend's name, name:index, or a comma list
// of these in order of preference.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bitnet::select {

// One item of a request.
struct wish {
  enum class kind_type : uint8_t { any, device_class, name };
  kind_type kind = kind_type::any;
  std::string text;           // as written, lower case: "mine:1"
  std::string name;           // without the index: "mine"
  uint32_t device_class = 0;  // BITNET_DEVICE_*, of kind device_class
  std::optional<uint32_t> index;
};

// Case and blanks around items do not matter; "" is auto; duplicates count once.
// BITNET_INVALID_ARGUMENT with the fault and the source of the request.
[[nodiscard]] result<std::vector<wish>> parse_request(const std::string& text,
                                                      const std::string& requested_by);

}  // namespace bitnet::select
