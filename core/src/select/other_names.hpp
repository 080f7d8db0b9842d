#pragma once
// What is known of names that a request may have and no backend has. Data beside the backends
// (plugins/other-names.txt), since the core names no vendor.

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::select {

struct other_name {
  std::string_view name, sentence;
  std::string_view instead;  // backends for the same devices, the best first, with blanks between
};

// nullptr: nothing is known of it.
const other_name* find_other_name(std::string_view name);

// Whether bitnet-backend-NAME is a package of ours.
bool has_package(std::string_view backend);
std::string backends_with_packages();  // with ", " between

std::vector<std::string> instead_of(const other_name& name);

}  // namespace bitnet::select
