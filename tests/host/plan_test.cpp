// Plans: made of reports of the library, written and read as YAML, what they ask for, and where a
// program does not keep to one.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "plan/comparing.hpp"
#include "plan/file.hpp"
#include "plan/forms.hpp"
#include "plan/making.hpp"
#include "plan/pins.hpp"

namespace {

using nlohmann::json;
namespace plans = bitnet::host::plans;
using bitnet::host::exit_code::not_kept;
using bitnet::host::exit_code::usage;

// ---- making ------------------------------------------------------------------------------------

// As a reader has it: numbers that are not below 0 are unsigned.
json as_read(const json& of) {
  return json::parse(of.dump());
}

// Two layers, of which each is a composite of two ops, behind an embedding.
json program() {
  const auto layer = [](int n) {
    return json::array(
        {{{"op", "pair"},
          {"body", 2},
          {"layer", n},
          {"level", "fused"},
          {"formats", {"f32", "ternary2"}},
          {"weight_bytes", 100}},
         {{"op", "norm"}, {"layer", n}, {"level", "optimised"}, {"formats", {"f32"}}},
         {{"op", "linear"},
          {"layer", n},
          {"level", "reference"},
          {"formats", {"ternary2"}},
          {"weight_bytes", 90}}});
  };
  json ops = json::array(
      {{{"op", "gather"}, {"level", "reference"}, {"formats", {"f16"}}, {"weight_bytes", 7}}});
  for (int n = 0; n < 2; ++n)
    for (const json& one : layer(n)) ops.push_back(one);
  const json out = {{"parts",
                     {{{"device", "cpu:0"},
                       {"backend", "cpu"},
                       {"embedding", true},
                       {"head", true},
                       {"layers", {{"first", 0}, {"count", 2}}},
                       {"ops", ops}}}}};
  return as_read(out);
}

json kernel(const char* id, const char* op, const char* format = nullptr) {
  json out = {{"id", id}, {"op", op}, {"device", "cpu:0"}, {"calls", 1}};
  if (format != nullptr) out["format"] = format;
  return as_read(out);
}

TEST(PlanMaking, LayersOfOneKindAreARow) {
  const json ran = {kernel("gather.f16.scalar", "gather", "f16"),
                    kernel("gather.f32.scalar", "gather", "f32"),
                    kernel("pair.ternary2.avx2", "pair", "ternary2")};
  const auto parts = plans::parts_of(program(), ran, ran);
  ASSERT_EQ(parts.size(), 1U);
  ASSERT_EQ(parts[0].rows.size(), 2U);
  EXPECT_EQ(parts[0].rows[0].token, std::vector<std::string>{"gather.f16.scalar"});
  EXPECT_FALSE(parts[0].rows[0].layers);
  const plans::row& pair = parts[0].rows[1];
  EXPECT_EQ(pair.layers, (plans::layer_range{0, 1}));
  EXPECT_EQ(pair.weight_bytes, 200U);
  EXPECT_EQ(pair.n_ops, 2U);
  EXPECT_EQ(pair.n_covered, 2U);
  EXPECT_EQ(pair.prompt, std::vector<std::string>{"pair.ternary2.avx2"});
}

TEST(PlanMaking, ACompositeWhoseBodyWasCountedIsItsBody) {
  const json ran = {kernel("norm.f32.avx2", "norm"), kernel("linear.ternary2.avx2", "linear")};
  const auto parts = plans::parts_of(program(), ran, ran);
  ASSERT_EQ(parts.at(0).rows.size(), 3U);
  EXPECT_EQ(parts[0].rows[1].op, "norm");
  EXPECT_EQ(parts[0].rows[2].token, std::vector<std::string>{"linear.ternary2.avx2"});
  EXPECT_TRUE(parts[0].rows[0].token.empty());  // nothing was counted: nothing is claimed
}

TEST(PlanMaking, WhatDidNotRunIsNotCounted) {
  json idle = kernel("pair.ternary2.avx2", "pair");
  idle["calls"] = 0;
  json elsewhere = kernel("pair.ternary2.x", "pair");
  elsewhere["device"] = "other:0";
  const auto parts = plans::parts_of(program(), {idle, elsewhere}, json::object());
  EXPECT_TRUE(parts.at(0).rows.at(1).token.empty());
}

TEST(PlanMaking, ReportsOfAnyFormAreSafe) {
  for (const char* text : {"{}", "[]", "null", R"({"parts": [1, {}, {"ops": [{}, 2]}]})",
                           R"({"parts": [{"ops": [{"op": 1, "body": 9999999, "layer": -1}]}]})"})
    (void)plans::parts_of(json::parse(text), json::parse(text), json::array({1, json::object()}));
}

// ---- the file ----------------------------------------------------------------------------------

constexpr const char* whole = R"(bitnet-plan: 1
model: {architecture: a, layers: 4, parameters: 9}
parts:
  - device: cpu:0
    embedding: true
    layers: 0-1
    head: false
    ops:
      - {op: gather, kernel: gather.f16.scalar}
      - {op: pair, layers: 0-1, kernel: [pair.ternary2.avx2, x.y.z]}
  - device: cuda:1
    embedding: false
    layers: 2-3
    head: true
)";

