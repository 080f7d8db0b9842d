#pragma once
// What the measuring program needs of an API: how long a driver takes for kernels of our own over
// plain buffers. Written straight against the API. No code of a backend takes part: these figures
// are what a backend is judged by.

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace bitnet::ceilings {

// `from` and `to` are arrays of units of 16 bytes, t is a thread. vulkan.comp and opencl.cl hold
// the same kernels.
enum class kernel : uint32_t {
  fill,  // to[i] for i < n: words j * 2654435761 modulo 2^32, j = 4i ... 4i + 3. With way 1: their
         // upper two bits, signed, as floats
  read,  // to.words[t] = sum of the words of its part of from[0, n)
  copy,  // to[i] = from[i] for i < n
  dot,   // to.words[t] = sum over r < repeats of the products of the tile of t + r, as bytes
  dot_f32,  // the same as floats
  nothing,
  copy_command,  // no kernel: the API's own command, n units
};
// How `dot` sees `from`: vectors, then rows, of row_units each; they fit the first cache. The tile
// of t: rows t, t + 1 ... (modulo rows) times vectors 0, 1 ...
inline constexpr uint32_t row_units = 64, vectors = 4, rows = 16;

// One of several ways to write a kernel, which drivers like differently.
struct form {
  // read, copy  0 the threads of a group share a stretch, neighbours take neighbouring units;
  //             1 a thread takes a stretch of its own
  // dot         the tile: 0 a row and a vector, 1 four rows and four vectors
  uint32_t way = 0;
  uint32_t group = 1;   // threads of a work group
  uint32_t groups = 1;  // that are started
};
constexpr uint32_t tile_side(const form& f) {
  return f.way == 0 ? 1 : 4;
}

struct dispatch {  // waits for the one before it
  kernel run{};
  form in;
  uint32_t from = 0, to = 0;  // which buffers
  uint32_t n = 0, repeats = 0;
};

struct unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class driver {
 public:
  virtual ~driver() = default;
  [[nodiscard]] virtual std::string device() const = 0;       // as the backend names it
  [[nodiscard]] virtual std::string software() const = 0;     // the driver and its version
  [[nodiscard]] virtual uint64_t most_bytes() const = 0;      // of a buffer that a kernel can see
  [[nodiscard]] virtual uint32_t most_threads() const = 0;    // of a work group
  virtual void allocate(uint32_t count, uint64_t bytes) = 0;  // once; the contents are undefined
  // From handing the list over to its end; what can be prepared was, as backends do.
  virtual double seconds(std::span<const dispatch> list) = 0;
  virtual std::vector<uint32_t> words(uint32_t buffer, uint32_t count) = 0;
};

extern const char* const api;  // "vulkan"

// Throws unavailable if there is no such device or driver, and runtime_error when a call fails.
std::unique_ptr<driver> open(uint32_t index);

}  // namespace bitnet::ceilings
