#include "trial/trial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <span>

#include "base/dense_formats.hpp"
#include "base/environment.hpp"
#include "gguf/types.hpp"
#include "kv/blocks.hpp"

namespace bitnet::trial {
namespace {

// Whether BIT_LINEAR's body, by ops.h, contains the op.
bool bit_linear_needs(uint32_t op) {
  return op == BITNET_OP_ACT_QUANT_I8 || op == BITNET_OP_LINEAR_TERNARY;
}

constexpr uint32_t n_vocab = 64;  // tokens; a longer trial repeats them

constexpr uint64_t most_extent = 1U << 20;  // rows, inputs
constexpr uint32_t most_tokens = 1U << 16, most_matrices = 1U << 16;

// Elements and bytes of a block; {0, 0} for other formats than those of matrices.
gguf::type_size block_of(uint32_t format) {
  namespace type = gguf::type;
#define BITNET_DENSE_PAIR(name, id, ...) {BITNET_FORMAT_##id, type::name},
  constexpr std::pair<uint32_t, uint32_t> same_as_in_files[] = {
      BITNET_DENSE_FORMATS(BITNET_DENSE_PAIR)};
#undef BITNET_DENSE_PAIR
  if (format == BITNET_FORMAT_TERNARY2) return {128, 32};
  for (const auto& [id, file_type] : same_as_in_files)
    if (id == format) return gguf::size_of(file_type).value_or(gguf::type_size{0, 0});
  return {0, 0};
}

// One row of random weights. Speed does not depend on the values unless one is infinite, NaN or
// subnormal: bytes 0x30 to 0x3f and 0xb0 to 0xbf make none of these in any float format.
void fill_dense(std::span<std::byte> row, std::mt19937& random) {
  for (std::byte& b : row)
    b = (static_cast<std::byte>(random() >> 24) & std::byte{0x8f}) | std::byte{0x30};
}
void fill_ternary(std::span<std::byte> row, uint64_t inputs, std::mt19937& random) {
  for (uint64_t at = 0; at < row.size(); ++at) {
    uint32_t digits = random() % 81;  // four trits
    uint32_t byte = 0;
    for (uint32_t i = 0; i < 4; ++i, digits /= 3) {
      const uint64_t element = at / 32 * 128 + 32 * uint64_t{i} + at % 32;
      byte = byte << 2 | (element < inputs ? digits % 3 : 1);  // elements past K hold 1
    }
    row[at] = static_cast<std::byte>(byte);
  }
}

bitnet_tensor_desc matrix(uint32_t format, uint64_t rows, uint64_t inputs, uint64_t bytes,
                          std::string_view name) {
  bitnet_tensor_desc d{};
  d.struct_size = sizeof d;
  d.format = format;
  d.rank = 2;
  d.ne[0] = static_cast<int64_t>(inputs);
  d.ne[1] = static_cast<int64_t>(rows);
  d.ne[2] = d.ne[3] = 1;
  d.data_bytes = bytes;
  d.name = {name.data(), name.size()};
  return d;
}

std::string shape_text(const trial_options& o) {
  return std::to_string(o.rows) + "x" + std::to_string(o.inputs);
}

result<void> measurable(const trial_options& o) {
  const auto outside = [](uint64_t value, uint64_t most) { return value == 0 || value > most; };
  if (outside(o.rows, most_extent) || outside(o.inputs, most_extent))
    return fail(BITNET_INVALID_ARGUMENT, fmt::format("a matrix of {} is not between 1x1 and {}x{}",
                                                     shape_text(o), most_extent, most_extent));
  if (outside(o.n_tokens, most_tokens) || outside(o.n_matrices, most_matrices))
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} tokens and {} matrices: 1 to 65536 of each expected", o.n_tokens,
                            o.n_matrices));
  const bool ternary = o.op == BITNET_OP_LINEAR_TERNARY;
  if (!ternary && o.op != BITNET_OP_LINEAR_DENSE)
    return fail(BITNET_UNSUPPORTED,
                fmt::format("{} cannot be measured alone; linear_ternary and linear_dense can",
                            compute::op_name(o.op)));
  const gguf::type_size block = block_of(o.format);
  const std::string format = compute::format_name(o.format);
  if (block.block == 0 || ternary != (o.format == BITNET_FORMAT_TERNARY2))
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("{} has no weights of {}", compute::op_name(o.op), format));
  if (o.scale_group != 0 && (!ternary || o.inputs % o.scale_group != 0))
    return fail(
        BITNET_INVALID_ARGUMENT,
        fmt::format(
            "scale groups of {}{}", o.scale_group,
            ternary ? fmt::format(" do not divide {} inputs", o.inputs)
                    : fmt::format(" are for ternary weights; {} has scales of its own", format)));
  if (!ternary && o.inputs % block.block != 0)
    return fail(BITNET_INVALID_ARGUMENT,
                fmt::format("a row of {} inputs is no whole number of {} blocks of {}", o.inputs,
                            format, block.block));
  return {};
}

}  // namespace

