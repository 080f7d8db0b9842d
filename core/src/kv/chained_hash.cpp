#include "kv/chained_hash.hpp"

#define XXH_INLINE_ALL
#include <sys/random.h>
#include <xxhash.h>

#include <cerrno>
#include <system_error>

namespace bitnet::kv {

static_assert(std::tuple_size_v<hash_secret> >= XXH3_SECRET_SIZE_MIN);

result<hash_secret> random_secret() {
  hash_secret out{};
  static_assert(sizeof out <= 256);  // up to this size a signal cannot cut the read short
  if (getrandom(out.data(), out.size(), 0) == static_cast<ssize_t>(out.size())) return out;
  const int code = errno;
  return std::unexpected(
      failure{BITNET_UNAVAILABLE,
              fmt::format("getrandom: expected {} random bytes of the system, found none ({}); see "
                          "what keeps this process from the system call",
                          out.size(), std::generic_category().message(code)),
              {"errno", code}});
}

uint64_t chained_hash(uint64_t before, std::span<const int32_t> tokens, const hash_secret& secret) {
  // A seed would replace the secret, so the former hash is hashed together with that of the tokens.
  const uint64_t own =
      XXH3_64bits_withSecret(tokens.data(), tokens.size_bytes(), secret.data(), secret.size());
  const std::array<uint64_t, 2> both{before, own};
  return XXH3_64bits_withSecret(both.data(), sizeof both, secret.data(), secret.size());
}

}  // namespace bitnet::kv