std::string with(const std::string& old, const std::string& fresh) {
  std::string out = whole;
  const std::size_t at = out.find(old);
  if (at == std::string::npos) throw std::runtime_error("no " + old);
  return out.replace(at, old.size(), fresh);
}

TEST(PlanFile, IsReadAndWrittenAsTheSame) {
  const auto read = plans::read_plan(whole, "p");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->parts.at(1).device, "cuda:1");
  EXPECT_EQ(read->parts[0].rows.at(1).token.size(), 2U);
  const std::string written = plans::write_plan(*read);
  const auto again = plans::read_plan(written, "p");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(plans::write_plan(*again), written);
  EXPECT_TRUE(plans::differences(*read, *again).empty());
}

TEST(PlanFile, NamesOfModelsAreReadAgain) {
  const auto read = plans::read_plan(whole, "p");
  ASSERT_TRUE(read) << read.error().message;
  for (const std::string& name : {std::string(1000, 'n'), std::string("\n\x1b[2J\xff"),
                                  std::string(200, '\x01'), std::string("\"\\")}) {
    plans::plan named = *read;
    named.model.name = name;
    const auto again = plans::read_plan(plans::write_plan(named), "p");
    EXPECT_TRUE(again) << name << ": " << again.error().message;
  }
}

struct bad_file {
  std::string text;
  const char* says;
};

TEST(PlanFile, WhatIsWrongIsNamedWithItsLine) {
  const bad_file rows[] = {
      {"", "plan p: expected keys and values for the file"},
      {"- 1\n", "p:1: expected keys and values"},
      {"a: [", "p:"},
      {with("bitnet-plan: 1", "bitnet-plan: 2"), "p:1: expected version 1 of plans, found '2'"},
      {with("bitnet-plan: 1\n", ""), "expected the key bitnet-plan"},
      {with("layers: 4", "layers: x"), "p:2: expected a number from 0 to 1000000 for layers"},
      {with("layers: 4", "layers: 5"), "the parts have 4 layers and the model has 5"},
      {with("layers: 2-3", "layers: 1-2"), "p:11: expected layers from 2 on for cuda:1"},
      {with("layers: 2-3", "layers: 3-2"), "p:13: expected layers as in 3 or 0-29, found '3-2'"},
      {with("layers: 2-3", "layers: 2-99999999999999999999"), "expected layers as in"},
      {with("device: cpu:0", "device: cpu"), "p:4: expected a device as in cpu:0"},
      {with("device: cpu:0", "device: cpu:64"), "p:4: expected a device as in cpu:0"},
      {with("embedding: true", "embedding: yes"), "p:5: expected true or false for embedding"},
      {with("head: true", "head: false"), "the head in the last one"},
      {with("op: pair", "opp: pair"), "p:10: an item of ops has no key 'opp'; expected op, layers"},
      {with("op: pair", "op: pair, op: x"), "p:10: the key op is there twice"},
      {with("layers: 0-1, kernel", "layers: 0-2, kernel"),
       "layers 0-2 are not all of those of cpu:0"},
      {with("kernel: gather.f16.scalar", "kernel: Llama_CPU"), "p:9: Llama_CPU is no kernel"},
      {with("kernel: gather.f16.scalar", "kernel: iq2s_ggml_cuda"),
       "does not read weights of type"},
      {with("kernel: gather.f16.scalar", "level: fast"), "expected fused, optimised or reference"},
      {with("kernel: gather.f16.scalar", "kernel: \"\\x07\""), "p:9: expected a printable text"},
      {with("parts:", "forms: webgpu.library=/x\nparts:"), "p:3: webgpu.library is no setting"},
      {with("parts:", "forms: cpu.isa=mmx\nparts:"), "p:3: expected one of amx|"},
      {with("op: gather", "op: &x gather"), "p:9: expected a value, found an anchor"},
      {with("op: gather", "op: *x"), "p:9: the referenced anchor is not defined"},
      {with("op: gather", "op: !!binary gather"), "p:9: expected a value, found a tag"},
      {whole + std::string("---\na: 1\n"), "expected one document"},
      {"a: " + std::string(5000, '[') + std::string(5000, ']'), "levels of nesting"},
      {std::string(plans::longest_plan + 1, ' '), "expected at most 1048576 bytes"},
  };
  for (const bad_file& row : rows) {
    const auto read = plans::read_plan(row.text, "p");
    ASSERT_FALSE(read) << row.says;
    EXPECT_EQ(read.error().exit_code, usage);
    EXPECT_NE(read.error().message.find(row.says), std::string::npos) << row.says << "\n"
                                                                      << read.error().message;
  }
}

