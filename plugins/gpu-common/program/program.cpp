#include "program.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bitnet/sdk/compute/graph_reader.hpp"

namespace bitnet::gpu {
namespace {

using sdk::failed;
using source = operand::source;

// Bytes of a binding's header, which the host writes for each step and kernels read.
constexpr uint64_t header_bytes = 64;
// Up to this number of parts, one group takes them in turn, which saves the command that merges
// them. The number is not measured.
constexpr uint64_t parts_of_one_group = 4;

uint32_t groups_for(uint64_t units, uint64_t of_a_group, uint32_t most) noexcept {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>((units + of_a_group - 1) / of_a_group, 1, most));
}

// Records what the commands since the last barrier read and write. A command needs a barrier if it
// writes what they use, or uses what they write.
class hazards {
 public:
  bool meets(const binding& b, bool written) const noexcept {
    return std::any_of(seen_.begin(), seen_.end(), [&](const use& u) {
      return (u.written || written) && u.place.memory == b.memory &&
             u.place.offset < b.offset + b.bytes && b.offset < u.place.offset + u.place.bytes;
    });
  }
  void add(const binding& b, bool written) { seen_.push_back({b, written}); }
  void clear() noexcept { seen_.clear(); }

 private:
  struct use {
    binding place;
    bool written;
  };
  std::vector<use> seen_;
};

}  // namespace

bitnet_status program::build(const bitnet_graph* g, const weights& all,
                             const bitnet_program_options* options, uint64_t cancel_token,
                             const sdk::reporter& report) {
  // Checked only once, since building is short: kernels are compiled when a binding is prepared.
  if (device_.services.cancelled(cancel_token))
    return report.fail(BITNET_CANCELLED, "the caller cancelled building the program");
  if (bitnet_status s = sdk::check_limits(options, limits_, report); failed(s)) return s;
  for (uint32_t i = 0; i < limits_.n_buckets; ++i)
    if (limits_.buckets[i] > 0 && limits_.buckets[i] < limits_.max_tokens)
      buckets_.push_back(limits_.buckets[i]);
  limits_.buckets = nullptr;  // the host's list is valid only during the call
  for (uint64_t n = 1; n < limits_.max_tokens; n *= 4) buckets_.push_back(static_cast<uint32_t>(n));
  buckets_.push_back(limits_.max_tokens);
  std::sort(buckets_.begin(), buckets_.end());
  buckets_.erase(std::unique(buckets_.begin(), buckets_.end()), buckets_.end());
  if (bitnet_status s = sdk::graph_reader(all, report, graph_).read(g); failed(s)) return s;
  const range here(device_.watcher, "plan ", graph_.ops.size(), " ops");
  // Rounded products depend on the number of rows of a step.
  const bool steady = (limits_.flags & BITNET_PROGRAM_DETERMINISTIC) != 0;
  if (bitnet_status s =
          make_plan(graph_, all, device_, steady ? 0 : limits_.precisions, plan_, report);
      failed(s))
    return s;
  for (const rotation_table& t : plan_.rotations)
    rotations_.push_back(std::make_unique<rotations>(t.frequencies));
  if (bitnet_status s = check_passes(report); failed(s)) return s;
  counters_.resize(plan_.nodes.size());
  return check_room(report);
}

uint64_t program::row_words_of(uint32_t value) const noexcept {
  const bitnet_value& v = graph_.values[value];
  const auto k = static_cast<uint64_t>(v.dims[1]);
  return v.dtype == BITNET_DTYPE_I8 ? i8_row_words(k) : k;
}

uint64_t program::context_parts() const noexcept {
  return (uint64_t{limits_.max_blocks} * limits_.block_tokens + attn_part - 1) / attn_part;
}

// Into which attention cuts the context of a step with one row; 0: it does not.
uint64_t program::parts_of_token() const noexcept {
  return context_parts() > parts_of_one_group ? context_parts() : 0;
}

