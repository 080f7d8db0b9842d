#include "runner/model_runner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/environment.hpp"
#include "kv/blocks.hpp"
#include "plugin/loading/kept_state.hpp"
#include "trace/kernel_counts.hpp"
#include "trace/static_probes.hpp"

namespace bitnet::runner {

model_runner::model_runner(std::shared_ptr<engine::engine> e,
                           const engine::session_options& options, const engine::limits& most,
                           uint32_t max_sequences, std::shared_ptr<const engine::kv_pools> pools,
                           uint64_t cancel_token)
    : engine_(std::move(e)),
      pools_(std::move(pools)),
      cancel_token_(cancel_token),
      step_timeout_ns_(environment::step_timeout_ns()),
      embeddings_(options.embeddings),
      row_floats_(most.row_floats),
      max_blocks_(kv::blocks_for(most.n_context)),
      recorder_(options.trace.call == nullptr ? nullptr
                                              : std::make_unique<trace::recorder>(options.trace)) {
  const bitnet_kv_config& all = pools_->config();
  limits_.max_tokens = most.n_batch;
  limits_.max_sequences = max_sequences;
  limits_.max_outputs = most.max_outputs;
  limits_.n_context = most.n_context;
  limits_.n_vocab = engine_->model().shape().n_vocab;
  limits_.n_blocks = all.n_blocks;
  limits_.n_states = all.n_states;
  limits_.window = most.window;
  limits_.window_keep = most.window_keep;
}

result<std::unique_ptr<model_runner>> model_runner::open(
    std::shared_ptr<engine::engine> e, const engine::session_options& options,
    const engine::limits& most, uint32_t max_sequences,
    std::shared_ptr<const engine::kv_pools> pools, uint64_t cancel_token) {
  std::unique_ptr<model_runner> out(
      new model_runner(std::move(e), options, most, max_sequences, std::move(pools), cancel_token));
  const engine::engine& on = *out->engine_;
  const std::lock_guard device_lock(on.device_mutex());
  out->part_programs_.reserve(on.parts().size());
  for (std::size_t i = 0; i < on.parts().size(); ++i) {
    const plugin::kept_process kept(on.parts()[i]->choice().backend->complaints());
    if (auto ok = out->build(options, most, i); !ok)
      return pass_on(std::move(ok), fmt::format("backend {}", on.parts()[i]->backend_name()));
  }
  return out;
}

model_runner::~model_runner() {
  const std::lock_guard device_lock(engine_->device_mutex());
  if (hung_) {
    leave_behind();
    return;
  }
  for (part_program& p : part_programs_) {
    const plugin::kept_thread kept(*p.on->choice().backend->complaints());
    p.queue = {};
    p.binding = {};
    p.program = {};
  }
  const plugin::kept_thread kept(*engine_->choice().backend->complaints());
  pools_.reset();
}

// A step that never ended may still write to all memory that it was given.
void model_runner::leave_behind() {
  struct left {
    std::shared_ptr<engine::engine> on;
    std::shared_ptr<const engine::kv_pools> pools;
    std::vector<part_program> programs;
  };
  // Never freed, for that reason.
  [[maybe_unused]] static std::vector<left*>& all = *new std::vector<left*>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  all.push_back(new left{engine_, pools_, std::move(part_programs_)});
}

result<void> model_runner::build(const engine::session_options& options, const engine::limits& most,
                                 std::size_t index) {
  const engine::part& on = *engine_->parts()[index];
  part_program& at = part_programs_.emplace_back(part_program{.on = &on});
  const engine::program_bounds bounds(options, most, limits_.max_sequences);
  const compute::graph described =
      on.graph(most.n_context, embeddings_ ? model::ending::hidden : model::ending::logits);
  bitnet_weights* const weights = on.weights();
  auto program =
      as_result(compute::program::build(on.device(), described, {&weights, 1}, bounds.get()),
                "compiling the model");
  if (!program) return std::unexpected(std::move(program.error()));
  at.program = std::move(*program);
  auto bound = as_result(compute::binding::make(on.device(), at.program, described, bounds.get(),
                                                pools_->of_part(index).made.get()),
                         "making the memory of steps");
  if (!bound) return std::unexpected(std::move(bound.error()));
  at.binding = std::move(*bound);
  if (auto ready = prepare_decoding(at, bounds.get()); !ready) return ready;
  const auto ints = [&](uint32_t role) { return at.binding.of<int32_t>(role); };
  const auto floats = [&](uint32_t role) { return at.binding.of<float>(role); };
  float* const hidden = floats(BITNET_PORT_VALUE_OUT);
  at.memory = {ints(BITNET_PORT_TOKENS),
               ints(BITNET_PORT_POSITIONS),
               ints(BITNET_PORT_SEQUENCES),
               ints(BITNET_PORT_SLOTS),
               ints(BITNET_PORT_BLOCK_TABLES),
               ints(BITNET_PORT_OUTPUT_ROWS),
               ints(BITNET_PORT_STATES),
               floats(BITNET_PORT_VALUE_IN),
               hidden != nullptr ? hidden : floats(BITNET_PORT_LOGITS),
               at.binding.of<bitnet_largest>(BITNET_PORT_LARGEST)};
  auto queue = as_result(compute::queue::make(on.device()), "making a queue");
  if (!queue) return std::unexpected(std::move(queue.error()));
  at.queue = std::move(*queue);
  if (recorder_ == nullptr) return {};
  at.name = on.choice().device_name();
  if (auto counted = at.program.stats()) at.counted = *std::move(counted);
  return {};
}

// Prepares the steps that run most, of one token for each sequence, so that the first request does
// not wait for the plugin to compile them.
result<void> model_runner::prepare_decoding(part_program& at,
                                            const bitnet_program_options& bounds) {
  for (const uint32_t n : std::span(bounds.buckets, bounds.n_buckets)) {
    if (n >= 2 * bounds.max_sequences) break;  // size of a prompt's step
    const uint32_t n_outputs = at.on->what().lm_head ? std::min(n, bounds.max_outputs) : 0;
    if (auto ready = as_result(at.binding.prepare(n, n_outputs, std::min(n, bounds.max_sequences)),
                               fmt::format("preparing the step of {}",
                                           n == 1 ? "one token" : fmt::format("{} tokens", n)));
        !ready)
      return ready;
  }
  return {};
}

uint64_t model_runner::block_bytes() const {
  uint64_t out = 0;
  for (std::size_t i = 0; i < part_programs_.size(); ++i) out += pools_->of_part(i).block_bytes();
  return out;
}

// ---- a step ------------------------------------------------------------------------------------

namespace {

bitnet_status status_of(const result<void>& done) {
  return done ? BITNET_OK : done.error().status;
}

}  // namespace

// Waits for the step that was submitted last, for as long as a step may take.
template <class Doing>
result<void> model_runner::await(part_program& at, const Doing& doing) {
  using clock = std::chrono::steady_clock;
  const auto begin = clock::now();
  auto waited = at.queue.wait(step_timeout_ns_);
  if (waited || waited.error().status != BITNET_TIMEOUT) {
    if (waited) return {};
    return as_result(std::move(waited), doing());
  }
  hung_ = true;
  const auto took = std::chrono::duration<double>(clock::now() - begin).count();
  return fail(BITNET_TIMEOUT,
              fmt::format("{}: it has not ended after {:.1f} s; the device or its driver hangs. "
                          "Choose another device; a step may take longer with a larger "
                          "BITNET_STEP_TIMEOUT",
                          doing(), took));
}

// Hands a step to the device, and waits for it.
template <class Doing>
result<void> model_runner::compute_on(part_program& at, const bitnet_step& step,
                                      const Doing& doing) {
  using clock = trace::recorder::clock;
  const bool traced = recorder_ != nullptr;
  const auto begin = traced ? clock::now() : clock::time_point{};
  auto given = at.queue.submit(step);
  const auto submitted = traced ? clock::now() : clock::time_point{};
  auto ok = given ? await(at, doing) : as_result(std::move(given), doing());
  if (traced) trace_part(at, begin, submitted, status_of(ok));
  return ok;
}

// Counters that cannot be read are left out.
void model_runner::trace_part(part_program& at, trace::recorder::clock::time_point begin,
                              trace::recorder::clock::time_point submitted,
                              bitnet_status status) const {
  recorder_->ran_on(at.name, begin, submitted, status);
  auto now = at.program.stats();
  if (!now) return;
  recorder_->kernels(at.name, trace::since(at.counted, *now));
  at.counted = *std::move(now);
}

// Adds up the slices. A plan beyond the limits is the scheduler's fault.
result<model_runner::batch> model_runner::count(std::span<const schedule::slice> slices,
                                                uint32_t top_logits) const {
  batch out{slices, 0, 0, top_logits};
  uint64_t tokens = 0, outputs = 0;
  bool fits = !slices.empty() && slices.size() <= limits_.max_sequences;
  for (const schedule::slice& s : slices) {
    tokens += s.tokens.size();
    outputs += s.n_outputs;
    fits = fits && !s.tokens.empty() && s.n_outputs <= s.tokens.size() &&
           s.first + s.tokens.size() <= uint64_t{s.blocks.size()} * kv::block_tokens &&
           s.blocks.size() <= max_blocks_;
  }
  if (!fits || tokens > limits_.max_tokens || outputs > limits_.max_outputs)
    return fail(BITNET_INTERNAL,
                fmt::format("a step of {} sequences, {} tokens and {} outputs is not within {}, {} "
                            "and {}, or a sequence lacks blocks",
                            slices.size(), tokens, outputs, limits_.max_sequences,
                            limits_.max_tokens, limits_.max_outputs));
  out.n_tokens = static_cast<uint32_t>(tokens);
  out.n_outputs = static_cast<uint32_t>(outputs);
  return out;
}

// Writes the facts of a slice that the part reads; its first token is number `at_token` of the
// step.
void model_runner::note_slice(const part_program& at, const schedule::slice& s, uint32_t sequence,
                              uint32_t at_token, uint32_t& at_output) const {
  const auto& m = at.memory;
  const auto n = static_cast<uint32_t>(s.tokens.size());
  if (m.tokens != nullptr) std::ranges::copy(s.tokens, m.tokens + at_token);
  if (m.positions != nullptr)
    for (uint32_t i = 0; i < n; ++i) m.positions[at_token + i] = static_cast<int32_t>(s.first + i);
  if (m.sequences != nullptr)
    std::fill_n(m.sequences + at_token, n, static_cast<int32_t>(sequence));
  if (m.slots != nullptr)
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t position = s.first + i;
      m.slots[at_token + i] =
          static_cast<int32_t>(uint64_t{s.blocks[position / kv::block_tokens]} * kv::block_tokens +
                               position % kv::block_tokens);
    }
  if (m.block_tables != nullptr) {
    int32_t* const row = m.block_tables + uint64_t{sequence} * max_blocks_;
    for (std::size_t i = 0; i < s.blocks.size(); ++i) row[i] = static_cast<int32_t>(s.blocks[i]);
  }
  if (m.states != nullptr) m.states[sequence] = static_cast<int32_t>(s.state);
  for (uint32_t i = n - s.n_outputs; i < n; ++i, ++at_output)
    if (m.output_rows != nullptr) m.output_rows[at_output] = static_cast<int32_t>(at_token + i);
}

