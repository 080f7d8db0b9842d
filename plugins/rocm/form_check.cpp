#include "form_check.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "bitnet/abi/tensor.h"
#include "gpu-common/kernels.hpp"

namespace bitnet::rocm {
namespace {

constexpr uint64_t patience_ns = 10'000'000'000;

// Words that differ from their neighbours.
std::vector<uint32_t> some_words(uint64_t count) {
  std::vector<uint32_t> out(count);
  uint32_t state = 7;
  for (uint32_t& word : out) {
    state = state * 1664525u + 1013904223u;
    word = state ^ state >> 15;
  }
  return out;
}
// Codes of 0, 1 and 2.
std::vector<uint32_t> some_codes(uint64_t count) {
  std::vector<uint32_t> out = some_words(count);
  for (uint32_t& word : out) {
    const uint32_t both = word & word >> 1 & 0x55555555u;  // where a code is 3
    word ^= both;
  }
  return out;
}
// From 1/16 to 2 in sixteenths, with either sign.
std::vector<uint32_t> some_floats(uint64_t count, bool positive = false) {
  std::vector<uint32_t> out = some_words(count);
  for (uint32_t& word : out) {
    float x = static_cast<float>(word % 32 + 1) / 16;
    if (!positive && (word & 64) != 0) x = -x;
    std::memcpy(&word, &x, sizeof word);
  }
  return out;
}

// A command, and what its memory has before: the header, then what the kernel is bound to. The last
// `written` are what comes out.
struct trial {
  gpu::kernel_spec spec;
  std::vector<std::vector<uint32_t>> memory;
  std::vector<uint32_t> params;
  uint32_t written = 1, groups_x = 1, groups_y = 1;

  template <class Params>
  void set(const Params& p) {
    params.resize(sizeof p / 4);
    std::memcpy(params.data(), &p, sizeof p);
  }
};

// `own` and `given`: elements to a factor of the matrix and of the activations; 0: one for all.
trial product(uint32_t k, uint32_t rows, uint32_t tokens, uint32_t own, uint32_t given) {
  constexpr uint32_t of_group = 4;  // tokens, and rows of the matrix
  const bool factors = own != 0 || given != 0;
  const auto row_words = static_cast<uint32_t>(gpu::row_words(BITNET_FORMAT_TERNARY2, k));
  trial out;
  out.spec = {gpu::kernel_id::linear_ternary,
              {group_threads, factors ? 1u : 32u, of_group, of_group, given}};
  out.memory = {{tokens, 0, 0, 0},
                some_words(tokens * gpu::i8_row_words(k)),
                some_floats(uint64_t{tokens} * (given == 0 ? 1 : k / given)),
                some_codes(uint64_t{rows} * row_words),
                some_floats(own == 0 ? 1 : uint64_t{rows} * (k / own)),
                {0},  // nothing is added
                std::vector<uint32_t>(uint64_t{rows} * tokens)};
  out.set(gpu::linear_ternary_params{0, k, rows, row_words, 0, rows, own, 0});
  out.groups_x = (rows + of_group - 1) / of_group;
  out.groups_y = (tokens + of_group - 1) / of_group;
  return out;
}

// Two sequences, of which one begins.
trial delta() {
  constexpr uint32_t tokens = 4, heads = 2, rows = 64, columns = 33;
  constexpr uint32_t state_words = heads * rows * columns;
  trial out;
  out.spec = {gpu::kernel_id::delta_rule, {group_threads, rows, 0, 0, 0}};
  out.memory = {{tokens, 0, 0, 0},
                some_floats(uint64_t{tokens} * (2 * rows + heads * columns)),
                some_floats(uint64_t{tokens} * 2 * heads, true),
                {9, 10, 0, 1},
                {0, 0, 1, 1},
                {1, 0},
                some_floats(uint64_t{2} * state_words),
                std::vector<uint32_t>(uint64_t{tokens} * heads * columns)};
  out.written = 2;
  out.set(
      gpu::delta_rule_params{0, 0, state_words, 1, heads, columns, 0, 1, 0.25f, 1e-6f, 0, tokens});
  out.groups_x = heads;
  out.groups_y = 2;
  return out;
}

// What is computed by each of some forms, and by what is left without any.
struct look {
  forms of;
  trial what;
};
std::vector<look> all_looks() {
  const forms with_one_scale = {"linear_ternary_dots", "linear_ternary_matrix_few",
                                "linear_ternary_matrix_many"};
  std::vector<look> out;
  // An odd number of blocks, and rows and tokens of several waves that end within a tile.
  out.push_back({with_one_scale, product(384, 140, 37, 0, 0)});
  // Groups of activations within one of weights and the reverse, and either alone.
  for (const auto& [own, given] : {std::pair{128u, 32u}, {32u, 128u}, {64u, 0u}, {0u, 96u}})
    out.push_back({{"linear_ternary_matrix_factored"}, product(384, 40, 18, own, given)});
  out.push_back({{"delta_rule_64"}, delta()});
  return out;
}

class bench {
 public:
  bench(device& on, const sdk::reporter& report) : on_(on), report_(report) {}