// True if a step with `rows` rows that requests these logits runs the node. `in_f16`: so are keys
// and values.
bool program::belongs(const node& n, uint32_t rows, logits asked, bool in_f16) const noexcept {
  if (n.of != logits::any && n.of != asked) return false;
  if (rows == 0 || (rows == 1 && n.not_of_one_row)) return false;
  const bool prompts = in_f16 && rows > most_rows_in_parts;
  if (n.when == steps::of_prompts || (prompts && n.not_of_prompts))
    return prompts && n.when == steps::of_prompts;
  if (n.when == steps::all) return true;
  if (n.when == steps::of_one_row || n.when == steps::of_more_rows)
    return (n.when == steps::of_one_row) == (rows == 1);
  if (n.when == steps::of_few_rows || n.when == steps::of_many_rows)
    return (n.when == steps::of_few_rows) == (rows < fewest_rounded);
  const bool in_parts = rows <= most_rows_in_parts && parts_of_token() != 0;
  return (n.when == steps::in_parts) == in_parts;
}

uint64_t program::rows_of(uint32_t value, uint64_t tokens, uint64_t outputs) const noexcept {
  return graph_.values[value].dims[0] == BITNET_DIM_OUTPUTS ? outputs : tokens;
}

// Lifetimes of values, then of attention's partial results, then of rounded activations.
std::vector<sdk::lifetime> program::lifetimes(uint64_t tokens, uint64_t outputs) const {
  const uint64_t values = graph_.values.size();
  const uint64_t rounded = values + plan_.part_words.size();
  std::vector<sdk::lifetime> lives(rounded + plan_.rounded_words.size());
  const uint64_t rows_in_parts = std::min<uint64_t>(tokens, most_rows_in_parts);
  const uint64_t parts = context_parts();
  for (uint64_t i = 0; i < plan_.nodes.size(); ++i) {
    const node& n = plan_.nodes[i];
    for (const operand& o : n.operands) {
      const bool of_parts = o.from == source::parts && parts_of_token() != 0;
      const bool is_rounded = o.from == source::rounded;
      if (!of_parts && !is_rounded && (o.from != source::value || graph_.external[o.index]))
        continue;
      sdk::lifetime& life = lives[of_parts     ? values + o.index
                                  : is_rounded ? rounded + o.index
                                               : o.index];
      if (life.bytes == 0) life.first = i;
      life.last = i;
      const uint64_t rows = n.rows == rows_are_outputs ? outputs : tokens;
      const uint64_t words = of_parts ? plan_.part_words[o.index] * parts * rows_in_parts
                             : is_rounded
                                 ? plan_.rounded_words[o.index] * rows
                                 : row_words_of(o.index) * rows_of(o.index, tokens, outputs);
      life.bytes = device_.align(4 * words);
    }
  }
  return lives;
}

bitnet_status program::check_room(const sdk::reporter& report) const {
  const capabilities& can = device_.capabilities();
  std::vector<sdk::lifetime> lives = lifetimes(limits_.max_tokens, limits_.max_outputs);
  const uint64_t bytes = sdk::place(lives);
  const auto largest = std::max_element(lives.begin(), lives.end(), [](auto& a, auto& b) {
                         return a.bytes < b.bytes;
                       })->bytes;
  if (bytes > can.max_allocation_bytes || largest > can.max_binding_bytes)
    return report.fail(BITNET_OUT_OF_DEVICE_MEMORY,
                       "activations of %llu bytes, one value of %llu: %s allocates at most %s at "
                       "once and a kernel sees at most %s; use a smaller batch",
                       static_cast<unsigned long long>(bytes),
                       static_cast<unsigned long long>(largest), device_.about().name.c_str(),
                       limit_text(can.max_allocation_bytes, can.max_allocation_name).c_str(),
                       limit_text(can.max_binding_bytes, can.max_binding_name).c_str());
  for (uint64_t i = 0; i < graph_.ports.size(); ++i) {
    const bitnet_port& p = graph_.ports[i];
    const uint64_t needed = sdk::bytes_of_port(p, graph_, limits_);
    if (needed > can.max_binding_bytes)
      return report.fail(
          BITNET_OUT_OF_DEVICE_MEMORY,
          "port %llu takes %llu bytes, a kernel sees at most %s; ask for fewer outputs",
          static_cast<unsigned long long>(i), static_cast<unsigned long long>(needed),
          limit_text(can.max_binding_bytes, can.max_binding_name).c_str());
    if (p.value == BITNET_NONE) continue;
    const bitnet_value& v = graph_.values[p.value];
    if (v.dtype == BITNET_DTYPE_I8 && v.dims[1] % 4 != 0)
      return report.fail(BITNET_UNSUPPORTED,
                         "value %u of a port has rows of %lld bytes; expected a multiple of 4",
                         p.value, static_cast<long long>(v.dims[1]));
  }
  return BITNET_OK;
}

