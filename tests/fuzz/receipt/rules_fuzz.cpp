// Any JSON as the payload of a receipt: judged by all rules that look at no file, in bounded time,
// and never valid without a trusted signature.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "receipt/base64.hpp"
#include "receipt/envelope.hpp"
#include "receipt/rules.hpp"

using namespace bitnet::receipt;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string payload(reinterpret_cast<const char*>(data), size);
  const auto text = make_envelope(payload, "");
  if (!text) abort();
  question asked;
  asked.look_at_plugins = false;
  asked.gpu_kernels = true;
  asked.fused_percent = 50.0;
  const auto v = judge(*text, asked);
  if (!v) {
    if (v.error().status != BITNET_BAD_DATA || v.error().message.empty()) abort();
    return 0;
  }
  if (v->is_valid()) abort();  // it has no signature
  for (const finding& f : v->found)
    if (f.rule.empty() || f.field.empty() || f.text.empty()) abort();
  return 0;
}