// ---- pins --------------------------------------------------------------------------------------

plans::part part_on(const char* device, uint32_t first, uint32_t n, bool embedding, bool head) {
  plans::part out{.device = device};
  out.backend = out.device.substr(0, out.device.find(':'));
  out.first_layer = first;
  out.n_layers = n;
  out.embedding = embedding;
  out.head = head;
  return out;
}

TEST(PlanPins, ACutIsAskedForAsTheEngineCuts) {
  plans::plan p;
  p.parts = {part_on("cpu:0", 0, 1, true, false), part_on("cuda:0", 1, 2, false, false),
             part_on("cuda:2", 3, 4, false, true)};
  auto pins = plans::pins_of(p);
  ASSERT_TRUE(pins) << pins.error().message;
  EXPECT_EQ(pins->backend, "cuda");
  EXPECT_FALSE(pins->all_layers);
  EXPECT_EQ(pins->n_layers, 6U);
  EXPECT_EQ(pins->shares, (std::vector<float>{2, 0, 4}));

  p.parts = {part_on("vulkan:1", 0, 3, true, true)};
  pins = plans::pins_of(p);
  ASSERT_TRUE(pins);
  EXPECT_TRUE(pins->all_layers);
  EXPECT_EQ(pins->shares, (std::vector<float>{0, 3}));
}

TEST(PlanPins, OtherCutsAreRejected) {
  const std::vector<std::vector<plans::part>> impossible = {
      {part_on("cuda:0", 0, 1, true, false), part_on("vulkan:0", 1, 1, false, true)},
      {part_on("cuda:1", 0, 1, true, false), part_on("cuda:0", 1, 1, false, true)},
      {part_on("cuda:0", 0, 1, true, false), part_on("cpu:0", 1, 1, false, true)},
      {part_on("cpu:0", 0, 1, true, false), part_on("vulkan:0", 1, 1, false, false),
       part_on("cuda:0", 2, 1, false, true)}};
  for (const auto& parts : impossible) {
    plans::plan p;
    p.parts = parts;
    const auto pins = plans::pins_of(p);
    ASSERT_FALSE(pins);
    EXPECT_EQ(pins.error().exit_code, not_kept);
  }
}

struct isa_row {
  std::vector<std::string> ids;
  const char* isa;
};

