// Folders of Hugging Face: each known file and member is used, or named as left out, or rejected by
// name. Expected values are those of transformers 5.24 and tokenizers 0.23 with the same folder.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "../../scratch_folder.hpp"
#include "huggingface/members.hpp"
#include "model/read.hpp"
#include "tokenizer/tokenizer.hpp"

namespace bitnet::model {
namespace {

using nlohmann::json;
using ids = std::vector<int32_t>;

constexpr int width = 32, rows = 16, heads = 2;

struct stored {
  std::string name;
  std::vector<uint64_t> shape;
  float value;
};

// A llama of one layer with byte-level BPE over a few letters.
struct folder {
  test::scratch_folder at;
  json config = {
      {"model_type", "llama"},        {"hidden_act", "silu"},          {"vocab_size", rows},
      {"hidden_size", width},         {"intermediate_size", width},    {"num_hidden_layers", 1},
      {"num_attention_heads", heads}, {"max_position_embeddings", 64}, {"rms_norm_eps", 1e-5},
      {"rope_theta", 10000.0},        {"tie_word_embeddings", true}};
  json tokenizer_config = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  json tokenizer = {
      {"added_tokens", json::array({{{"id", 0}, {"content", "<s>"}, {"special", true}},
                                    {{"id", 1}, {"content", "</s>"}, {"special", true}},
                                    {{"id", 2}, {"content", "<|end|>"}, {"special", true}}})},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", {{"a", 3}, {"b", 4}, {"\u0120", 5}, {"\u010A", 6}, {"ab", 7}, {"x", 8}}},
        {"merges", json::array({"a b"})}}}};
  std::map<std::string, std::string> files;  // further ones
  std::vector<stored> tensors;
  std::string weights = "model.safetensors";

