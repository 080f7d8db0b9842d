#include "api/kernels_json.hpp"

#include <nlohmann/json.hpp>

#include "bitnet/abi/tensor.h"
#include "compute/graph/graph.hpp"
#include "plugin/codes/text.hpp"
#include "select/ranking.hpp"

namespace bitnet::api {

nlohmann::ordered_json kernels_json(const std::vector<engine::device_use>& ran) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const engine::device_use& on : ran)
    for (const bitnet_kernel_stat& k : on.kernels) {
      nlohmann::ordered_json one = {{"id", plugin::printable_array(k.id)},
                                    {"op", compute::op_name(k.op)},
                                    {"backend", on.backend},
                                    {"device", on.device}};
      if (const auto listed = on.describe(k)) {
        if (listed->format != BITNET_FORMAT_NONE)
          one["format"] = compute::format_name(listed->format);
        one["level"] = select::level_name(listed->level);
        if (const char* precision = select::precision_name(listed->precision))
          one["precision"] = precision;
      }
      one["calls"] = k.calls;
      if (k.time_ns != 0) one["time_ns"] = k.time_ns;
      if (k.bytes != 0) one["bytes"] = k.bytes;
      out.push_back(std::move(one));
    }
  return out;
}

}  // namespace bitnet::api
