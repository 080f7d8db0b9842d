#include "receipt/randomness.hpp"

#include <openssl/rand.h>

#include <stdexcept>

#include "plugin/trust/ed25519.hpp"

namespace bitnet::receipt {

std::string random_digits(std::size_t bytes) {
  std::string out(bytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(bytes)) != 1)
    throw std::runtime_error("the system gives no random numbers");
  return plugin::hexadecimal_of(out);
}

}  // namespace bitnet::receipt
