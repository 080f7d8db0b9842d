#include "suites/sequences.hpp"

#include <algorithm>

namespace bitnet::conformance {

sequences_runner::sequences_runner(const bitnet_backend_v0& table, const model& m,
                                   const runner_options& options, uint32_t seed)
    : runner(table, m, options),
      how_(options),
      state_elements_(m.state_elements),
      layout_{options.dtype_k, options.dtype_v, m.kv_layers,
              m.kv_heads,      m.head_dim,      options.block_tokens},
      random_(seed) {}

bitnet_step sequences_runner::write(const planned_step& plan, const step_memory& to) {
  const uint32_t blocks = how_.max_blocks;
  for (uint32_t i = 0; i < how_.max_sequences * blocks; ++i)
    to.block_tables[i] = static_cast<int32_t>(random_() % how_.n_blocks);
  std::vector<int32_t> unused;  // states that no slice has, for the rows without tokens
  for (uint32_t s = 0; s < how_.max_sequences + 2; ++s)
    if (std::ranges::find(plan.slices, s, &slice::state) == plan.slices.end())
      unused.push_back(static_cast<int32_t>(s));
  for (uint32_t r = 0; to.states != nullptr && r < how_.max_sequences; ++r) {
    if (std::ranges::find(plan.slices, r, &slice::row) != plan.slices.end()) continue;
    to.states[r] = unused.back();
    unused.pop_back();
  }
  uint32_t t = 0;
  for (const slice& s : plan.slices) {
    for (uint32_t b = 0; b < s.blocks.size(); ++b)
      to.block_tables[s.row * blocks + b] = static_cast<int32_t>(s.blocks[b]);
    if (to.states != nullptr) to.states[s.row] = static_cast<int32_t>(s.state);
    for (uint32_t i = 0; i < s.tokens.size(); ++i, ++t) {
      const uint32_t at = s.first + i;
      to.tokens[t] = s.tokens[i];
      to.positions[t] = static_cast<int32_t>(at);
      to.sequences[t] = static_cast<int32_t>(s.row);
      to.slots[t] = static_cast<int32_t>(s.blocks[at / how_.block_tokens] * how_.block_tokens +
                                         at % how_.block_tokens);
    }
  }
  std::ranges::copy(plan.output_rows, to.output_rows);
  bitnet_step step{};
  step.struct_size = sizeof step;
  step.n_tokens = plan.n_tokens();
  step.n_sequences = plan.n_sequences;
  step.n_outputs = static_cast<uint32_t>(plan.output_rows.size());
  step.binding = to.binding;
  step.cancel_token = 1;
  step.signal_value = next_signal();
  step.window = plan.window;
  step.window_keep = plan.window_keep;
  return step;
}

std::vector<int32_t> sequences_runner::facts() const {
  std::vector<int32_t> out;
  for (const int32_t* of_token : {tokens, positions, sequences, slots})
    out.insert(out.end(), of_token, of_token + how_.max_tokens);
  const uint64_t blocks = uint64_t{how_.max_sequences} * how_.max_blocks;
  out.insert(out.end(), block_tables, block_tables + blocks);
  out.insert(out.end(), output_rows, output_rows + how_.max_outputs);
  if (states != nullptr) out.insert(out.end(), states, states + how_.max_sequences);
  return out;
}

outcome sequences_runner::take(const planned_step& plan) {
  const bitnet_step step = write(plan);
  const std::vector<int32_t> given = facts();
  outcome o = submit(step);
  if (o.status == BITNET_OK && facts() != given) {
    called_slot = "queue_submit";  // not the one that was waited with
    o = {BITNET_INTERNAL, "queue_submit: a fact of the step is another one afterwards", ""};
  }
  return o;
}

outcome sequences_runner::move(const planned_step& plan) {
  std::vector<uint32_t> from, to;
  for (const block_move& m : plan.blocks) {
    from.push_back(m.from);
    to.push_back(m.to);
  }
  for (const block_move& m : plan.states) {
    if (state_elements_ == 0) break;
    from.push_back(how_.n_blocks + m.from);
    to.push_back(how_.n_blocks + m.to);
  }
  return from.empty() ? outcome{} : copy_blocks(from, to);
}

std::vector<uint32_t> sequences_runner::everything() const {
  const uint32_t n = how_.n_blocks + (state_elements_ == 0 ? 0 : how_.max_sequences + 2);
  std::vector<uint32_t> out(n);
  for (uint32_t i = 0; i < n; ++i) out[i] = i;
  return out;
}

std::vector<bool> sequences_runner::written_by(const planned_step& plan) const {
  const uint64_t block = layout_.block_bytes(), state = state_elements_ * sizeof(float);
  std::vector<bool> out(how_.n_blocks * block +
                        (state == 0 ? 0 : (how_.max_sequences + 2) * state));
  const auto mark = [&](uint64_t at, uint64_t n) {
    std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(at), n, true);
  };
  for (const slice& s : plan.slices) {
    if (state != 0) mark(how_.n_blocks * block + s.state * state, state);
    for (uint32_t p = s.first; p < s.first + s.tokens.size(); ++p)
      for (uint64_t layer = 0; layer < layout_.layers; ++layer)
        for (uint64_t head = 0; head < layout_.heads; ++head)
          for (const bool value : {false, true})
            mark(s.blocks[p / how_.block_tokens] * block +
                     layout_.at(value, layer, head, p % how_.block_tokens),
                 kv_head_bytes(value ? layout_.dtype_v : layout_.dtype_k, layout_.head_dim));
  }
  return out;
}

