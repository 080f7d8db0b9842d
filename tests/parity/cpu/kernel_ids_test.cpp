// Kernel ids name what ran: each form runs programs whose ops and shapes reach every path of the
// backend, with every function of the form replaced by one that notes its name and goes on to it.
// What was counted is compared with what was noted.
//
// The names that are noted come from the list below, not from the table that ids are made of.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "bitnet/sdk/interpreter.hpp"
#include "device.hpp"
#include "emulated_form.hpp"
#include "host.hpp"
#include "model/recurrent_model.hpp"
#include "model/runner.hpp"
#include "ops/top_head.hpp"
#include "ops/tuning.hpp"
#include "primitives.hpp"
#include "tiny_model.hpp"

namespace bitnet::parity {
namespace {

using conformance::runner;
using conformance::runner_options;

struct function {
  std::string name, isa;
  auto operator<=>(const function&) const = default;
};
using functions = std::map<void*, function>;

template <class F>
void* address(F f) {
  return reinterpret_cast<void*>(f);
}

#define BITNET_FUNCTION(f, isa) \
  {                             \
    address(cpu::f##_##isa), {  \
      #f, #isa                  \
    }                           \
  }
#define BITNET_BYTE_FUNCTIONS(isa)                                            \
  BITNET_FUNCTION(linear_ternary, isa), BITNET_FUNCTION(linear_grouped, isa), \
      BITNET_FUNCTION(linear_i8, isa), BITNET_FUNCTION(linear_i4, isa)
#define BITNET_PANEL_FUNCTIONS(isa) BITNET_FUNCTION(linear_panel, isa), BITNET_BYTE_FUNCTIONS(isa)
#define BITNET_TABLE_FUNCTIONS(isa) \
  BITNET_FUNCTION(linear_panel, isa), BITNET_FUNCTION(linear_tables, isa)
#define BITNET_SCORE_FUNCTIONS(isa) \
  BITNET_FUNCTION(turn_keys, isa), BITNET_FUNCTION(attn_scores, isa)
#define BITNET_ALL_FUNCTIONS(isa)                                                                  \
  BITNET_BYTE_FUNCTIONS(isa), BITNET_FUNCTION(linear_dense, isa),                                  \
      BITNET_FUNCTION(weighted_sum, isa), BITNET_FUNCTION(rms_norm, isa),                          \
      BITNET_FUNCTION(act_quant, isa), BITNET_FUNCTION(act_quant_groups, isa),                     \
      BITNET_FUNCTION(add, isa), BITNET_FUNCTION(mul, isa), BITNET_FUNCTION(relu2, isa),           \
      BITNET_FUNCTION(silu, isa), BITNET_FUNCTION(softmax, isa), BITNET_FUNCTION(rotate, isa),     \
      BITNET_FUNCTION(halves, isa), BITNET_FUNCTION(widen, isa),                                   \
      BITNET_FUNCTION(quant_error, isa), BITNET_FUNCTION(q8_0, isa), BITNET_FUNCTION(q4_0, isa),   \
      BITNET_FUNCTION(from_q4_0, isa), BITNET_FUNCTION(from_q4_k, isa),                            \
      BITNET_FUNCTION(from_q6_k, isa), BITNET_FUNCTION(hadamard, isa), BITNET_FUNCTION(gelu, isa), \
      BITNET_FUNCTION(scale, isa), BITNET_FUNCTION(sigmoid, isa), BITNET_FUNCTION(delta_rule, isa)

const functions& known() {
  static const functions all = {
#if defined(__x86_64__)
      BITNET_FUNCTION(linear_panel, amx),
      {address(cpu::linear_panel_emulated), {"linear_panel", "amx"}},
      BITNET_FUNCTION(linear_fives, avx512vbmi),
      BITNET_TABLE_FUNCTIONS(avx512vnni),
      BITNET_FUNCTION(linear_i6, avx512vnni),
      BITNET_BYTE_FUNCTIONS(avx512vnni),
      BITNET_TABLE_FUNCTIONS(avx512),
      BITNET_FUNCTION(linear_i6, avx512),
      BITNET_SCORE_FUNCTIONS(avx512),
      BITNET_ALL_FUNCTIONS(avx512),
      BITNET_TABLE_FUNCTIONS(avxvnni),
      BITNET_BYTE_FUNCTIONS(avxvnni),
      BITNET_TABLE_FUNCTIONS(avx2),
      BITNET_SCORE_FUNCTIONS(avx2),
      BITNET_ALL_FUNCTIONS(avx2),
      BITNET_FUNCTION(linear_panel, sse41),
      BITNET_SCORE_FUNCTIONS(sse41),
      BITNET_ALL_FUNCTIONS(sse41),
#elif defined(__aarch64__)
      BITNET_FUNCTION(linear_ternary, neon_i8mm),
      BITNET_PANEL_FUNCTIONS(neon_dotprod),
      BITNET_FUNCTION(linear_panel, neon),
      BITNET_SCORE_FUNCTIONS(neon),
      BITNET_ALL_FUNCTIONS(neon),
#endif
      BITNET_FUNCTION(linear_i6, scalar),
      BITNET_ALL_FUNCTIONS(scalar)};
  return all;
}

const cpu::isa_form* original = nullptr;  // of the test that runs
cpu::isa_form noting;
bool fast = false;  // the head of 4 bits
std::set<function> ran;

void note(void* f) {
  const auto at = known().find(f);
  ran.insert(at == known().end() ? function{"a function that is not listed", "?"} : at->second);
}

template <class Tile, cpu::tile_kernel<Tile> cpu::isa_form::* Kernel>
void note_tile(const Tile& tile) {
  note(address((original->*Kernel).run));
  (original->*Kernel)(tile);
}

void note_fives(const cpu::ternary_tile& tile) {
  note(address(original->fives.run));
  original->fives.run(tile);
}

template <class Tile, void (*cpu::score_kernels::*Kernel)(const Tile&)>
void note_scores(const Tile& tile) {
  note(address(original->attention.*Kernel));
  (original->attention.*Kernel)(tile);
}

template <auto Row>
struct row_note;
template <class R, class... A, R (*cpu::row_kernels::*Row)(A...)>
struct row_note<Row> {
  static R run(A... a) {
    note(address(original->rows.*Row));
    return (original->rows.*Row)(a...);
  }
};

template <auto... Row>
void note_rows(cpu::row_kernels& rows) {
  ((rows.*Row = row_note<Row>::run), ...);
}

void replace_functions(const cpu::isa_form& form) {
  using cpu::isa_form;
  using cpu::row_kernels;
  original = &form;
  noting = form;
  noting.ternary.run = note_tile<cpu::ternary_tile, &isa_form::ternary>;
  noting.grouped.run = note_tile<cpu::grouped_tile, &isa_form::grouped>;
  if (form.panel.run != nullptr) noting.panel.run = note_tile<cpu::panel_tile, &isa_form::panel>;
  if (form.tables.run != nullptr) noting.tables.run = note_tile<cpu::panel_tile, &isa_form::tables>;
  if (cpu::has_fives(form)) noting.fives.run = note_fives;
  noting.dense.run = note_tile<cpu::dense_tile, &isa_form::dense>;
  noting.weighted_sum.run = note_tile<cpu::weighted_rows, &isa_form::weighted_sum>;
  if (form.attention.scores != nullptr) {
    using cpu::score_kernels;
    noting.attention.turn_keys = note_scores<cpu::keys_tile, &score_kernels::turn_keys>;
    noting.attention.scores = note_scores<cpu::scores_tile, &score_kernels::scores>;
  }
  noting.linear_i8.run = note_tile<cpu::i8_tile, &isa_form::linear_i8>;
  if (form.linear_i6.run != nullptr)
    noting.linear_i6.run = note_tile<cpu::i6_tile, &isa_form::linear_i6>;
  noting.linear_i4.run = note_tile<cpu::i8_tile, &isa_form::linear_i4>;
  using k = row_kernels;
  note_rows<&k::rms_norm, &k::act_quant, &k::act_quant_groups, &k::add, &k::mul, &k::relu2,
            &k::silu, &k::softmax, &k::rotate, &k::halves, &k::widen, &k::quant_error, &k::q8_0,
            &k::q4_0, &k::from_q4_0, &k::from_q4_k, &k::from_q6_k, &k::hadamard, &k::gelu,
            &k::scale, &k::sigmoid, &k::delta_rule>(noting.rows);
}

bool copies = false;  // of rows, as soon as may be

void describe(const bitnet_open_request&, sdk::definition& d) {
  d.name = "noting";
  d.author_data = &noting;
  if (copies) d.copies_rows = [](uint64_t) { return true; };
  if (copies) d.copies_code = cpu::fives_code(noting);
  d.device = cpu::describe_device(noting, noting);
  cpu::add_primitives(noting, d);
  cpu::add_composites(noting, fast ? cpu::fast_bits(noting) : cpu::exact_bits(noting), d);
}

// The backend of `noting`, in this process.
class backend {
 public:
  backend() {
    bitnet_open_request request{};
    request.struct_size = sizeof request;
    request.purpose = BITNET_PURPOSE_LOAD;
    request.abi_minor_min = request.abi_minor_max = BITNET_ABI_MINOR;
    table.struct_size = sizeof table;
    must([&](bitnet_error* e) {
      return sdk::open_interpreter(host_.table(), &request, &table, e, describe);
    });
  }
  ~backend() { table.close(table.self); }
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;
  bitnet_backend_v0 table{};

