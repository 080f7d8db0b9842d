#include "schema/limits.hpp"

#include <fmt/core.h>

namespace bitnet::schema {

void faults::wrong(const std::string& where, const std::string& what, bitnet_status status) {
  if (!first_) first_ = failure{status, fmt::format("the JSON schema, at {}: {}", where, what)};
}

bool faults::spend(uint64_t n) {
  work_ += n;
  if (work_ > most_work)
    unsupported(
        "it takes more than a second to be compiled; make it smaller, with fewer "
        "combinations of anyOf, oneOf and allOf, and shorter patterns");
  return !first_;
}

}  // namespace bitnet::schema