void model_runner::note_facts(const part_program& at, const batch& b) const {
  uint32_t sequence = 0, token = 0, output = 0;
  for (const schedule::slice& s : b.slices) {
    note_slice(at, s, sequence++, token, output);
    token += static_cast<uint32_t>(s.tokens.size());
  }
}

result<void> model_runner::run(std::span<const schedule::slice> slices, uint32_t top_logits,
                               std::vector<generate::logits_row>& rows) {
  rows.clear();
  const auto b = count(slices, top_logits);
  if (!b) return std::unexpected(b.error());
  const auto n_sequences = static_cast<uint32_t>(slices.size());
  BITNET_PROBE_3(step_begin, n_sequences, b->n_tokens, b->n_outputs);
  if (recorder_ != nullptr) recorder_->begin_step(n_sequences, b->n_tokens, b->n_outputs);
  auto ok = run_parts(*b, rows);
  const bitnet_status status = status_of(ok);
  if (recorder_ != nullptr) recorder_->end_step(status);
  BITNET_PROBE_3(step_end, n_sequences, b->n_tokens, status);
  return ok;
}

result<void> model_runner::run_parts(const batch& b, std::vector<generate::logits_row>& rows) {
  for (std::size_t i = 0; i < part_programs_.size(); ++i) {
    auto ok = run_part(i, b);
    if (ok && i + 1 == part_programs_.size()) ok = take_rows(part_programs_[i], b, rows);
    if (ok) continue;
    engine_->note_failure(i);
    rows.clear();
    return ok;
  }
  return engine_->check_read();
}