 private:
  tiny_host host_{1};
};

// What has to run where an id begins like this; nothing: the id has to end with "scalar". A fused
// op is called by what most of its time goes into.
const std::vector<std::pair<std::string, std::vector<std::string>>>& made_of() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> all = {
      {"linear_ternary.", {"linear_ternary"}},
      {"linear_ternary_grouped.", {"linear_grouped"}},
      {"linear_ternary_tiles.", {"linear_grouped"}},
      {"linear_ternary_ref.", {}},
      {"linear_grouped.", {"linear_grouped"}},
      {"linear_grouped_tiles.", {"linear_grouped"}},
      {"linear_grouped_ref.", {}},
      {"rms_norm_heads.", {"rms_norm"}},
      {"act_quant_i8_grouped.", {"act_quant_groups"}},
      {"hadamard.", {"hadamard"}},
      {"linear_dense.q4_0.", {"linear_dense", "from_q4_0"}},
      {"linear_dense.q4_k.", {"linear_dense", "from_q4_k"}},
      {"linear_dense.q6_k.", {"linear_dense", "from_q6_k"}},
      {"linear_dense.", {"linear_dense"}},
      {"embed_gather.", {}},
      {"embed_gather_tiles.", {}},
      {"gather_rows.", {}},
      {"rms_norm.", {"rms_norm"}},
      {"act_quant_i8.", {"act_quant"}},
      {"rope.", {"rotate"}},
      {"kv_write.", {"halves"}},
      {"attn_paged.", {"linear_dense", "weighted_sum", "softmax"}},
      {"add.", {"add"}},
      {"mul.", {"mul"}},
      {"relu2.", {"relu2"}},
      {"silu.", {"silu"}},
      {"gelu.", {"gelu"}},
      {"scale.", {"scale"}},
      {"sigmoid.", {"sigmoid"}},
      {"delta_rule.", {"delta_rule"}},
      {"delta_gates.", {}},
      {"short_conv.", {}},
      {"columns.", {}},
      {"lm_head.", {"linear_dense"}},
      {"lm_head_top.i8+", {"linear_i8"}},
      {"lm_head_top.i6+", {"linear_i6"}},
      {"lm_head_top.i4+", {"linear_i4"}},
      {"qkv_rope_kv.", {"linear_ternary"}},
      {"attn_out.", {"linear_ternary"}},
      {"ffn_relu2_gated.", {"linear_ternary"}},
      {"ffn_silu_gated.", {"linear_ternary"}},
      {"qkv_rope_kv_tiles.", {"linear_grouped"}},
      {"attn_out_tiles.", {"linear_grouped"}},
      {"ffn_relu2_gated_tiles.", {"linear_grouped"}},
      {"ffn_silu_gated_tiles.", {"linear_grouped"}},
  };
  return all;
}

// Products of several tokens, by the same instruction set as those of one. Where it is another, ids
// say so.
bool panels_serve(const std::string& beginning) {
  constexpr const char* products[] = {"linear_ternary.",
                                      "linear_ternary_tiles.",
                                      "linear_grouped_tiles.",
                                      "qkv_rope_kv",
                                      "attn_out",
                                      "ffn_"};
  return std::ranges::any_of(products, [&](const char* p) { return beginning.starts_with(p); });
}

void compare(const std::string& id) {
  const auto row =
      std::ranges::find_if(made_of(), [&](const auto& r) { return id.starts_with(r.first); });
  ASSERT_NE(row, made_of().end()) << id << " is not listed here";
  std::string ending = id.substr(id.rfind('.') + 1);
  std::ranges::replace(ending, '-', '_');
  const bool both = ending.contains('+');
  const std::string panels = both ? ending.substr(ending.find('+') + 1) : ending;
  ending = ending.substr(0, ending.find('+'));
  if (row->second.empty()) {
    EXPECT_EQ(ending, "scalar") << id;
  }
  for (const std::string& name : row->second)
    EXPECT_TRUE(ran.contains({name, ending}))
        << id << " was counted, but " << name << " of " << ending << " did not run";
  if (both || (original->panel.run != nullptr && panels_serve(row->first) &&
               ending == original->panel.isa)) {
    EXPECT_TRUE(ran.contains({"linear_panel", panels}) || ran.contains({"linear_tables", panels}))
        << id << " ran neither panels nor tables for many tokens";
  }
}

struct run_options {
  uint32_t top = 0, many = 64;  // tokens that take panels, whatever is faster for fewer
  runner_options of{};
};

// Runs one token and as many as take panels; returns the ids that were counted.
std::set<std::string> run(const conformance::model& m, const run_options& options = {}) {
  ran.clear();
  const backend b;
  const uint32_t many = options.many;
  runner_options of = options.of;
  of.max_tokens = of.max_outputs = many;
  of.max_blocks = many / of.block_tokens + 2;  // that they and the one before them fit into
  runner r(b.table, m, of);
  for (const uint64_t n : {1u, many}) {
    bitnet_step step = r.prepare(std::vector<conformance::token_in>(n, {1}));
    step.top_logits = options.top;
    const outcome o = r.submit(step);
    EXPECT_EQ(o.status, BITNET_OK) << o.message;
  }
  std::set<std::string> ids;
  for (const bitnet_kernel_stat& s : r.stats()) ids.insert(s.id);
  for (const std::string& id : ids) compare(id);
  if (original->both_named) {
    const std::string ending = std::string("+") + original->panel.isa;
    EXPECT_EQ(ran.contains({"linear_panel", original->panel.isa}),
              std::ranges::any_of(ids, [&](const auto& id) { return id.ends_with(ending); }))
        << "panels are counted where they run, and nowhere else";
  }
  for (const function& f : ran)
    EXPECT_EQ(f.isa == "scalar", original == &cpu::scalar_form) << f.name;
  return ids;
}

bool any_begins(const std::set<std::string>& ids, const std::string& with) {
  return std::ranges::any_of(ids, [&](const std::string& id) { return id.starts_with(with); });
}

// One product alone.
conformance::model product(uint32_t format, int64_t k, uint64_t scale_group, int32_t given = 0,
                           int64_t rows = 21) {
  conformance::model m;
  std::mt19937 random(7);
  constexpr int64_t tokens = BITNET_DIM_TOKENS;
  const bool ternary = format == BITNET_FORMAT_TERNARY2;
  const uint32_t x = m.value(BITNET_DTYPE_F32, tokens, k);
  m.op(BITNET_OP_EMBED_GATHER, {}, {x}, {m.dense(BITNET_FORMAT_F32, k, 2, random)});
  const uint32_t y = m.value(BITNET_DTYPE_F32, tokens, rows);
  if (given != 0) {  // groups of activations, behind norms of heads, a transform and others
    const uint32_t n = m.value(BITNET_DTYPE_F32, tokens, k);
    m.op(BITNET_OP_RMS_NORM_HEADS, {x}, {n}, {m.dense(BITNET_FORMAT_F32, k / 2, 1, random)})
        .ints[0] = 2;
    const uint32_t h = m.value(BITNET_DTYPE_F32, tokens, k);
    m.op(BITNET_OP_HADAMARD, {n}, {h}).ints[0] = 128;
    const uint32_t scaled = m.value(BITNET_DTYPE_F32, tokens, k);
    m.op(BITNET_OP_SCALE, {h}, {scaled}).floats[0] = 0.3f;
    const uint32_t g = m.value(BITNET_DTYPE_F32, tokens, k);
    m.op(BITNET_OP_GELU, {scaled}, {g});
    const uint32_t q = m.value(BITNET_DTYPE_I8, tokens, k);
    const uint32_t d = m.value(BITNET_DTYPE_F32, tokens, k / given);
    m.op(BITNET_OP_ACT_QUANT_I8_GROUPED, {g}, {q, d}).ints[0] = given;
    m.op(BITNET_OP_LINEAR_TERNARY_GROUPED, {q, d}, {y}, {m.ternary(k, rows, scale_group, random)});
  } else if (ternary) {
    const uint32_t q = m.value(BITNET_DTYPE_I8, tokens, k);
    const uint32_t s = m.value(BITNET_DTYPE_F32, tokens, 1);
    m.op(BITNET_OP_ACT_QUANT_I8, {x}, {q, s});
    m.op(BITNET_OP_LINEAR_TERNARY, {q, s}, {y}, {m.ternary(k, rows, scale_group, random)});
  } else {
    m.op(BITNET_OP_LINEAR_DENSE, {x}, {y}, {m.dense(format, k, rows, random)});
  }
  m.logits = m.value(BITNET_DTYPE_F32, BITNET_DIM_OUTPUTS, rows);
  m.op(BITNET_OP_GATHER_ROWS, {y}, {m.logits});
  return m;
}

class kernel_ids : public each_form {
 protected:
  void SetUp() override { replace_functions(*GetParam()); }
};
class ids_with_tables : public kernel_ids {};
class ids_with_fives : public kernel_ids {};
class ids_of_two_sets : public kernel_ids {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ids_with_tables);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ids_with_fives);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ids_of_two_sets);

