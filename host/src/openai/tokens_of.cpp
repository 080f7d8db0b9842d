#include "openai/tokens_of.hpp"

#include "library/handles.hpp"

namespace bitnet::host::openai {

parsed<token_list> tokens_of(const std::string& text, uint32_t flags, const bitnet_model* with,
                             const char* member) {
  library_error err;
  token_list ids(text.size() / 2 + 8);
  const auto fetch_ids = [&](uint64_t& count) {
    return bitnet_tokenize(with, borrowed(text), flags, ids.data(), ids.size(), &count, &err);
  };
  uint64_t count = 0;
  bitnet_status status = fetch_ids(count);
  if (status == BITNET_OK && count > ids.size()) {
    ids.resize(count);
    status = fetch_ids(count);
  }
  if (status != BITNET_OK) return std::unexpected(error_of(status, err.message, member));
  ids.resize(count);
  return ids;
}

}  // namespace bitnet::host::openai
