// Runs a libFuzzer target over its stored corpus in builds without libFuzzer, so that every input
// that once broke something is tried again by each compiler and sanitizer.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "expected a folder of stored inputs, found %s\n",
                 argc > 1 ? argv[1] : "no argument");
    return 1;
  }
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream in(entry.path(), std::ios::binary);
    if (!entry.is_regular_file() || !in) {
      std::fprintf(stderr, "expected a file that can be read, found %s\n", entry.path().c_str());
      return 1;
    }
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++n;
  }
  if (n == 0) {
    std::fprintf(stderr, "%s has no input; store one at least\n", argv[1]);
    return 1;
  }
  std::printf("%d inputs replayed\n", n);
  return 0;
}