uint64_t program::binding_bytes() const {
  std::vector<sdk::lifetime> lives = lifetimes(limits_.max_tokens, limits_.max_outputs);
  uint64_t of_host = header_bytes;
  for (const rotation_table& t : plan_.rotations) of_host += rotation_bytes(t, limits_.max_tokens);
  // Two recordings: of a prompt and of a token.
  return sdk::place(lives) + of_host + 4 * uint64_t{plan_.tickets} + 2 * gathered_bytes();
}

uint64_t program::gathered_bytes() const noexcept {
  const uint64_t most = device_.quirks().most_gathered;
  if (most == 0) return 0;
  uint64_t bytes = gathered_bytes_of(header_bytes);
  for (const rotation_table& t : plan_.rotations)
    bytes += gathered_bytes_of(
        std::min(rotation_bytes(t, limits_.max_tokens), device_.quirks().most_gathered_rotations));
  for (const bitnet_port& p : graph_.ports) {
    const bool written = p.role == BITNET_PORT_VALUE_OUT || p.role == BITNET_PORT_LOGITS ||
                         p.role == BITNET_PORT_LARGEST;
    const uint64_t of_port = sdk::bytes_of_port(p, graph_, limits_);
    if (!written && of_port <= most) bytes += gathered_bytes_of(of_port);
  }
  return bytes;
}

uint32_t program::bucket(uint32_t tokens) const noexcept {
  return *std::lower_bound(buckets_.begin(), buckets_.end(), tokens);
}

steps_on::~steps_on() {
  device_.settle();
  const std::scoped_lock lock(device_.lock);
  recordings_.clear();
}

bitnet_status steps_on::place(const std::vector<bitnet_bound>& named, const sdk::reporter& report) {
  std::vector<sdk::lifetime> lives = of_.lifetimes(of_.limits_.max_tokens, of_.limits_.max_outputs);
  if (bitnet_status s = device_.pool.take(sdk::place(lives), memory_place::device, arena_, report);
      failed(s))
    return s;
  if (bitnet_status s = device_.pool.take(header_bytes, memory_place::host, header_, report);
      failed(s))
    return s;
  if (bitnet_status s = take_tickets(report); failed(s)) return s;
  for (const rotation_table& t : of_.plan_.rotations) {
    lease made;
    if (bitnet_status s = device_.pool.take(of_.rotation_bytes(t, of_.limits_.max_tokens),
                                            memory_place::host, made, report);
        failed(s))
      return s;
    rotations_.push_back(std::move(made));
  }
  values_.resize(lives.size());
  for (uint64_t v = 0; v < lives.size(); ++v)
    if (lives[v].bytes != 0) values_[v] = {arena_.get(), lives[v].offset, lives[v].bytes};
  for (uint64_t i = 0; i < named.size(); ++i) {
    const bitnet_port& p = of_.graph_.ports[i];
    const auto* made = reinterpret_cast<const step_buffer*>(named[i].buffer);
    const uint64_t bytes = sdk::bytes_of_port(p, of_.graph_, of_.limits_);
    (p.value == BITNET_NONE ? facts_[p.role] : values_[p.value]) = {made->memory.get(),
                                                                    named[i].offset, bytes};
  }
  return BITNET_OK;
}

