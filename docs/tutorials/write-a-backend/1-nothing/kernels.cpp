#include "kernels.hpp"

namespace sketch {

std::vector<bitnet::sdk::primitive> kernels() {
  return {};
}

}  // namespace sketch
