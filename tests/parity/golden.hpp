#pragma once
// Rows of tests/golden/vectors.txt: "ints NAME COUNT V...", "floats NAME COUNT V..." and
// "bytes NAME SIZE CRC32 HEX".

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bitnet::parity {

// The words of a row after its name.
inline std::istringstream golden_row(const std::string& name) {
  const char* source = std::getenv("BITNET_SOURCE_DIR");
  const std::string path = std::string(source ? source : ".") + "/tests/golden/vectors.txt";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, found;
    if (words >> kind >> found && found == name) return words;
  }
  throw std::runtime_error("no golden row " + name + " in " + path);
}

inline std::vector<double> golden(const std::string& name) {
  std::istringstream words = golden_row(name);
  uint64_t count = 0;
  words >> count;
  std::vector<double> values;
  for (double v = 0; words >> v;) values.push_back(v);
  if (values.size() != count) throw std::runtime_error("golden row " + name + " is cut short");
  return values;
}

inline std::vector<uint8_t> golden_bytes(const std::string& name) {
  uint64_t count = 0;
  std::string crc, hex;
  golden_row(name) >> count >> crc >> hex;
  if (hex.size() != 2 * count) throw std::runtime_error("golden row " + name + " is cut short");
  std::vector<uint8_t> bytes;
  for (uint64_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

template <class T>
std::vector<T> golden_as(const std::string& name) {
  const std::vector<double> values = golden(name);
  return {values.begin(), values.end()};
}

}  // namespace bitnet::parity
