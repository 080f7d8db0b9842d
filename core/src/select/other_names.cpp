#include "select/other_names.hpp"

#include <algorithm>

#include "plugin/codes/text.hpp"

namespace bitnet::select {
namespace {

#include "other_names.inc"

}  // namespace

const other_name* find_other_name(std::string_view name) {
  const auto* const found = std::ranges::find(all_others, name, &other_name::name);
  return found == std::end(all_others) ? nullptr : found;
}

bool has_package(std::string_view backend) {
  return std::ranges::find(all_packages, backend) != std::end(all_packages);
}

std::string backends_with_packages() {
  return plugin::join({std::begin(all_packages), std::end(all_packages)}, ", ");
}

std::vector<std::string> instead_of(const other_name& name) {
  std::vector<std::string> out;
  for (std::string_view rest = name.instead; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

}  // namespace bitnet::select
