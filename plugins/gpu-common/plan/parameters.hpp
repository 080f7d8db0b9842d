#pragma once
// A kernel's parameters for one command: the struct of its id (kernels.hpp). Drivers get the struct
// as words.

#include <cstring>
#include <variant>
#include <vector>

#include "gpu-common/kernels.hpp"

namespace bitnet::gpu {

template <class First, class... Rest>
using behind_first = std::variant<Rest...>;
// Alternatives stand in the order of kernel_id.
#define BITNET_GPU_PARAMETERS(name, read, written) , name##_params
using parameters = behind_first<void BITNET_GPU_KERNELS(BITNET_GPU_PARAMETERS)>;
#undef BITNET_GPU_PARAMETERS

// Parameters of kernels that see rows [first_row, first_row + n_rows) of a matrix.
template <class Params>
concept of_rows = requires(Params p) {
  p.first_row;
  p.n_rows;
};

inline bool sees_rows(const parameters& p) {
  return std::visit([]<class Params>(const Params&) { return of_rows<Params>; }, p);
}

inline void set_rows(parameters& p, uint32_t first_row, uint32_t n_rows) {
  std::visit(
      [&]<class Params>(Params& one) {
        if constexpr (of_rows<Params>) {
          one.first_row = first_row;
          one.n_rows = n_rows;
        }
      },
      p);
}

// Parameters of kernels with states: the range of tokens, and the distance between states.
template <class Params>
concept of_states = requires(Params p) {
  p.state_words;
  p.first;
  p.last;
};

inline bool works_on_states(const parameters& p) {
  return std::visit([]<class Params>(const Params&) { return of_states<Params>; }, p);
}

inline void set_tokens(parameters& p, uint32_t state_words, uint32_t first, uint32_t last) {
  std::visit(
      [&]<class Params>(Params& one) {
        if constexpr (of_states<Params>) {
          one.state_words = state_words;
          one.first = first;
          one.last = last;
        }
      },
      p);
}

inline std::vector<uint32_t> words_of(const parameters& p) {
  return std::visit(
      []<class Params>(const Params& one) {
        static_assert(sizeof one % 4 == 0 && sizeof one <= uint64_t{4} * max_params);
        std::vector<uint32_t> words(sizeof one / 4);
        std::memcpy(words.data(), &one, sizeof one);
        return words;
      },
      p);
}

}  // namespace bitnet::gpu