namespace {

constexpr auto unwritten = std::bit_cast<float>(uint32_t{BITNET_UNWRITTEN_LOGIT_BITS});

bool is_unwritten(float value) {
  return std::bit_cast<uint32_t>(value) == BITNET_UNWRITTEN_LOGIT_BITS;
}

}  // namespace

// Runs the step on one part. All rows go from part to part; the last part outputs the wanted ones.
result<void> model_runner::run_part(std::size_t index, const batch& b) {
  part_program& at = part_programs_[index];
  const bool is_last = index + 1 == part_programs_.size();
  note_facts(at, b);
  bitnet_step s{};
  s.struct_size = sizeof s;
  s.n_tokens = b.n_tokens;
  s.n_sequences = static_cast<uint32_t>(b.slices.size());
  s.n_outputs = is_last ? b.n_outputs : 0;
  s.binding = at.binding.get();
  s.cancel_token = cancel_token_;
  s.top_logits = is_last ? b.top_logits : 0;
  s.window = limits_.window;
  s.window_keep = limits_.window_keep;
  const uint64_t width = is_last ? row_floats_ : engine_->model().shape().n_embedding;
  const uint64_t n_rows = is_last ? b.n_outputs : b.n_tokens;
  for (uint64_t r = 0; r < n_rows; ++r)
    at.memory.out[r * width] = at.memory.out[(r + 1) * width - 1] = unwritten;
  if (is_last && at.memory.largest != nullptr && b.top_logits != 0)
    for (uint32_t r = 0; r < b.n_outputs; ++r) at.memory.largest[r].count = BITNET_NONE;
  const auto doing = [&] {  // called on failure only: a step that works allocates nothing
    return fmt::format("backend {}: computing a step of {} tokens", at.on->backend_name(),
                       s.n_tokens);
  };
  const plugin::kept_thread kept(*at.on->choice().backend->complaints());
  if (auto ok = compute_on(at, s, doing); !ok || is_last) return ok;
  for (uint64_t r = 0; r < n_rows; ++r)
    if (is_unwritten(at.memory.out[r * width]) || is_unwritten(at.memory.out[(r + 1) * width - 1]))
      return as_result(compute::sane("queue_wait", "succeeds and writes no hidden states"),
                       doing());
  std::copy_n(at.memory.out, n_rows * width, part_programs_[index + 1].memory.in);
  return {};
}

