#include "warp_group_check.hpp"

#include <cstring>
#include <vector>

namespace bitnet::cuda {
namespace {

// More than one token tile of mma, rows past a warp group's, more stages than there are at once.
constexpr uint32_t k = (stages + 1) * stage_elements, rows = 70, tokens = 40;
constexpr uint64_t patience_ns = 10'000'000'000;

// Words that differ from their neighbours, as far as the mask lets them.
std::vector<uint32_t> words_of(uint64_t count, uint32_t mask) {
  std::vector<uint32_t> out(count);
  uint32_t state = 1;
  for (uint32_t& word : out) {
    state = state * 1664525u + 1013904223u;
    word = (state ^ state >> 16) & mask;
  }
  return out;
}

class product {
 public:
  product(gpu::device& on, const sdk::reporter& report) : on_(on), report_(report) {}

  bitnet_status prepare() {
    // Codes of the matrix are 0 and 1 in one place, 0 and 2 in the next.
    const std::vector<uint32_t> header{tokens, 0, 0, 0};
    const std::vector<float> divisors(tokens, 3.0f), scale{0.25f};
    const std::vector<uint32_t> q = words_of(tokens * gpu::i8_row_words(k), ~0u);
    const std::vector<uint32_t> matrix =
        words_of(rows * gpu::row_words(BITNET_FORMAT_TERNARY2, k), 0x99669966u);
    const struct {
      const void* data;
      uint64_t bytes;
    } inputs[] = {{header.data(), 16},
                  {q.data(), 4 * q.size()},
                  {divisors.data(), 4 * divisors.size()},
                  {matrix.data(), 4 * matrix.size()},
                  {scale.data(), 4},
                  {scale.data(), 4}};  // nothing is added
    for (const auto& one : inputs) {
      if (bitnet_status s = add(one.bytes); sdk::failed(s)) return s;
      if (bitnet_status s = on_.upload(*memory_.back(), 0, one.data, one.bytes, report_);
          sdk::failed(s))
        return s;
    }
    return add(uint64_t{4} * rows * tokens);
  }

  // By form i of `made`.
  bitnet_status compute(const kernel& made, uint32_t i, std::vector<float>& y) {
    const std::vector<tiled_form> only(with_warp_groups, made.form.tiled[i]);
    kernel run = made;
    run.form.tiled = only.data();
    for (CUfunction& function : run.tiled) function = made.tiled[i];
    gpu::command one;
    one.run = &run;
    for (const auto& buffer : memory_) one.bindings.push_back({buffer.get(), 0, buffer->size()});
    const gpu::linear_ternary_params p{
        0, k,    rows, static_cast<uint32_t>(gpu::row_words(BITNET_FORMAT_TERNARY2, k)),
        0, rows, 0,    0};
    one.params.resize(sizeof p / 4);
    std::memcpy(one.params.data(), &p, sizeof p);
    one.groups_x = 1;
    one.groups_y = tokens / 4;
    if (bitnet_status s = run_one(one); sdk::failed(s)) return s;
    y.resize(size_t{rows} * tokens);
    return on_.download(*memory_.back(), 0, y.data(), 4 * y.size(), report_);
  }

 private:
  bitnet_status add(uint64_t bytes) {
    return on_.allocate(bytes, gpu::placement::device, memory_.emplace_back(), report_);
  }
  bitnet_status run_one(const gpu::command& one) {
    std::unique_ptr<gpu::recording> recorded;
    std::unique_ptr<gpu::queue> queue;
    if (bitnet_status s = on_.record({&one, 1}, false, recorded, report_); sdk::failed(s)) return s;
    if (bitnet_status s = on_.make_queue(queue, report_); sdk::failed(s)) return s;
    if (bitnet_status s = queue->submit(*recorded, 1, report_); sdk::failed(s)) return s;
    return queue->wait(1, patience_ns, report_);
  }

  gpu::device& on_;
  const sdk::reporter& report_;
  std::vector<std::unique_ptr<gpu::buffer>> memory_;
};

}  // namespace

bitnet_status compare_tiled_forms(gpu::device& on, bool& same, const sdk::reporter& report) {
  std::unique_ptr<gpu::kernel> any;
  // Groups of so many threads, who find sums by 32, for four tokens and four rows.
  const gpu::kernel_spec spec{gpu::kernel_id::linear_ternary, {group_threads, 32, 4, 4, 0}};
  if (bitnet_status s = on.make_kernel(spec, any, report); sdk::failed(s)) return s;
  const auto& made = static_cast<const kernel&>(*any);
  product with(on, report);
  if (bitnet_status s = with.prepare(); sdk::failed(s)) return s;
  std::vector<float> y[with_warp_groups];
  same = true;
  for (uint32_t i = 1; i < with_warp_groups; ++i) {  // the first is for fewer tokens
    if (bitnet_status s = with.compute(made, i, y[i]); sdk::failed(s)) return s;
    same &= std::memcmp(y[i].data(), y[1].data(), 4 * y[1].size()) == 0;
  }
  return BITNET_OK;
}

}  // namespace bitnet::cuda
