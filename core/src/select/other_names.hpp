#pragma once
// Names in requests that no backend has, and what to use instead. The data lie beside the backends
// (plugins/other-names.txt), since the core names no vendor.

#include <string>
#include <string_view>
#include <vector>

namespace bitnet::select {

struct other_name {
  std::string_view name, sentence;
  std::string_view instead;  // backends for the same devices, best first, separated by blanks
};

// nullptr: unknown.
const other_name* find_other_name(std::string_view name);

// Whether this project has a package bitnet-backend-NAME.
bool has_package(std::string_view backend);
std::string backends_with_packages();  // separated by ", "

std::vector<std::string> instead_of(const other_name& name);

}  // namespace bitnet::select