// After the step: returns whether the device listed the row.
result<bool> model_runner::take_listed(const part_program& at, const batch& b, uint32_t output,
                                       generate::logits_row& to) const {
  if (at.memory.largest == nullptr || b.top_logits == 0) return false;
  const bitnet_largest& row = at.memory.largest[output];
  if (row.count > BITNET_MOST_LARGEST) return false;
  auto sane = compute::sane("queue_wait", bitnet_wrong_largest(&row, b.top_logits, row_floats_));
  if (!sane) {
    auto why = as_result(std::move(sane), fmt::format("backend {}: taking the largest logits",
                                                      at.on->backend_name()));
    return std::unexpected(std::move(why.error()));
  }
  to.ids = {row.ids, row.count};
  to.listed = {row.logits, row.count};
  return true;
}

result<void> model_runner::take_rows(const part_program& at, const batch& b,
                                     std::vector<generate::logits_row>& rows) const {
  for (uint32_t output = 0; output < b.n_outputs; ++output) {
    generate::logits_row one{{at.memory.out + output * row_floats_, row_floats_}, {}, {}};
    const auto listed = take_listed(at, b, output, one);
    if (!listed) return std::unexpected(listed.error());
    if (!*listed && (is_unwritten(one.logits.front()) || is_unwritten(one.logits.back())))
      return as_result(
          compute::sane("queue_wait", embeddings_ ? "succeeds and writes no hidden states"
                                                  : "succeeds and writes no logits"),
          fmt::format("backend {}: computing a step of {} tokens", at.on->backend_name(),
                      b.n_tokens));
    rows.push_back(one);
  }
  return {};
}

result<std::vector<engine::device_use>> model_runner::ran() const {
  std::vector<engine::device_use> all;
  for (const part_program& p : part_programs_) {
    auto stats = as_result(p.program.stats(), "asking what ran");
    if (!stats) return pass_on(std::move(stats), fmt::format("backend {}", p.on->backend_name()));
    engine::add(all, {engine::use_of(*p.on, *std::move(stats))});
  }
  return all;
}