bitnet_status steps_on::prepare(const bitnet_prepare_request& request,
                                const sdk::reporter& report) {
  if (bitnet_status s = sdk::check_size(request, of_.limits_, report); failed(s)) return s;
  const uint32_t n_tokens = request.n_tokens, n_outputs = request.n_outputs;
  const range here(device_.watcher, "prepare ", n_tokens, " tokens, ", n_outputs, " outputs");
  const std::scoped_lock lock(running_);
  recorded* made = nullptr;
  return find_recording(n_tokens, n_outputs, logits::all, request.cancel_token, made, report);
}

kernel_spec steps_on::spec_for(const node& n, uint32_t rows) const noexcept {
  // Indices of constants. Matrices have tile_tokens where writing and attention have value_type.
  constexpr uint32_t key_type = 1, value_type = 2, tile_tokens = 2, tile_rows = 3, head_dim = 4;
  kernel_spec spec = n.spec;
  const tiles fit = tiles_for(device_.about());
  const bool tiled = n.grid == grid::matrix && spec.id != kernel_id::bit_linear;
  if (tiled || spec.id == kernel_id::head_approximate)
    spec.constants[tile_tokens] = std::min(rows, fit.tokens);
  if (spec.id == kernel_id::attn_tiles && rows > most_rows_in_parts)
    spec.constants[tile_rows] = tile_rows_for(
        device_.capabilities(), device_.capabilities().attention_rows, spec.constants[head_dim]);
  if (spec.id == kernel_id::kv_write || spec.id == kernel_id::attn_paged ||
      spec.id == kernel_id::attn_tiles || spec.id == kernel_id::attn_token ||
      spec.id == kernel_id::attn_rounded) {
    spec.constants[key_type] = pool_->storage().dtype_k;
    spec.constants[value_type] = pool_->storage().dtype_v;
  }
  return spec;
}

// The node's parameters for a part of its matrix, or of the step's tokens, and for the pool.
parameters steps_on::params_for(const node& n, uint64_t part, uint32_t tokens) const {
  parameters out = n.params;
  if (sees_rows(out))
    set_rows(out, static_cast<uint32_t>(n.weight->parts[part].first_row),
             static_cast<uint32_t>(n.weight->parts[part].n_rows));
  if (works_on_states(out))
    set_tokens(out, static_cast<uint32_t>(pool_->state_bytes() / 4),
               static_cast<uint32_t>(part * tokens), static_cast<uint32_t>((part + 1) * tokens));
  if (auto* write = std::get_if<kv_write_params>(&out)) {
    write->n_kv_heads = static_cast<uint32_t>(pool_->storage().n_kv_heads);
    write->head_dim = static_cast<uint32_t>(pool_->storage().head_dim);
    write->block_tokens = of_.limits_.block_tokens;
  } else if (auto* attention = std::get_if<attn_paged_params>(&out)) {
    attention->block_tokens = of_.limits_.block_tokens;
    attention->max_blocks = of_.limits_.max_blocks;
  } else if (auto* tiles = std::get_if<attn_tiles_params>(&out)) {
    tiles->block_tokens = of_.limits_.block_tokens;
    tiles->max_blocks = of_.limits_.max_blocks;
    tiles->parts = n.when == steps::in_parts ? static_cast<uint32_t>(of_.context_parts()) : 0;
  } else if (auto* rounded = std::get_if<attn_rounded_params>(&out)) {
    rounded->block_tokens = of_.limits_.block_tokens;
    rounded->max_blocks = of_.limits_.max_blocks;
  } else if (auto* token = std::get_if<attn_token_params>(&out)) {
    token->block_tokens = of_.limits_.block_tokens;
    token->max_blocks = of_.limits_.max_blocks;
    token->parts = static_cast<uint32_t>(of_.parts_of_token());
  } else if (auto* merge = std::get_if<attn_merge_params>(&out)) {
    merge->parts = static_cast<uint32_t>(of_.context_parts());
  }
  return out;
}