trial::trial(select::choice choice, const trial_options& options)
    : choice_(std::move(choice)), options_(options) {}

trial::~trial() = default;

result<std::unique_ptr<trial>> trial::open(select::choice choice, const trial_options& options) {
  if (auto ok = measurable(options); !ok) return std::unexpected(std::move(ok.error()));
  std::unique_ptr<trial> t(new trial(std::move(choice), options));
  t->describe_graph();
  t->describe_weights();
  for (auto step : {&trial::open_device, &trial::upload, &trial::compile})
    if (auto ok = (*t.*step)(); !ok)
      return pass_on(std::move(ok), fmt::format("backend {}", t->choice_.backend->name()));
  t->fill_facts();
  return t;
}

result<void> trial::open_device() {
  auto device = as_result(
      compute::device::open(choice_.backend->table(), choice_.device_index, choice_.device),
      "opening the device");
  if (!device) return std::unexpected(std::move(device.error()));
  device_ = std::move(*device);
  auto queue = as_result(compute::queue::make(device_), "making a queue");
  if (!queue) return std::unexpected(std::move(queue.error()));
  queue_ = std::move(*queue);
  return {};
}

// Ops: embed, [quantise], every product, and their sum, so that no compiler can drop a product.
void trial::describe_graph() {
  const uint32_t op = options_.op;
  const auto inputs = static_cast<int64_t>(options_.inputs);
  const auto rows = static_cast<int64_t>(options_.rows);
  const auto value = [&](uint32_t dtype, int64_t lines, int64_t width) {
    return graph_.value(dtype, lines, width);
  };
  constexpr int64_t tokens = BITNET_DIM_TOKENS;
  const uint32_t x = value(BITNET_DTYPE_F32, tokens, inputs);
  graph_.emit(BITNET_OP_EMBED_GATHER, {}, {x}, {0});
  uint32_t q = x, s = BITNET_NONE;
  if (op == BITNET_OP_LINEAR_TERNARY) {
    q = value(BITNET_DTYPE_I8, tokens, inputs);
    s = value(BITNET_DTYPE_F32, tokens, 1);
    graph_.emit(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
  }
  uint32_t sum = BITNET_NONE;
  for (uint32_t i = 1; i <= options_.n_matrices; ++i) {
    const uint32_t y = value(BITNET_DTYPE_F32, tokens, rows);
    if (op == BITNET_OP_LINEAR_TERNARY)
      graph_.emit(op, {q, s}, {y}, {i});
    else
      graph_.emit(op, {q}, {y}, {i});
    if (sum != BITNET_NONE) {
      const uint32_t more = value(BITNET_DTYPE_F32, tokens, rows);
      graph_.emit(BITNET_OP_ADD, {sum, y}, {more});
      sum = more;
    } else {
      sum = y;
    }
  }
  const uint32_t result = value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, rows);
  graph_.emit(BITNET_OP_GATHER_ROWS, {sum}, {result});
  graph_.add_facts();
  graph_.add_port(BITNET_PORT_LOGITS, result);
}

void trial::describe_weights() {
  const gguf::type_size block = block_of(options_.format);
  const uint64_t row_bytes = (options_.inputs + block.block - 1) / block.block * block.bytes;
  weights_wanted_.push_back(matrix(BITNET_FORMAT_F32, n_vocab, options_.inputs,
                                   n_vocab * options_.inputs * sizeof(float), "embedding"));
  weights_wanted_.insert(
      weights_wanted_.end(), options_.n_matrices,
      matrix(options_.format, options_.rows, options_.inputs, options_.rows * row_bytes, "matrix"));
  if (options_.format != BITNET_FORMAT_TERNARY2) return;
  const uint64_t group = options_.scale_group;
  scales_.assign(group == 0 ? 1 : options_.rows * (options_.inputs / group), 1.0F);
  for (bitnet_tensor_desc& d : std::span(weights_wanted_).subspan(1)) {
    d.scale_group = group;
    d.n_scales = scales_.size();
    d.scales = scales_.data();
  }
}

