#pragma once
// The model that the tree brings, for tests that ctest tells where the tree is.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace bitnet::test {

// "" where there is none.
inline std::string demo_model() {
  const char* source = std::getenv("BITNET_SOURCE_DIR");
  if (source == nullptr) return {};
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source) / "models", none))
    if (entry.path().extension() == ".gguf") return entry.path();
  return {};
}

}  // namespace bitnet::test