// The commands of node `at`, one for each part of its matrix or of the step's tokens; `run` and
// `after` are still missing.
void steps_on::add_commands(uint32_t at, uint32_t rows, std::vector<command>& commands,
                            std::vector<uint32_t>& nodes) const {
  const node& n = of_.plan_.nodes[at];
  const uint32_t most = device_.capabilities().max_groups;
  const uint32_t* constants = n.spec.constants;
  const bool by_sequence = works_on_states(n.params);
  const uint32_t tokens =
      by_sequence ? std::min(tokens_at_once(n, device_.quirks().max_passes), rows) : rows;
  const uint64_t parts = sees_rows(n.params) ? n.weight->parts.size()
                         : by_sequence       ? (uint64_t{rows} + tokens - 1) / tokens
                                             : 1;
  for (uint64_t p = 0; p < parts; ++p) {
    command c;
    c.bindings.push_back({header_.get(), 0, header_.get()->size()});
    for (const operand& o : n.operands) {
      c.bindings.push_back(place_of(o, n, p));
      if (o.from == source::rotations)  // most tokens of this recording
        c.bindings.back().bytes = std::min(
            c.bindings.back().bytes, program::rotation_bytes(of_.plan_.rotations[o.index], rows));
      c.bindings.back().written = o.written;
    }
    c.params = words_of(params_for(n, p, tokens));
    c.groups_y =
        groups_for(by_sequence ? std::min(tokens, of_.limits_.max_sequences) : rows, 1, most);
    switch (n.grid) {
      case grid::threads:
        c.groups_x = groups_for(n.columns, constants[0], most);
        break;
      case grid::rows:
        c.groups_x = groups_for(n.columns, 1, most);
        break;
      case grid::heads:  // at most 65535, which every device supports
        c.groups_x = static_cast<uint32_t>(n.columns);
        break;
      case grid::tiles:
        c.groups_x = groups_for(
            tile_groups(n, spec_for(n, rows),
                        n.when == steps::of_one_row ? std::max<uint64_t>(of_.parts_of_token(), 1)
                                                    : of_.context_parts()),
            1, most);
        break;
      case grid::matrix: {
        c.groups_x = groups_for(n.weight->parts[p].n_rows, rows_of_group(n.spec), most);
        if (n.spec.id != kernel_id::bit_linear)
          c.groups_y = groups_for(rows, spec_for(n, rows).constants[2], most);
        break;
      }
    }
    commands.push_back(std::move(c));
    nodes.push_back(at);
  }
}

bitnet_status steps_on::find_recording(uint32_t n_tokens, uint32_t n_outputs, logits asked,
                                       uint64_t cancel_token, recorded*& out,
                                       const sdk::reporter& report) {
  const uint32_t tokens = of_.bucket(n_tokens);
  const uint32_t outputs = n_outputs <= 1
                               ? n_outputs
                               : std::min(of_.bucket(std::min(n_outputs, of_.limits_.max_tokens)),
                                          of_.limits_.max_outputs);
  for (recorded& r : recordings_) {
    if (r.tokens != tokens || r.outputs != outputs || r.asked != asked) continue;
    out = &r;
    return BITNET_OK;
  }
  const range here(device_.watcher, "record ", tokens, " tokens, ", outputs, " outputs");
  std::vector<command> commands;
  recorded made{tokens, outputs, asked, nullptr, {}};
  const bool in_f16 = pool_ && pool_->storage().dtype_k == BITNET_DTYPE_F16 &&
                      pool_->storage().dtype_v == BITNET_DTYPE_F16;
  const std::scoped_lock lock(device_.lock);
  hazards running;
  for (uint32_t i = 0; i < of_.plan_.nodes.size(); ++i) {
    const node& n = of_.plan_.nodes[i];
    const uint32_t rows = n.rows == rows_are_outputs ? outputs : tokens;
    if (!of_.belongs(n, rows, asked, in_f16)) continue;
    if (device_.services.cancelled(cancel_token))
      return report.fail(BITNET_CANCELLED, "the caller cancelled preparing the commands");
    const uint64_t first = commands.size();
    add_commands(i, rows, commands, made.nodes);
    for (uint64_t c = first; c < commands.size(); ++c) {
      if (bitnet_status s = device_.kernels.get(spec_for(n, rows), commands[c].run, report);
          failed(s))
        return s;
      const auto each = [&](auto f) {
        for (uint64_t b = 0; b < n.operands.size(); ++b)
          f(commands[c].bindings[b + 1], n.operands[b].written);
      };
      bool after = c == 0;
      each([&](const binding& b, bool written) { after |= running.meets(b, written); });
      commands[c].after = after;
      if (after) running.clear();
      each([&](const binding& b, bool written) { running.add(b, written); });
    }
  }
  const bool timed = (of_.limits_.flags & BITNET_PROGRAM_PROFILE) != 0;
  if (bitnet_status s = device_.driver->record(commands, timed, made.commands, report); failed(s))
    return s;
  recordings_.push_back(std::move(made));
  out = &recordings_.back();
  return BITNET_OK;
}

