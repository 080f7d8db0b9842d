// Any bytes as a key, as certificates, and as those of a bundle: nothing that was not signed is
// taken for signed. A NUL stands between the three.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "signature/keys.hpp"

using namespace bitnet::signature;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t first = text.find('\0');
  const size_t second = first == std::string::npos ? first : text.find('\0', first + 1);
  const std::string pem = text.substr(0, first);
  bundle of{.payload = "{}", .signature = "0", .key_hint = "", .certificates = {}};
  if (first != std::string::npos) of.signature = text.substr(first + 1, second - first - 1);
  if (const auto by = verify_by_key(of, pem); by && by->key.size() != 64) abort();
  if (second != std::string::npos) of.certificates = {text.substr(second + 1)};
  if (const auto by = verify_by_certificate(of, pem); by && by->certificate.size() != 64) abort();
  return 0;
}