TEST_P(kernel_ids, name_the_format_of_ternary_products) {
  const struct {
    int64_t k;
    uint64_t group;
    const char* id;
    const char* why;
  } rows[] = {
      {256, 0, "linear_ternary.ternary2.", "one scale"},
      {100, 0, "linear_ternary.ternary2.", "one scale, a part of a packed group"},
      {32768, 0, "linear_ternary.ternary2.", "one scale, long rows"},
      {768, 768, "linear_ternary.ternary2.", "a scale for each row"},
      {96, 32, "linear_ternary_tiles.ternary2.", "BitNet32, Split32"},
      {320, 64, "linear_ternary_tiles.ternary2.", "Q2_0"},
      {192, 96, "linear_ternary_grouped.ternary2.", "groups across packed groups"},
      {512, 128, "linear_ternary_tiles.ternary2.", "Q1_0"},
      {512, 256, "linear_ternary_tiles.ternary2.", "TQ1_0, TQ2_0"},
      {17408, 64, "linear_ternary_tiles.ternary2.", "more groups than a call has"},
      {64, 16, "linear_ternary_ref.ternary2.scalar", "no file has them"},
      {60, 20, "linear_ternary_ref.ternary2.scalar", "nor these"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    EXPECT_TRUE(any_begins(run(product(BITNET_FORMAT_TERNARY2, row.k, row.group)), row.id));
  }
}

TEST_P(ids_with_tables, of_products_by_panels_and_tables_in_turn) {
  std::set<function> both;
  for (int i = 0; i < 100; ++i) {  // more than the pieces after which the slower one is tried
    run(product(BITNET_FORMAT_TERNARY2, 128, 0, 0, 256));
    both.merge(ran);
    if (both.contains({"linear_panel", original->panel.isa}) &&
        both.contains({"linear_tables", original->tables.isa}))
      return;
  }
  FAIL() << "only one of the two ran";
}

// Of copies with five weights in a byte less is read and counted; the id stays, as the instruction
// set is the form's, but for one that looks bytes up.
TEST_P(ids_with_fives, of_products_from_copies_in_fewer_bytes) {
  ASSERT_TRUE(cpu::adopt_tuning("ahead=3072 tile_rows=64 fives=1"));
  copies = true;
  const auto m = product(BITNET_FORMAT_TERNARY2, 640, 0);
  ran.clear();
  {
    const backend b;
    runner_options options;
    options.max_tokens = options.max_outputs = 32;
    options.max_blocks = 10;
    runner r(b.table, m, options);
    const auto step = [&](uint64_t tokens) {
      uint64_t before = 0, after = 0;
      for (const auto& s : r.stats()) before += s.bytes;
      r.run(std::vector<conformance::token_in>(tokens, {1}));
      for (const auto& s : r.stats()) after += s.bytes;
      return after - before;
    };
    const uint64_t whole = step(1);
    for (uint64_t i = 2; i < sdk::row_copy::patience + sdk::row_copy::parts; ++i)
      EXPECT_EQ(step(1), whole);
    EXPECT_FALSE(ran.contains({"linear_fives", "avx512vbmi"}));
    EXPECT_EQ(step(1), whole - 21 * (160 - 128));
    EXPECT_TRUE(ran.contains({"linear_fives", "avx512vbmi"}));
    for (const uint64_t many : {2u, 32u})
      EXPECT_EQ(step(many), whole + (many - 1) * 640 * sizeof(float)) << "many read the rows";
    for (const auto& s : r.stats()) compare(s.id);
  }
  copies = false;
  cpu::adopt_tuning("ahead=3072 tile_rows=64");
}

// A form of one instruction set has the same id for panels and for other products.
TEST_P(ids_of_two_sets, of_products_that_no_panel_takes) {
  EXPECT_TRUE(
      run(product(BITNET_FORMAT_TERNARY2, 202, 0)).contains("linear_ternary.ternary2.avx512vnni"));
  EXPECT_TRUE(run(product(BITNET_FORMAT_TERNARY2, 8192, 4096))
                  .contains("linear_ternary_tiles.ternary2.avx512vnni"));
}

TEST_P(kernel_ids, of_groups_of_activations) {
  for (const uint64_t group : {0u, 64u, 128u, 1024u})
    for (const int32_t given : {32, 128}) {
      SCOPED_TRACE(group);
      const auto ids = run(product(BITNET_FORMAT_TERNARY2, 1024, group, given));
      const bool tiles = group == 64 || group == 128;  // else there is one scale for a row
      for (const char* id :
           {tiles ? "linear_grouped_tiles." : "linear_grouped.", "act_quant_i8_grouped.",
            "rms_norm_heads.", "hadamard.", "scale.", "gelu."})
        EXPECT_TRUE(any_begins(ids, id)) << id;
    }
  // Groups across packed groups, in rows that need no cut and in others.
  EXPECT_TRUE(any_begins(run(product(BITNET_FORMAT_TERNARY2, 768, 192, 64)), "linear_grouped."));
  EXPECT_TRUE(
      any_begins(run(product(BITNET_FORMAT_TERNARY2, 12288, 192, 64)), "linear_grouped_ref."));
}

TEST_P(kernel_ids, name_the_format_of_dense_products) {
  for (const sdk::format& f : sdk::formats) {
    if (f.id == BITNET_FORMAT_TERNARY2) continue;
    for (const int64_t k : {256, 4096, 4352, 16384, 16640, 20480}) {
      if (emulated() && k != 256 && k != 16640) continue;  // one of each form
      SCOPED_TRACE(std::string(f.name) + " " + std::to_string(k));
      EXPECT_TRUE(any_begins(run(product(f.id, k, 0)), std::string("linear_dense.") + f.name));
    }
  }
}

TEST_P(kernel_ids, every_op_alone_reports_its_kernel) {
  for (const bool relu2 : {true, false})
    for (const uint64_t group : {0u, 64u}) {
      tiny_shape shape;
      shape.composites = false;
      shape.relu2 = relu2;
      shape.scale_group = group;
      shape.ff = 256;
      const auto ids = run(tiny_model(shape));
      EXPECT_TRUE(any_begins(ids, relu2 ? "relu2." : "silu."));
      for (const char* op : {"rms_norm.", "rope.", "attn_paged.", "kv_write.", "add.", "mul."})
        EXPECT_TRUE(any_begins(ids, op)) << op;
    }
}

TEST_P(kernel_ids, list_the_ops_of_recurrent_layers) {
  const auto ids = run(conformance::recurrent_model());
  for (const char* op : {"sigmoid.", "delta_rule.", "delta_gates.", "short_conv.", "columns."})
    EXPECT_TRUE(any_begins(ids, op)) << op;
}

TEST_P(kernel_ids, of_fused_ops) {
  for (const bool relu2 : {true, false})
    for (const uint64_t group : {0u, 32u, 128u, 256u, 16u}) {
      SCOPED_TRACE(group);
      tiny_shape shape;
      shape.relu2 = relu2;
      shape.scale_group = group;
      shape.ff = 256;  // groups of 128: some matrices have one for each row, the others two
      const auto ids = run(tiny_model(shape));
      // Groups of 16 have no vector form, and matrices that lie differently are not fused.
      const std::string ffn = relu2 ? "ffn_relu2_gated" : "ffn_silu_gated";
      EXPECT_EQ(any_begins(ids, ffn + "."), group == 0 || group == 256);
      EXPECT_EQ(any_begins(ids, ffn + "_tiles."), group == 32);
      EXPECT_EQ(any_begins(ids, "qkv_rope_kv_tiles."), group == 32);
      EXPECT_EQ(any_begins(ids, "linear_ternary_ref."), group == 16);
    }
}

TEST_P(kernel_ids, of_both_heads_that_look_for_the_largest) {
  tiny_shape shape;
  shape.vocab = 2048;
  const bool six = GetParam()->linear_i6.run != nullptr;
  run_options options;
  options.top = 1;
  const auto ids = run(tiny_model(shape), options);
  EXPECT_TRUE(any_begins(ids, six ? "lm_head_top.i6+f16." : "lm_head_top.i8+f16."));
  fast = true;
  EXPECT_TRUE(any_begins(run(tiny_model(shape), options), "lm_head_top.i4+f16."));
  fast = false;
  options.many = 70;
  const auto of_many = run(tiny_model(shape), options);
  EXPECT_TRUE(any_begins(of_many, six ? "lm_head_top.i6+f16." : "lm_head_top.i8+f16."));
  EXPECT_FALSE(any_begins(of_many, "lm_head.")) << "70 output rows take the two-stage head as well";
}

INSTANTIATE_TEST_SUITE_P(variants, kernel_ids, testing::ValuesIn(real_and_emulated_forms()),
                         form_name);
INSTANTIATE_TEST_SUITE_P(variants, ids_with_tables,
                         testing::ValuesIn(those_with(has_tables, real_and_emulated_forms())),
                         form_name);
INSTANTIATE_TEST_SUITE_P(variants, ids_with_fives,
                         testing::ValuesIn(those_with(cpu::has_fives, real_and_emulated_forms())),
                         form_name);
INSTANTIATE_TEST_SUITE_P(variants, ids_of_two_sets,
                         testing::ValuesIn(those_with(has_kernels_of_two_sets,
                                                      real_and_emulated_forms())),
                         form_name);

}  // namespace
}  // namespace bitnet::parity