TEST(PlanPins, TheInstructionSetFollowsFromKernels) {
  const isa_row rows[] = {{{}, ""},
                          {{"x.f16.scalar"}, "scalar"},
                          {{"x.f16.scalar", "y.ternary2.avx2"}, "avx2"},
                          {{"x.f16.avx512", "y.ternary2.avx512vnni"}, "avx512vnni"},
                          {{"y.ternary2.avx512vnni+amx"}, "amx"},
                          {{"y.fives.avx512vbmi"}, "avx512vnni"},
                          {{"y.ternary2.avxvnni"}, "avxvnni"},
                          {{"I2S_QK256_AVX2"}, "avx2"},
                          {{"I2S_QK256_NEON"}, "neon"},
                          {{"I2S_QK256_CUDA"}, ""},
                          {{"nothing"}, ""}};
  for (const isa_row& row : rows) {
    plans::part on = part_on("cpu:0", 0, 1, true, true);
    on.rows.push_back({.op = "x", .token = row.ids});
    EXPECT_EQ(plans::isa_of(on), row.isa);
    on.backend = "other";
    EXPECT_EQ(plans::isa_of(on), "");
  }
}

// ---- comparing ---------------------------------------------------------------------------------

plans::plan running(const char* pair_kernel) {
  plans::plan p;
  p.model = {.architecture = "a", .n_layers = 4, .n_parameters = 9};
  p.parts = {part_on("cpu:0", 0, 4, true, true)};
  p.parts[0].rows = {
      {.op = "gather", .formats = {"f16"}, .level = "reference", .token = {"gather.f16.scalar"}},
      {.op = "pair", .layers = plans::layer_range{0, 3}, .level = "fused", .token = {pair_kernel}}};
  return p;
}

TEST(PlanComparing, APlanIsKeptToWhereItSaysSomething) {
  const plans::plan had = running("pair.ternary2.avx2");
  plans::plan wanted = had;
  EXPECT_TRUE(plans::differences(wanted, had).empty());
  wanted.parts[0].rows[1].token = {"i2s_qk256_avx2"};
  EXPECT_TRUE(plans::differences(wanted, had).empty());
  wanted.parts[0].rows[1].token.clear();
  wanted.parts[0].rows[1].level.clear();
  EXPECT_TRUE(plans::differences(wanted, had).empty());
  wanted.parts[0].rows.clear();
  EXPECT_TRUE(plans::differences(wanted, had).empty());
}

TEST(PlanComparing, APlaceIsNamedByLayersDeviceAndOp) {
  const plans::plan had = running("pair.ternary2.avx2");
  plans::plan wanted = running("pair.ternary2.avx512");
  wanted.parts[0].rows[1].layers = plans::layer_range{1, 2};
  const auto found = plans::differences(wanted, had);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(
      found[0],
      "layers 1-2 on cpu:0, op pair: a step of one token: wanted kernel pair.ternary2.avx512, "
      "had pair.ternary2.avx2; backend cpu has named forms for all its kernels together: "
      "cpu.isa");
}

TEST(PlanComparing, WhatIsOtherIsFound) {
  const plans::plan had = running("pair.ternary2.avx2");
  const auto first = [&](const std::function<void(plans::plan&)>& change) {
    plans::plan wanted = had;
    change(wanted);
    const auto found = plans::differences(wanted, had);
    return found.empty() ? "" : found[0];
  };
  EXPECT_EQ(first([](auto& p) { p.model.n_parameters = 8; }),
            "the model: wanted parameters 8, had 9");
  EXPECT_EQ(first([](auto& p) { p.parts[0].device = "x:0"; }),
            "wanted embedding, layers 0-3, head on x:0, had embedding, layers 0-3, head on cpu:0");
  EXPECT_EQ(first([](auto& p) { p.parts[0].rows[1].level = "reference"; }),
            "layers 0-3 on cpu:0, op pair: wanted level reference, had fused");
  EXPECT_EQ(first([](auto& p) { p.parts[0].rows[0].op = "none"; }),
            "outside of the layers on cpu:0, op none: wanted in each, had in 0 of 1");
  EXPECT_EQ(
      first([](auto& p) { p.parts[0].rows[0].prompt = {"x"}; }).substr(0, 100),
      std::string("outside of the layers on cpu:0, op gather: a step of a prompt: wanted kernel "
                  "x, had none that was counted; backend")
          .substr(0, 100));
}

}  // namespace
