// Any bytes as the report that an author puts beside a backend: words that can be expected.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "library/conformance_report.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer asks for this name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto claim = bitnet::host::parse_conformance(text, "cpu", "7c0e");
  if (claim.problem.empty() == claim.level.empty()) std::abort();
  const std::string words = in_words(claim);
  constexpr std::size_t longest = 200;
  if (words.empty() || words.size() > longest) std::abort();
  for (const char c : words)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) std::abort();
  return 0;
}