  // By the kernel that there is without the forms of `off`.
  bitnet_status compute(const trial& of, const forms& off, std::vector<uint32_t>& out) {
    std::unique_ptr<gpu::kernel> made;
    if (bitnet_status s = on_.make_kernel(of.spec, off, made, report_); sdk::failed(s)) return s;
    std::vector<std::unique_ptr<gpu::buffer>> memory;
    gpu::command one;
    one.run = made.get();
    one.params = of.params;
    one.groups_x = of.groups_x;
    one.groups_y = of.groups_y;
    for (const std::vector<uint32_t>& words : of.memory) {
      auto& buffer = memory.emplace_back();
      const uint64_t bytes = 4 * words.size();
      if (bitnet_status s = on_.allocate(bytes, gpu::memory_place::device, buffer, report_);
          sdk::failed(s))
        return s;
      if (bitnet_status s = on_.upload(*buffer, 0, words.data(), bytes, report_); sdk::failed(s))
        return s;
      one.bindings.push_back({buffer.get(), 0, bytes});
    }
    if (bitnet_status s = run(one); sdk::failed(s)) return s;
    out.clear();
    for (uint64_t i = memory.size() - of.written; i < memory.size(); ++i) {
      const uint64_t begin = out.size(), bytes = 4 * of.memory[i].size();
      out.resize(begin + bytes / 4);
      if (bitnet_status s = on_.download(*memory[i], 0, out.data() + begin, bytes, report_);
          sdk::failed(s))
        return s;
    }
    return BITNET_OK;
  }

 private:
  bitnet_status run(const gpu::command& one) {
    std::unique_ptr<gpu::recording> recorded;
    std::unique_ptr<gpu::queue> queue;
    if (bitnet_status s = on_.record({&one, 1}, false, recorded, report_); sdk::failed(s)) return s;
    if (bitnet_status s = on_.make_queue(queue, report_); sdk::failed(s)) return s;
    if (bitnet_status s = queue->submit(*recorded, 1, report_); sdk::failed(s)) return s;
    return queue->wait(1, patience_ns, report_);
  }

  device& on_;
  const sdk::reporter& report_;
};

forms all_but(const std::string& one) {
  forms out = optional_forms();
  std::erase(out, one);
  return out;
}

}  // namespace

bitnet_status check_forms(device& on, const forms& off, forms& wrong, const sdk::reporter& report) {
  bench computing(on, report);
  for (const look& one : all_looks()) {
    std::vector<uint32_t> wanted, y;
    for (const std::string& form : one.of) {
      const auto known = [&](const forms& some) {
        return std::find(some.begin(), some.end(), form) != some.end();
      };
      if (known(off) || known(wrong)) continue;
      if (wanted.empty())
        if (bitnet_status s = computing.compute(one.what, optional_forms(), wanted); sdk::failed(s))
          return s;
      if (bitnet_status s = computing.compute(one.what, all_but(form), y); sdk::failed(s)) return s;
      if (y != wanted) wrong.push_back(form);
    }
  }
  return BITNET_OK;
}

}  // namespace bitnet::rocm
