#pragma once
// What a loaded file says of itself in its notes.

#include <map>
#include <string>

namespace bitnet::conformance {

struct identity {
  std::string build_id;                       // hexadecimal, "" if there is none
  std::map<std::string, std::string> fields;  // of the plugin's own note
};

// Of the loaded library that holds `address`.
identity identity_of(const void* address);

}  // namespace bitnet::conformance