void steps_on::fill_header(const bitnet_step& step, logits asked) {
  const bool lists =
      of_.plan_.lists && asked == logits::largest && step.top_logits <= BITNET_MOST_LARGEST;
  const uint32_t words[] = {step.n_tokens,   step.n_outputs,
                            step.window,     step.window != 0 ? step.window_keep : 0,
                            step.top_logits, lists ? 1u : 0u};
  std::memcpy(header_.get()->mapped(), words, sizeof words);
  for (uint64_t i = 0; i < rotations_.size(); ++i)
    of_.rotations_[i]->write({step_.positions, step.n_tokens},
                             static_cast<float*>(rotations_[i].get()->mapped()));
}

// The header and the recording may be reused once the last step is done.
bitnet_status steps_on::finish_last(const sdk::reporter& report) {
  if (!last_queue_) return BITNET_OK;
  const range here(device_.watcher, "wait for the last step");
  const std::shared_ptr<running> queue = std::move(last_queue_);
  last_queue_ = nullptr;
  return queue->wait(last_value_, UINT64_MAX, report);
}

bitnet_status steps_on::run(const bitnet_step& step, const std::shared_ptr<running>& queue,
                            const sdk::reporter& report) {
  const std::scoped_lock lock(running_);
  // This runs while the device may still compute the last step, so it adds no time to a step. The
  // positions are not checked yet.
  if (step.n_tokens <= of_.limits_.max_tokens)
    for (const auto& table : of_.rotations_) table->prepare({step_.positions, step.n_tokens});
  if (bitnet_status s = finish_last(report); failed(s)) return s;
  const range here(device_.watcher, "step ", step.n_tokens, " tokens, ", step.n_sequences,
                   " sequences, ", step.n_outputs, " outputs");
  if (bitnet_status s = checker_.check(step, of_.limits_, of_.graph_, step_,
                                       pool_ ? &pool_->storage() : nullptr, report);
      failed(s))
    return s;
  if (device_.services.cancelled(step.cancel_token))
    return report.fail(BITNET_CANCELLED, "the caller cancelled the step");
  logits asked{};
  if (bitnet_status s = asked_by(step, asked, report); failed(s)) return s;
  recorded* commands = nullptr;
  if (bitnet_status s = find_recording(step.n_tokens, step.n_outputs, asked, 0, commands, report);
      failed(s))
    return s;
  fill_header(step, asked);
  {
    const range submitting(device_.watcher, "submit, ",
                           asked == logits::largest ? "largest logits" : "all logits");
    const std::scoped_lock driver(device_.lock);
    if (bitnet_status s = queue->work->submit(*commands->commands, step.signal_value, report);
        failed(s))
      return s;
  }
  queue->submitted.store(step.signal_value);
  last_queue_ = queue;
  last_value_ = step.signal_value;
  const bool timed = (of_.limits_.flags & BITNET_PROGRAM_PROFILE) != 0;
  if (timed)
    if (bitnet_status s = finish_last(report); failed(s)) return s;
  count(*commands, step.n_tokens, timed);
  return BITNET_OK;
}

}  // namespace bitnet::gpu
