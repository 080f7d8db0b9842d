// Any bytes as a receipt: an envelope or a complaint, and what is read is what would be written.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "receipt/base64.hpp"
#include "receipt/envelope.hpp"

using namespace bitnet::receipt;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto bytes = from_base64(text); bytes && to_base64(*bytes) != text) abort();
  const auto e = read_envelope(text);
  if (!e) {
    if (e.error().status != BITNET_BAD_DATA || e.error().message.empty()) abort();
    return 0;
  }
  if (e->signatures.size() > most_signatures) abort();
  const auto statement = read_statement(e->payload);
  if (statement && !statement->is_object()) abort();
  return 0;
}