pool_contents sequences_runner::room() const {
  pool_contents out;
  out.layout = layout_;
  out.blocks.assign(how_.n_blocks, std::vector<uint8_t>(layout_.block_bytes()));
  if (state_elements_ != 0)
    out.states.assign(how_.max_sequences + 2, std::vector<float>(state_elements_));
  return out;
}

void sequences_runner::restore(const std::vector<uint8_t>& bytes) {
  guarded_memory<uint8_t> from{std::span<const uint8_t>(bytes)};
  const outcome o = import_blocks(everything(), {from.data(), from.size()});
  if (o.status != BITNET_OK) throw call_failed(o);
}

std::vector<uint8_t> sequences_runner::contents() {
  guarded_memory<uint8_t> out(
      how_.n_blocks * layout_.block_bytes() +
      (state_elements_ == 0 ? 0 : (how_.max_sequences + 2) * state_elements_ * sizeof(float)));
  const outcome o = export_blocks(everything(), {out.data(), out.size()});
  if (o.status != BITNET_OK) throw call_failed(o);
  return {out.data(), out.data() + out.size()};
}

sequences_runner::part sequences_runner::part_of(uint64_t byte) const {
  const uint64_t block = layout_.block_bytes(), keys = how_.n_blocks * block;
  if (byte < keys || state_elements_ == 0)
    return {static_cast<uint32_t>(byte / block), byte / block * block, block};
  const uint64_t state = state_elements_ * sizeof(float), nth = (byte - keys) / state;
  return {how_.n_blocks + static_cast<uint32_t>(nth), keys + nth * state, state};
}

std::string sequences_runner::difference(uint64_t byte, const std::vector<uint8_t>& wanted,
                                         const std::vector<uint8_t>& found) const {
  const part of = part_of(byte);
  const bool is_block = of.id < how_.n_blocks;
  return "byte " + std::to_string(byte - of.first) + " of " +
         (is_block ? "block " + std::to_string(of.id)
                   : "state " + std::to_string(of.id - how_.n_blocks)) +
         " is " + std::to_string(found[byte]) + ", expected " + std::to_string(wanted[byte]);
}