result<void> trial::upload() {
  if (auto ok = compute::check_support(device_, graph_, weights_wanted_, bounds(), nullptr); !ok)
    return ok;
  auto made =
      as_result(compute::weights::create(device_, weights_wanted_), "making room for the weights");
  if (!made) return std::unexpected(std::move(made.error()));
  weights_ = std::move(*made);

  std::mt19937 random(1);
  std::vector<std::byte> row;
  for (uint32_t i = 0; i < weights_wanted_.size(); ++i) {
    const bitnet_tensor_desc& d = weights_wanted_[i];
    const auto rows = static_cast<uint64_t>(d.ne[1]);
    row.resize(d.data_bytes / rows);
    for (uint64_t r = 0; r < rows; ++r) {
      // Only each 16th row is new, since making random bytes must not take longer than measuring.
      if (r % 16 == 0) {
        if (d.format == BITNET_FORMAT_TERNARY2)
          fill_ternary(row, options_.inputs, random);
        else
          fill_dense(row, random);
      }
      if (auto ok = as_result(weights_.write(i, r * row.size(), row), "writing the weights"); !ok)
        return ok;
    }
    if (auto ok = as_result(weights_.seal(i), "packing the weights"); !ok) return ok;
  }
  return {};
}

bitnet_program_options trial::bounds() const {
  bitnet_program_options o{};
  o.struct_size = sizeof o;
  o.flags = BITNET_PROGRAM_PROFILE;
  o.max_tokens = options_.n_tokens;
  o.max_sequences = o.max_outputs = 1;
  o.max_blocks = kv::blocks_for(options_.n_tokens);
  o.block_tokens = kv::block_tokens;
  o.n_buckets = 1;
  o.buckets = &options_.n_tokens;
  return o;
}

result<void> trial::compile() {
  bitnet_weights* const weights = weights_.get();
  auto program = as_result(
      compute::program::build(device_, graph_, {&weights, 1}, bounds()),
      fmt::format("compiling {} of {}", compute::op_name(options_.op), shape_text(options_)));
  if (!program) return std::unexpected(std::move(program.error()));
  program_ = std::move(*program);
  auto bound = as_result(compute::binding::make(device_, program_, graph_, bounds(), nullptr),
                         "making the memory of steps");
  if (!bound) return std::unexpected(std::move(bound.error()));
  binding_ = std::move(*bound);
  return {};
}

void trial::fill_facts() {
  auto* const tokens = binding_.of<int32_t>(BITNET_PORT_TOKENS);
  for (uint32_t i = 0; i < options_.n_tokens; ++i) tokens[i] = static_cast<int32_t>(i % n_vocab);
  binding_.of<int32_t>(BITNET_PORT_OUTPUT_ROWS)[0] = 0;
}

result<bitnet_kernel_stat> trial::counted() const {
  auto stats = as_result(program_.stats(), "asking what ran");
  if (!stats) return std::unexpected(std::move(stats.error()));
  // A product may have run fused with the quantisation before it.
  const auto is_mine = [&](const bitnet_kernel_stat& s) {
    return s.op == options_.op || (s.op == BITNET_OP_BIT_LINEAR && bit_linear_needs(options_.op));
  };
  const auto mine = std::ranges::find_if(*stats, is_mine);
  return mine == stats->end() ? bitnet_kernel_stat{} : *mine;
}

result<trial::measured> trial::run() {
  const std::string who = fmt::format("backend {}", choice_.backend->name());
  auto before = counted();
  if (!before) return pass_on(std::move(before), who);
  bitnet_step s{};
  s.n_tokens = options_.n_tokens;
  s.n_sequences = s.n_outputs = 1;
  s.binding = binding_.get();
  measured out;
  const auto start = std::chrono::steady_clock::now();
  if (auto ok = as_result(queue_.submit(s), who); !ok)
    return std::unexpected(std::move(ok.error()));
  if (auto ok = as_result(queue_.wait(environment::step_timeout_ns()), who); !ok)
    return std::unexpected(std::move(ok.error()));
  out.step_ns = static_cast<uint64_t>((std::chrono::steady_clock::now() - start).count());
  auto after = counted();
  if (!after) return pass_on(std::move(after), who);
  if (after->calls <= before->calls)
    return fail(BITNET_INTERNAL,
                fmt::format("{}: no kernel of {} ran, or the backend did not count it", who,
                            compute::op_name(options_.op)));
  out.kernel = *after;
  out.kernel.calls -= before->calls;
  out.kernel.time_ns -= before->time_ns;
  out.kernel.bytes -= before->bytes;
  return out;
}

}  // namespace bitnet::trial
