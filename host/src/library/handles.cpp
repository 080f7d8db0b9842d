#include "library/handles.hpp"

namespace bitnet::host {
namespace {

const char* name_of(bitnet_status status) {
  switch (status) {
    case BITNET_INVALID_ARGUMENT:
      return "invalid argument";
    case BITNET_UNSUPPORTED:
      return "not supported";
    case BITNET_UNAVAILABLE:
      return "no backend is available";
    case BITNET_INCOMPATIBLE:
      return "incompatible";
    case BITNET_OUT_OF_MEMORY:
      return "out of memory";
    case BITNET_OUT_OF_DEVICE_MEMORY:
      return "out of device memory";
    case BITNET_BAD_DATA:
      return "malformed data";
    case BITNET_DEVICE_LOST:
      return "the device was lost";
    case BITNET_CANCELLED:
      return "interrupted";
    case BITNET_TIMEOUT:
      return "timed out";
    case BITNET_NOT_FOUND:
      return "not found";
    case BITNET_REJECTED:
      return "plugin rejected";
    case BITNET_CONTEXT_FULL:
      return "the context is full";
    default:
      return "internal error";
  }
}

}  // namespace

std::unexpected<failure> failed(bitnet_status status, const bitnet_error& err, stage doing) {
  return fail(exit_code_of(status, doing), err.message[0] != '\0' ? err.message : name_of(status));
}

result<token_list> tokenize(const bitnet_model* model, std::string_view text, uint32_t flags) {
  library_error err;
  token_list ids(text.size() + 1);  // a token has at least one byte; 1 for BOS
  uint64_t count = 0;
  bitnet_status status =
      bitnet_tokenize(model, borrowed(text), flags, ids.data(), ids.size(), &count, &err);
  if (count > ids.size()) {
    ids.resize(count);
    status = bitnet_tokenize(model, borrowed(text), flags, ids.data(), ids.size(), &count, &err);
  }
  if (status != BITNET_OK) return failed(status, err, stage::text);
  ids.resize(count);
  return ids;
}

result<std::string> detokenize(const bitnet_model* model, const token_list& ids, uint32_t flags) {
  library_error err;
  std::string text;
  const bitnet_status status = fetch(
      [&](char* out, uint64_t capacity, uint64_t* needed) {
        return bitnet_detokenize(model, ids.data(), ids.size(), flags, out, capacity, needed, &err);
      },
      text);
  if (status != BITNET_OK) return failed(status, err, stage::text);
  return text;
}

bitnet_model_info describe(const bitnet_model* model) {
  bitnet_model_info info{};
  info.struct_size = sizeof info;
  (void)bitnet_model_describe(model, &info, nullptr);  // fails only on a null argument
  return info;
}

}  // namespace bitnet::host
