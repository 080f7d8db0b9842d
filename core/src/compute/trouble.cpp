#include "compute/trouble.hpp"

namespace bitnet::compute {

failure in_words(trouble t, const std::string& doing) {
  if (t.status != BITNET_OK)
    return failure{t.status, std::move(t.reason), std::move(t.from)}.within(doing);
  return failure{
      BITNET_REJECTED,
      fmt::format("{}() {}: the backend breaks its contract; request another device, and "
                  "report it to the backend's author",
                  t.slot, t.reason)}
      .within(doing);
}

}  // namespace bitnet::compute