namespace {

// The first byte that differs; the size of both if none does.
uint64_t first_difference(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  return static_cast<uint64_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::string sequences_runner::wrong_contents(const pool_contents& expected,
                                             const pool_owners* owners) {
  const std::vector<uint8_t> wanted = expected.bytes(), found = contents();
  const uint64_t at = first_difference(wanted, found);
  if (at == wanted.size()) return "";
  const std::string text = difference(at, wanted, found);
  if (owners == nullptr) return text;
  const part of = part_of(at);
  const char* owner =
      of.id < how_.n_blocks ? owners->blocks : owners->of_element((at - of.first) / sizeof(float));
  return owner + (": " + text);
}

// Export of one block alone separates export from import; import of it alone shows whether an
// import of others changes it.
std::string sequences_runner::wrong_restore(const std::vector<uint8_t>& bytes) {
  restore(bytes);
  const std::vector<uint8_t> found = contents();
  const uint64_t at = first_difference(bytes, found);
  if (at == bytes.size()) return "";
  const part of = part_of(at);
  const std::span<const uint8_t> wanted = std::span(bytes).subspan(of.first, of.bytes);
  const auto holds_it = [&] {
    std::vector<uint8_t> alone(of.bytes);
    const outcome o = export_blocks({&of.id, 1}, alone);
    if (o.status != BITNET_OK) throw call_failed(o);
    return std::ranges::equal(alone, wanted);
  };
  const char* blamed = "kv_export, of all blocks and states";
  if (!holds_it()) {
    const outcome o = import_blocks({&of.id, 1}, wanted);
    if (o.status != BITNET_OK) throw call_failed(o);
    blamed = holds_it() ? "kv_import, of other blocks or states" : "kv_import or kv_export";
  }
  return std::string(blamed) + ": " + difference(at, bytes, found);
}

namespace {

// The bytes of block or state `id`, as export and import have them.
std::span<const uint8_t> bytes_of(const pool_contents& pool, uint32_t id) {
  if (id < pool.blocks.size()) return pool.blocks[id];
  const std::vector<float>& state = pool.states[id - pool.blocks.size()];
  return {reinterpret_cast<const uint8_t*>(state.data()), state.size() * sizeof(float)};
}
void put(pool_contents& to, const pool_contents& from, uint32_t into, uint32_t id) {
  const std::size_t blocks = to.blocks.size();
  if (id < blocks)
    to.blocks[into] = from.blocks[id];
  else
    to.states[into - blocks] = from.states[id - blocks];
}
std::vector<uint8_t> listed(const pool_contents& pool, const std::vector<uint32_t>& list) {
  std::vector<uint8_t> out;
  for (const uint32_t id : list) {
    const std::span<const uint8_t> bytes = bytes_of(pool, id);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

}  // namespace

std::string sequences_runner::wrong_export(const pool_contents& held,
                                           const std::vector<uint32_t>& list) {
  constexpr uint64_t before = 64;
  constexpr uint8_t guard = 0xa5;
  const std::vector<uint8_t> expected = listed(held, list);
  guarded_memory<uint8_t> out(before + expected.size());
  std::fill_n(out.data(), before, guard);
  const outcome o = export_blocks(list, {out.data() + before, expected.size()});
  if (o.status != BITNET_OK) return "status " + std::to_string(o.status) + ": " + o.message;
  if (std::any_of(out.data(), out.data() + before, [](uint8_t b) { return b != guard; }))
    return "bytes before the caller's memory were written";
  if (!std::equal(expected.begin(), expected.end(), out.data() + before))
    return "other bytes than the pool holds";
  return "";
}

std::string sequences_runner::wrong_import(const pool_contents& from,
                                           const std::vector<uint32_t>& list, pool_contents& held) {
  const std::vector<uint8_t> bytes = listed(from, list);
  guarded_memory<uint8_t> in{std::span<const uint8_t>(bytes)};
  const outcome o = import_blocks(list, {in.data(), in.size()});
  if (o.status != BITNET_OK) return "status " + std::to_string(o.status) + ": " + o.message;
  if (!std::equal(bytes.begin(), bytes.end(), in.data())) return "the caller's bytes were changed";
  for (const uint32_t id : list) put(held, from, id, id);
  return "";
}

// The first half of the list to the second, blocks to blocks and states to states.
std::string sequences_runner::wrong_copy(const std::vector<uint32_t>& list, pool_contents& held,
                                         std::mt19937& random) {
  std::vector<uint32_t> ids[2], from, to;
  for (const uint32_t id : list) ids[id < how_.n_blocks ? 0 : 1].push_back(id);
  for (const std::vector<uint32_t>& some : ids)
    for (std::size_t i = 0; i < some.size() / 2; ++i) {
      from.push_back(some[i]);
      to.push_back(some[some.size() / 2 + i]);
    }
  // One of them to two places.
  const bool alike =
      !from.empty() && (from.front() < how_.n_blocks) == (from.back() < how_.n_blocks);
  if (alike && random() % 2 == 0) from.back() = from.front();
  const outcome o = from.empty() ? outcome{} : copy_blocks(from, to);
  if (o.status != BITNET_OK) return "status " + std::to_string(o.status) + ": " + o.message;
  const pool_contents old = held;
  for (std::size_t i = 0; i < from.size(); ++i) put(held, old, to[i], from[i]);
  return "";
}

runner_options bounds_of(const traffic_options& t) {
  runner_options o;
  o.max_tokens = t.max_tokens;
  o.max_sequences = t.max_sequences;
  o.max_outputs = t.max_outputs;
  o.max_blocks = t.max_blocks;
  o.block_tokens = t.block_tokens;
  o.n_blocks = t.n_blocks;
  o.guarded = true;
  return o;
}

namespace {

constexpr float not_written = 12345.0f;

std::string first_of(std::initializer_list<std::string> complaints) {
  for (const std::string& c : complaints)
    if (!c.empty()) return c;
  return "";
}

// What is wrong with what a step left in the memory of its ports; "" if nothing. Rows of the last
// result are logits, too.
template <class Graph>
std::string wrong_results(const sequences_runner& r, const planned_step& plan,
                          const std::vector<expected_rows>& expected,
                          const std::vector<std::span<float>>& found, std::span<float> logits) {
  const uint64_t width = Graph::ports[4].width;
  const uint64_t wanted = plan.output_rows.size() * width;
  const bool beyond =
      std::ranges::any_of(logits.subspan(wanted), [](float y) { return y != not_written; });
  return first_of(
      {expected[0].wrong(Graph::ports[3].result, found[0]),
       expected[1].wrong(Graph::ports[4].result, found[1]),
       expected[1].of(plan.output_rows, width).wrong("GATHER_ROWS: element", logits.first(wanted)),
       beyond ? "GATHER_ROWS: a row that was not requested was written" : "",
       r.guards_are_intact() ? "" : "memory beside that of a port was written"});
}

std::string words_of(uint32_t step, const planned_step& plan) {
  return "step " + std::to_string(step) + " of " + std::to_string(plan.slices.size()) +
         " sequences and " + std::to_string(plan.n_tokens()) + " tokens" +
         (plan.window == 0 ? "" : ", window " + std::to_string(plan.window));
}

}  // namespace

template <class Graph>
void sequences::run_graph(const Graph& g, const traffic_options& t, const runner_options& o,
                          uint32_t steps) {
  need(g.graph);
  if (IsSkipped()) return;
  sequences_runner r(device_.table(), g.graph, o, t.seed);
  std::mt19937 random(t.seed);
  pool_contents pool = r.room();
  pool.fill(random);
  ASSERT_EQ(r.wrong_restore(pool.bytes()), "");
  traffic scheduler(t);
  std::vector<std::span<float>> in, out;
  for (std::size_t i = 0; i < r.more.size(); ++i)
    (Graph::ports[i].result == nullptr ? in : out)
        .emplace_back(static_cast<float*>(r.more[i]), t.max_tokens * Graph::ports[i].width);
  const std::span logits(r.logits, t.max_outputs * r.vocabulary());
  for (uint32_t n = 0; n < steps; ++n) {
    const planned_step plan = scheduler.next();
    SCOPED_TRACE(words_of(n, plan));
    const outcome moved = r.move(plan);
    ASSERT_EQ(moved.status, BITNET_OK) << moved.message;
    pool.move(plan);
    if (!plan.blocks.empty() || !plan.states.empty()) {
      ASSERT_EQ(r.wrong_contents(pool), "") << "kv_copy";
    }
    if (plan.n_tokens() == 0) continue;
    g.inputs(plan.n_tokens(), random, in);
    std::vector<std::vector<float>> given;
    for (const std::span<float>& rows : in) given.emplace_back(rows.begin(), rows.end());
    std::ranges::fill(logits, not_written);
    const outcome o_step = r.take(plan);
    ASSERT_EQ(o_step.status, BITNET_OK) << o_step.message;
    for (std::size_t i = 0; i < in.size(); ++i)
      ASSERT_TRUE(std::ranges::equal(in[i], given[i])) << "queue_submit: a value that comes in";
    const std::vector<expected_rows> expected = g.step(plan, {given[0], given[1], given[2]}, pool);
    ASSERT_EQ(r.wrong_contents(pool, &Graph::owners), "");
    ASSERT_EQ(wrong_results<Graph>(r, plan, expected, out, logits), "");
  }
}

void sequences::run_keys(const traffic_options& t, uint32_t dtype_k, uint32_t dtype_v,
                         uint32_t steps, int32_t layer_window) {
  runner_options o = bounds_of(t);
  o.opened = device_.device;
  o.dtype_k = dtype_k;
  o.dtype_v = dtype_v;
  run_graph(keys_graph(layer_window), t, o, steps);
}

void sequences::run_states(const traffic_options& t, uint32_t steps) {
  runner_options o = bounds_of(t);
  o.opened = device_.device;
  run_graph(states_graph(), t, o, steps);
}

}  // namespace bitnet::conformance