  folder() {
    const std::string layer = "model.layers.0.";
    const std::vector<uint64_t> square = {width, width};
    tensors = {{"model.embed_tokens.weight", {rows, width}, 1}, {"model.norm.weight", {width}, 1}};
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      tensors.push_back({layer + norm + ".weight", {width}, 1});
    for (const char* linear : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                               "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      tensors.push_back({layer + linear + ".weight", square, 0.5F});
  }

  static std::string safetensors(const std::vector<stored>& all) {
    json header = json::object();
    std::string data;
    for (const stored& t : all) {
      uint64_t n = 1;
      for (const uint64_t d : t.shape) n *= d;
      const uint64_t begin = data.size();
      for (uint64_t i = 0; i < n; ++i)
        data.append(reinterpret_cast<const char*>(&t.value), sizeof t.value);
      header[t.name] = {
          {"dtype", "F32"}, {"shape", t.shape}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const uint64_t size = text.size();
    return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + data;
  }

  result<loaded> read() const {
    at.write("config.json", config.dump());
    at.write("tokenizer_config.json", tokenizer_config.dump());
    at.write("tokenizer.json", tokenizer.dump());
    if (!weights.empty()) at.write(weights, safetensors(tensors));
    for (const auto& [name, content] : files) at.write(name, content);
    auto file = open_file(at.path());
    if (!file) return std::unexpected(file.error());
    return ::bitnet::model::read(std::move(*file), load_options{});
  }
};

std::string outcome(const result<loaded>& read) {
  return read ? "" : read.error().message;
}

bool names(const loaded& m, std::string_view what) {
  const auto all = left_out_of(m);
  return std::ranges::find(all, what) != all.end();
}

json frame(const json& single) {
  const auto token = [](const char* text, int id) {
    return json{{"id", text}, {"ids", {id}}, {"tokens", {text}}};
  };
  return {
      {"type", "TemplateProcessing"},
      {"single", single},
      {"pair", json::array()},
      {"special_tokens",
       {{"<s>", token("<s>", 0)}, {"</s>", token("</s>", 1)}, {"<|end|>", token("<|end|>", 2)}}}};
}
const json a_text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
json special(const char* text) {
  return {{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
}

TEST(model_folders, loads_and_leaves_out_nothing) {
  const folder f;
  const auto m = f.read();
  ASSERT_EQ(outcome(m), "");
  EXPECT_EQ(left_out_of(*m), std::vector<std::string>());
}

struct change {
  const char* why;
  std::function<void(folder&)> make;
  const char* said;  // what the rejection says
};

using edit = std::function<void(folder&)>;

edit config(const char* key, const json& x) {
  return [=](folder& f) { f.config[key] = x; };
}
edit rope(const char* key, const json& x) {
  return [=](folder& f) {
    f.config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
    f.config["rope_scaling"][key] = x;
  };
}
edit tokenizer_model(const char* key, const json& x) {
  return [=](folder& f) { f.tokenizer["model"][key] = x; };
}
edit post(const json& x) {
  return [=](folder& f) { f.tokenizer["post_processor"] = x; };
}
edit file(const char* name, const std::string& content) {
  return [=](folder& f) { f.files[name] = content; };
}

const change rejected_configs[] = {
    {"a text where a number stands was 10000", config("rope_theta", "500000"),
     "config.json: 'rope_theta' is the text '500000'; expected a number"},
    {"a number that no float holds", config("rope_theta", 1e300), "expected a number"},
    {"true in place of a count", config("num_key_value_heads", true),
     "'num_key_value_heads' is true; expected a count"},
    {"a fraction", config("head_dim", 16.5), "'head_dim' is 16.5; expected a count"},
    {"below zero", config("head_dim", -16), "'head_dim' is -16; expected a count"},
    {"a number for true", config("attention_bias", 1),
     "'attention_bias' is 1; expected true or false"},
    {"a text for true", config("tie_word_embeddings", "true"), "expected true or false"},
    {"a text for true", config("mlp_bias", "true"), "expected true or false"},
    {"a text for an object", config("rope_scaling", "linear"), "expected an object"},
    {"a list for an object", config("quantization_config", json::array()), "expected an object"},
    {"within an object", rope("factor", "2"), "'rope_scaling.factor' is the text '2'"},
    {"within an object", rope("truncate", "false"), "'rope_scaling.truncate'"},
    {"in a list", rope("long_factor", {1, "2"}), "expected a list of numbers"},
    {"rope_parameters has the same",
     config("rope_parameters", {{"rope_type", "default"}, {"rope_theta", "1"}}),
     "'rope_parameters.rope_theta'"},
    {"ids", config("eos_token_id", "1"), "'eos_token_id' is the text '1'"},
    {"ids", config("eos_token_id", {1, -2}), "expected a whole number or a list of counts"},
    {"an id that is no token", config("eos_token_id", {1, 99}), "has the id 99"},
    {"kinds of layers", config("layer_types", {"sliding_attention"}), "layer_types has"},
    {"parts of heads", config("partial_rotary_factor", 0.5), "partial_rotary_factor is not 1"},
    {"biases", config("mlp_bias", true), "mlp_bias is true"},
    {"another gate", config("hidden_act", "gelu"), "hidden_act is 'gelu'"},
    {"weights of another kind", config("quantization_config", {{"quant_method", "gptq"}}),
     "quant_method is 'gptq'"},
    {"an unknown mode",
     config("quantization_config", {{"quant_method", "bitnet"},
                                    {"linear_class", "autobitlinear"},
                                    {"quantization_mode", "onlin"}}),
     "quantization_mode is 'onlin'"},
    {"layers that stay floats",
     config("quantization_config", {{"quant_method", "bitnet"},
                                    {"linear_class", "autobitlinear"},
                                    {"quantization_mode", "online"},
                                    {"modules_to_not_convert", {"model.layers.0.mlp"}}}),
     "modules_to_not_convert names"},
};

const change rejected_files[] = {
    {"a generation_config.json", file("generation_config.json", R"({"eos_token_id":"1"})"),
     "generation_config.json: 'eos_token_id'"},
    {"an id that is no token", file("generation_config.json", R"({"eos_token_id":[16]})"),
     "has the id 16"},
    {"a token that tokenizer.json lacks", file("added_tokens.json", R"({"<new>":9})"),
     "token '<new>' is not there with the id 9"},
    {"another id", file("added_tokens.json", R"({"<|end|>":9})"), "token '<|end|>'"},
    {"the same in the newer place",
     [](folder& f) {
       f.tokenizer_config["added_tokens_decoder"] = {{"9", {{"content", "<new>"}}}};
     },
     "token '<new>'"},
    {"special tokens as text", [](folder& f) { f.tokenizer_config["split_special_tokens"] = true; },
     "split_special_tokens is true"},
    {"a template that is none", [](folder& f) { f.tokenizer_config["chat_template"] = 7; },
     "'chat_template' is 7"},
    {"templates without names",
     [](folder& f) { f.tokenizer_config["chat_template"] = json::array({"x"}); },
     "'chat_template' is a list"},
    {"a template that is no text", file("chat_template.jinja", "\xFF"), "is not UTF-8"},
    {"merges left away by chance", tokenizer_model("dropout", 0.1), "model.dropout"},
    {"ends of words", tokenizer_model("end_of_word_suffix", "</w>"), "model.end_of_word_suffix"},
    {"middles of words", tokenizer_model("continuing_subword_prefix", "##"),
     "continuing_subword_prefix"},
    {"truth of a tokenizer", tokenizer_model("ignore_merges", "yes"), "'model.ignore_merges'"},
    {"truth of a tokenizer", tokenizer_model("byte_fallback", 1), "'model.byte_fallback'"},
    {"flags", [](folder& f) { f.tokenizer["added_tokens"][2]["lstrip"] = "no"; },
     "'lstrip' of token '<|end|>' is the text 'no'"},
    {"a post-processor of another kind", post({{"type", "Other"}}), "is of type 'Other'"},
    {"two tokens before", post(frame({special("<s>"), special("<|end|>"), a_text})),
     "puts '<|end|>' beside another token"},
    {"the text twice", post(frame({a_text, a_text})), "puts a text twice"},
    {"a token without an id",
     post({{"type", "TemplateProcessing"}, {"single", {special("<s>"), a_text}}}),
     "names no id for '<s>'"},
    {"another bos than the template's",
     [](folder& f) {
       f.tokenizer["post_processor"] = frame({special("<|end|>"), a_text});
       f.tokenizer_config["chat_template"] = "{{ bos_token }}";
     },
     "post_processor puts token 2"},
    {"maxima",
     [](folder& f) {
       f.files["modules.json"] =
           R"([{"type":"m.Transformer","path":""},{"type":"m.Pooling","path":"1_Pooling"}])";
       f.files["1_Pooling/config.json"] = R"({"pooling_mode_max_tokens":true})";
     },
     "pooling_mode_max_tokens is true"},
    {"a further layer", file("modules.json", R"([{"type":"m.Dense","path":"2_Dense"}])"),
     "a module of type 'm.Dense'"},
    {"no head", [](folder& f) { f.config["tie_word_embeddings"] = false; },
     "no file has the tensor 'lm_head.weight'"},
    {"BitNet of other bits",
     [](folder& f) {
       f.config["architectures"] = {"BitnetForCausalLM"};
       f.config["weight_bits"] = 2;
     },
     "weight_bits is 2"},
};

void expect_rejected(const change& one) {
  folder f;
  one.make(f);
  const std::string said = outcome(f.read());
  EXPECT_NE(said.find(one.said), std::string::npos) << one.why << "; said: " << said;
}

TEST(model_folders, reject_by_name) {
  for (const change& one : rejected_configs) expect_rejected(one);
  for (const change& one : rejected_files) expect_rejected(one);
}

const change left_out[] = {
    {"an unknown member", config("no_such_member", 1), "config.json: no_such_member"},
    {"of another model", config("scale_emb", 12), "config.json: scale_emb"},
    {"a window that transformers ignores in a llama", config("sliding_window", 8),
     "config.json: sliding_window"},
    {"code", config("auto_map", json::object()), "config.json: auto_map"},
    {"how it samples", file("generation_config.json", R"({"temperature":0.6})"),
     "generation_config.json: temperature"},
    {"templates with other names",
     [](folder& f) {
       f.tokenizer_config["chat_template"] = {{{"name", "default"}, {"template", "d"}},
                                              {{"name", "tool_use"}, {"template", "t"}}};
     },
     "tokenizer_config.json: chat_template.tool_use"},
    {"a member behind a file",
     [](folder& f) {
       f.tokenizer_config["chat_template"] = "old";
       f.files["chat_template.jinja"] = "new";
     },
     "tokenizer_config.json: chat_template"},
    {"files with other names", file("additional_chat_templates/tools.jinja", "t"),
     "additional_chat_templates/tools.jinja"},
    {"the post-processor puts none", [](folder& f) { f.tokenizer_config["add_bos_token"] = true; },
     "tokenizer_config.json: add_bos_token"},
    {"spaces", [](folder& f) { f.tokenizer_config["clean_up_tokenization_spaces"] = true; },
     "tokenizer_config.json: clean_up_tokenization_spaces"},
    {"an adapter", file("adapter_model.safetensors", "x"), "adapter_model.safetensors"},
    {"weights of another form", file("pytorch_model.bin", "x"), "pytorch_model.bin"},
    {"an older index",
     file("model.safetensors.index.json",
          R"({"weight_map":{"a":"model-00001-of-00001.safetensors"}})"),
     "model.safetensors.index.json"},
    {"its files",
     [](folder& f) {
       f.files["model.safetensors.index.json"] =
           R"({"weight_map":{"a":"model-00001-of-00001.safetensors"}})";
       f.files["model-00001-of-00001.safetensors"] = "old";
     },
     "model-00001-of-00001.safetensors"},
    {"length of embeddings",
     [](folder& f) {
       f.files["modules.json"] = R"([{"type":"m.Pooling","path":"1_Pooling"}])";
       f.files["1_Pooling/config.json"] = R"({"pooling_mode":"mean"})";
     },
     "modules.json"},
    {"a head that is tied and differs",
     [](folder& f) { f.tensors.push_back({"lm_head.weight", {rows, width}, 2}); },
     "config.json: tie_word_embeddings"},
};

TEST(model_folders, name_what_they_leave_out) {
  for (const change& one : left_out) {
    folder f;
    one.make(f);
    const auto m = f.read();
    ASSERT_EQ(outcome(m), "") << one.why;
    EXPECT_TRUE(names(*m, one.said)) << one.why << ": " << one.said;
    const auto members = left_out_members(*m);
    for (const auto& row : members) EXPECT_NE(row.value("why", ""), "") << one.why;
  }
}

TEST(model_folders, choose_the_template_as_transformers_does) {
  struct row {
    const char* why;
    json member;
    std::map<std::string, std::string> files;
    const char* chosen;
  };
  const json named = {{{"name", "tool_use"}, {"template", "t"}},
                      {{"name", "default"}, {"template", "d"}}};
  const row all[] = {
      {"none", nullptr, {}, ""},
      {"a member", "m", {}, "m"},
      {"the one named default", named, {}, "d"},
      {"a file alone", nullptr, {{"chat_template.jinja", "f"}}, "f"},
      {"a file before the member", "m", {{"chat_template.jinja", "f"}}, "f"},
      {"a file before a list", named, {{"chat_template.jinja", "f"}}, "f"},
      {"default.jinja comes last and counts",
       "m",
       {{"chat_template.jinja", "f"}, {"additional_chat_templates/default.jinja", "a"}},
       "a"},
      {"others do not",
       nullptr,
       {{"chat_template.jinja", "f"}, {"additional_chat_templates/tool_use.jinja", "a"}},
       "f"},
      {"but they push the member out",
       "m",
       {{"additional_chat_templates/tool_use.jinja", "a"}},
       ""},
  };
  for (const row& one : all) {
    folder f;
    f.tokenizer_config["chat_template"] = one.member;
    f.files = one.files;
    const auto m = f.read();
    ASSERT_EQ(outcome(m), "") << one.why;
    EXPECT_EQ(m->vocabulary.chat_template, one.chosen) << one.why;
  }
}

ids ends_of(const tokenizer::tokenizer& t) {
  ids out;
  for (int32_t id = 0; id < static_cast<int32_t>(t.size()); ++id)
    if (t.ends_generation(id)) out.push_back(id);
  return out;
}

TEST(model_folders, end_with_every_id) {
  struct row {
    const char* why;
    json config, generation;  // null: no member; no file
    ids ends;                 // 1 is the tokenizer's own, and 2 is known by its text
  };
  const row all[] = {
      {"the tokenizer's", nullptr, nullptr, {1, 2}},
      {"one of config.json", 8, nullptr, {1, 2, 8}},
      {"a list in config.json", {1, 7, 8}, nullptr, {1, 2, 7, 8}},
      {"a list in generation_config.json", nullptr, {1, 7}, {1, 2, 7}},
      {"which comes first", {1, 8}, {1, 7}, {1, 2, 7}},
      {"none", -1, nullptr, {1, 2}},
  };
  for (const row& one : all) {
    folder f;
    f.config["eos_token_id"] = one.config;
    if (!one.generation.is_null())
      f.files["generation_config.json"] = json{{"eos_token_id", one.generation}}.dump();
    auto m = f.read();
    ASSERT_EQ(outcome(m), "") << one.why;
    const auto t = tokenizer::tokenizer::make(std::move(m->vocabulary));
    ASSERT_TRUE(t) << t.error().message;
    EXPECT_EQ(ends_of(*t), one.ends) << one.why;
    EXPECT_EQ(t->eos(), 1) << one.why;
  }
}

// Of tokenizers 0.23.3: Tokenizer.from_str(...).encode(text).ids
TEST(model_folders, put_tokens_and_take_blanks_as_tokenizers_does) {
  struct row {
    const char* why;
    json post;
    json flags;
    const char* text;
    ids tokens;
    bool adds_eos = false;
  };
  const row all[] = {
      {"no post-processor puts nothing", nullptr, {}, "ab", {7}},
      {"bos", frame({special("<s>"), a_text}), {}, "ab", {0, 7}},
      {"offsets alone", {{"type", "ByteLevel"}, {"trim_offsets", true}}, {}, "ab", {7}},
      {"a sequence",
       {{"type", "Sequence"},
        {"processors", {{{"type", "ByteLevel"}}, frame({special("<s>"), a_text})}}},
       {},
       "ab",
       {0, 7}},
      {"both", frame({special("<s>"), a_text, special("</s>")}), {}, "ab", {0, 7}, true},
      {"Roberta",
       {{"type", "RobertaProcessing"}, {"cls", {"<s>", 0}}, {"sep", {"</s>", 1}}},
       {},
       "ab",
       {0, 7},
       true},
      {"no flags", nullptr, {}, "a <|end|>\nb", {3, 5, 2, 6, 4}},
      {"blanks before", nullptr, {{"lstrip", true}}, "a \n<|end|>\nb", {3, 2, 6, 4}},
      {"blanks behind", nullptr, {{"rstrip", true}}, "a <|end|>\n b", {3, 5, 2, 4}},
      {"both", nullptr, {{"lstrip", true}, {"rstrip", true}}, "a <|end|> \n<|end|>b", {3, 2, 2, 4}},
      {"at the ends", nullptr, {{"lstrip", true}, {"rstrip", true}}, " <|end|> ", {2}},
      {"single words stand alone",
       nullptr,
       {{"single_word", true}},
       "a <|end|> b",
       {3, 5, 2, 5, 4}},
  };
  for (const row& one : all) {
    folder f;
    f.tokenizer["post_processor"] = one.post;
    f.tokenizer["added_tokens"][2].update(one.flags.is_null() ? json::object() : one.flags);
    auto m = f.read();
    ASSERT_EQ(outcome(m), "") << one.why;
    const auto t = tokenizer::tokenizer::make(std::move(m->vocabulary));
    ASSERT_TRUE(t) << t.error().message;
    const auto found = t->encode(
        one.text,
        {.add_bos = tokenizer::encode_options::bos::if_model_asks, .parse_special = true});
    ASSERT_TRUE(found) << one.why << found.error().message;
    EXPECT_EQ(*found, one.tokens) << one.why;
    EXPECT_EQ(t->adds_eos(), one.adds_eos) << one.why;
  }
}

TEST(model_folders, pool_as_their_modules_say) {
  struct row {
    const char* pooling;
    uint32_t number;
  };
  const row all[] = {{R"({"pooling_mode":"mean"})", 1},
                     {R"({"pooling_mode":"cls"})", 2},
                     {R"({"pooling_mode":"lasttoken"})", 3},
                     {R"({"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false})", 1},
                     {R"({"pooling_mode_cls_token":true})", 2},
                     {R"({"pooling_mode_lasttoken":true,"pooling_mode_mean_tokens":false})", 3}};
  for (const row& one : all) {
    folder f;
    f.config["tie_word_embeddings"] = false;  // a model of embeddings needs no head
    f.files["modules.json"] =
        R"([{"type":"m.Transformer","path":""},{"type":"m.Pooling","path":"1_Pooling"},)"
        R"({"type":"m.Normalize","path":"2_Normalize"}])";
    f.files["1_Pooling/config.json"] = one.pooling;
    const auto m = f.read();
    ASSERT_EQ(outcome(m), "") << one.pooling;
    EXPECT_EQ(m->shape.pooling, one.number) << one.pooling;
    EXPECT_EQ(left_out_of(*m), std::vector<std::string>());
  }
}

TEST(model_folders, have_the_head_that_is_there) {
  const auto head = [](float value) {
    return [=](folder& f) { f.tensors.push_back({"lm_head.weight", {rows, width}, value}); };
  };
  struct row {
    const char* why;
    std::function<void(folder&)> make;
    bool tied;
  };
  const row all[] = {
      {"none: tied", [](folder&) {}, true},
      {"the same: tied", head(1), true},
      {"another: its own, as in transformers", head(2), false},
      {"no embedding: it stands for both",
       [](folder& f) { f.tensors.front().name = "lm_head.weight"; }, true},
      {"not tied",
       [&](folder& f) {
         head(1)(f);
         f.config["tie_word_embeddings"] = false;
       },
       false},
      {"names without what stands before them otherwise",
       [](folder& f) {
         for (stored& t : f.tensors) t.name.erase(0, std::string("model.").size());
       },
       true},
  };
  for (const row& one : all) {
    folder f;
    one.make(f);
    const auto m = f.read();
    ASSERT_EQ(outcome(m), "") << one.why;
    EXPECT_EQ(m->output == m->token_embedding, one.tied) << one.why;
  }
}

TEST(model_folders, read_the_whole_file_before_an_older_index) {
  folder f;
  f.files["model.safetensors.index.json"] =
      R"({"weight_map":{"model.norm.weight":"model-00001-of-00001.safetensors"}})";
  f.files["model-00001-of-00001.safetensors"] =
      folder::safetensors({{"model.norm.weight", {width}, 9}});
  const auto m = f.read();
  ASSERT_EQ(outcome(m), "");
  ASSERT_EQ(m->file.mappings().size(), 1U);
  EXPECT_EQ(m->file.mappings()[0].path().filename(), "model.safetensors");
}

TEST(model_folders, know_a_bitnet_that_is_called_llama) {
  folder f;
  f.config["architectures"] = {"BitnetForCausalLM"};
  f.config["weight_bits"] = 1;
  f.config["input_bits"] = 8;
  for (const char* norm : {"self_attn.inner_attn_ln", "mlp.ffn_layernorm"})
    f.tensors.push_back({fmt::format("model.layers.0.{}.weight", norm), {width}, 1});
  f.config["num_key_value_heads"] = heads;
  const auto m = f.read();
  ASSERT_EQ(outcome(m), "");
  EXPECT_EQ(m->shape.architecture, "bitnet");
  EXPECT_TRUE(m->shape.sub_norms);
}

// ---- docs/reference/model-folder-members.md ----------------------------------------------------

const char* spelled(huggingface::member_use what) {
  return what == huggingface::member_use::used       ? "used"
         : what == huggingface::member_use::harmless ? "harmless"
                                                     : "left out";
}

std::string page() {
  std::string out = "## Files\n\n| file | | what it is for |\n|---|---|---|\n";
  for (const auto& f : huggingface::file_rows())
    out += fmt::format("| `{}` | {} | {} |\n", f.name, spelled(f.what), f.why);
  std::string_view file;
  for (const auto& m : huggingface::member_rows()) {
    if (m.file != file) out += fmt::format("\n## {}\n\n| member | | |\n|---|---|---|\n", m.file);
    file = m.file;
    std::string why(m.why);
    std::string only(m.only);
    for (size_t blank = 0; (blank = only.find(' ', blank)) != std::string::npos; blank += 2)
      only.replace(blank, 1, ", ");
    if (!only.empty()) why += fmt::format("{}of {}", why.empty() ? "" : "; ", only);
    out += fmt::format("| `{}` | {} | {} |\n", m.name, spelled(m.what), why);
  }
  return out;
}

TEST(model_folders, have_the_page_that_the_table_makes) {
  const std::string path = std::string(BITNET_TEST_DOCS) + "/reference/model-folder-members.md";
  const std::string content = test::scratch_folder::read(path);
  const size_t begin = content.find("## Files");
  ASSERT_NE(begin, std::string::npos);
  const bool same = content.substr(begin) == page();
  if (!same && std::getenv("BITNET_WRITE_PAGE") != nullptr) {
    std::ofstream(path) << content.substr(0, begin) << page();
    return;
  }
  EXPECT_TRUE(same) << "the table has changed: run this test with BITNET_WRITE_PAGE=1";
}

}  // namespace
}  // namespace bitnet::model