// ---- blocks and states -------------------------------------------------------------------------

// Each part has the blocks of its own layers; blocks and states that it has none of are skipped.
result<void> model_runner::copy(std::span<const uint32_t> from, std::span<const uint32_t> to) {
  for (std::size_t i = 0; i < part_programs_.size(); ++i) {
    const engine::kv_pools::pool& pool = pools_->of_part(i);
    std::vector<uint32_t> there, here;
    for (std::size_t k = 0; k < from.size(); ++k) {
      const bool is_state = from[k] >= limits_.n_blocks;
      if (is_state ? !pool.has_states() : !pool.has_keys) continue;
      there.push_back(is_state ? pool.as_block(from[k] - limits_.n_blocks) : from[k]);
      here.push_back(is_state ? pool.as_block(to[k] - limits_.n_blocks) : to[k]);
    }
    if (there.empty()) continue;
    const engine::part& on = *part_programs_[i].on;
    const plugin::kept_thread kept(*on.choice().backend->complaints());
    if (auto ok = as_result(part_programs_[i].queue.copy(pool.made.get(), there, here),
                            fmt::format("backend {}: copying KV blocks", on.backend_name()));
        !ok)
      return ok;
  }
  return {};
}

// Moves the bytes that each part has of the blocks or states `which`; one takes `whole` bytes for
// the whole model. Calls begin(queue, pool, portion, memory), waits for the queue, then calls
// end(portion, memory). `memory` has room for the portion unless that is the whole model.
template <class Begin, class End>
result<void> model_runner::for_pools(std::span<const uint32_t> which, pool_content what,
                                     uint64_t whole, const char* doing, const Begin& begin,
                                     const End& end) {
  uint64_t offset = 0;
  std::vector<std::byte> memory;
  for (std::size_t i = 0; i < part_programs_.size(); ++i) {
    part_program& at = part_programs_[i];
    const engine::kv_pools::pool& pool = pools_->of_part(i);
    const uint64_t bytes = what == pool_content::keys ? pool.block_bytes()
                           : pool.has_states()        ? engine::state_bytes(pool.config)
                                                      : 0;
    if (bytes == 0) continue;
    portion of{{which.begin(), which.end()}, offset, bytes, bytes == whole};
    if (what == pool_content::states)
      for (uint32_t& state : of.blocks) state = pool.as_block(state);
    if (!of.is_all) memory.resize(bytes * which.size());
    const auto task = [&] { return fmt::format("backend {}: {}", at.on->backend_name(), doing); };
    if (auto ok = as_result(begin(at.queue, pool.made.get(), of, memory), task()); !ok) return ok;
    if (auto ok = await(at, task); !ok) return ok;
    end(of, memory);
    offset += bytes;
  }
  return {};
}

result<void> model_runner::write_out(std::span<const uint32_t> which, pool_content what,
                                     std::span<std::byte> bytes) {
  const uint64_t whole = bytes.size() / which.size();
  return for_pools(
      which, what, whole, "writing KV out",
      [&](compute::queue& queue, auto* pool, const portion& of, std::span<std::byte> memory) {
        return queue.write_out(pool, of.blocks, of.is_all ? bytes : memory);
      },
      [&](const portion& of, std::span<const std::byte> memory) {
        for (std::size_t i = 0; !of.is_all && i < of.blocks.size(); ++i)
          std::memcpy(bytes.data() + i * whole + of.offset, memory.data() + i * of.bytes, of.bytes);
      });
}

result<void> model_runner::read_in(std::span<const uint32_t> which, pool_content what,
                                   std::span<const std::byte> bytes) {
  const uint64_t whole = bytes.size() / which.size();
  return for_pools(
      which, what, whole, "reading KV in",
      [&](compute::queue& queue, auto* pool, const portion& of, std::span<std::byte> memory) {
        for (std::size_t i = 0; !of.is_all && i < of.blocks.size(); ++i)
          std::memcpy(memory.data() + i * of.bytes, bytes.data() + i * whole + of.offset, of.bytes);
        return queue.read_in(pool, of.blocks, of.is_all ? bytes : memory);
      },
      [](const portion&, std::span<const std::byte>) {});
}

}  // namespace bitnet::runner
