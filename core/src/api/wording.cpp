// bitnet_wording_set: sets the names of options in messages.
#include "base/wording.hpp"

#include "api/edge.hpp"

bitnet_status bitnet_wording_set(const char* id, const char* words, bitnet_error* err) {
  return bitnet::api::guarded(err, "bitnet_wording_set", [&]() -> bitnet::result<void> {
    if (id == nullptr) return bitnet::api::missing("id");
    return bitnet::set_wording(id, words);
  });
}
