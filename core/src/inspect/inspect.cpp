#include "inspect/inspect.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/host_memory.hpp"
#include "chat/template.hpp"
#include "formats/reading.hpp"
#include "gguf/bytes.hpp"
#include "gguf/text.hpp"
#include "gguf/types.hpp"
#include "model/context_room.hpp"
#include "model/read.hpp"

namespace bitnet::inspect {
namespace {

using json = nlohmann::ordered_json;

constexpr uint64_t shown_elements = 8;           // of an array
constexpr size_t shown_text = size_t{64} << 10;  // bytes of a string; chat templates fit

// The double that prints as the float does: 1e-05, not 9.999999747378752e-06.
double shortest(float x) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x).ptr;
  double out = x;
  std::from_chars(text.data(), end, out);
  return out;
}

json number(const gguf::value& v) {
  if (v.type == gguf::value_type::f32) return shortest(gguf::load<float>(v.bytes));
  if (v.type == gguf::value_type::u64) return gguf::load<uint64_t>(v.bytes);
  if (const auto whole = gguf::to_integer(v)) return *whole;
  return gguf::to_real(v).value_or(0);
}

json describe(const gguf::value& v) {
  if (const auto text = gguf::to_string(v)) {
    if (text->size() <= shown_text) return std::string(*text);
    return std::string(text->substr(0, shown_text)) + "...";
  }
  if (const auto truth = gguf::to_boolean(v)) return *truth;
  if (v.type != gguf::value_type::array) return number(v);
  json first = json::array();
  gguf::for_each_element(v, [&](const gguf::value& element) {
    first.push_back(describe(element));
    return first.size() < shown_elements;
  });
  if (v.count <= shown_elements) return first;
  return {{"type", name_of(v.element)}, {"count", v.count}, {"first", std::move(first)}};
}

// An ordered object searches all its members on each insertion. These keys are distinct (else the
// file was rejected), so append.
json describe_metadata(const gguf::container& metadata) {
  json out = json::object();
  std::vector<std::pair<const std::string, json>>& members = out.get_ref<json::object_t&>();
  members.reserve(metadata.entries().size());
  for (const gguf::entry& e : metadata.entries())
    members.emplace_back(std::string(e.key), describe(e.content));
  return out;
}

json describe_format(const gguf::file& file) {
  json out = {{"container", file.is_composed() ? "Hugging Face checkpoint" : "GGUF"}};
  if (!file.is_composed()) {
    out["version"] = file.metadata().version();
    out["alignment"] = file.metadata().alignment();
  }
  json shards = json::array();
  for (const gguf::mapping& m : file.mappings())
    shards.push_back({{"file", m.path().filename().native()}, {"bytes", m.bytes().size()}});
  out["bytes"] = file.total_bytes();
  out["shards"] = std::move(shards);
  return out;
}

json describe_tensor(const gguf::tensor_info& t) {
  const std::string_view type = gguf::short_name(t.type);
  return {{"name", std::string(t.name)},
          {"type", type.empty() ? gguf::type_name(t.type) : std::string(type)},
          {"shape", std::vector<uint64_t>(t.ne.begin(), t.ne.begin() + t.rank)},
          {"bytes", t.bytes.size()}};
}

json describe_tensors(const gguf::file& file) {
  json out = json::array();
  if (file.is_composed()) {
    for (const auto& t : file.tensors()) out.push_back(describe_tensor(t.info));
    return out;
  }
  for (uint32_t shard = 0; shard < file.containers().size(); ++shard)
    for (const gguf::tensor_info& t : file.containers()[shard].tensors()) {
      json one = describe_tensor(t);
      one["offset"] = t.offset;
      if (file.containers().size() > 1) one["shard"] = shard;
      out.push_back(std::move(one));
    }
  return out;
}

json describe_rope(const model::hyperparameters& shape) {
  json out = {{"dims", shape.rope_dims},
              {"base", shortest(shape.rope_base)},
              {"scale", shortest(shape.rope_scale)},
              {"pairs", shape.rope_neox ? "halves" : "neighbours"}};
  const model::rope_scaling& how = shape.rope_scaling;
  if (how.kind == model::stretch::none || (how.kind == model::stretch::linear && how.factor == 1))
    return out;
  constexpr std::array names = {"none", "linear", "dynamic", "yarn", "longrope"};
  out["scaling"] = names[static_cast<size_t>(how.kind)];
  if (how.kind != model::stretch::longrope) out["factor"] = shortest(how.factor);
  if (how.kind != model::stretch::linear) out["original_context"] = how.original_context;
  if (how.magnitude != 1) out["magnitude"] = shortest(how.magnitude);
  return out;
}

const char* name_of(model::activation gate) {
  switch (gate) {
    case model::activation::relu2:
      return "relu2";
    case model::activation::silu:
      return "silu";
    case model::activation::gelu:
      return "gelu";
  }
  return "";
}

json describe_window(const model::hyperparameters& shape) {
  return {{"tokens", shape.window},
          {"layers", std::ranges::count(shape.windowed, true)},
          {"rope_base", shortest(shape.local_rope_base)}};
}

json describe_recurrence(const model::hyperparameters& shape) {
  const model::recurrence& r = shape.recurrence;
  return {{"layers", shape.n_recurrent()},
          {"convolution", r.taps},
          {"key_heads", r.key_heads},
          {"value_heads", r.value_heads},
          {"key_dim", r.key_dim},
          {"value_dim", r.value_dim},
          {"state_bytes", shape.state_elements() * sizeof(float)}};
}

json describe_model(const model::loaded& m) {
  const model::hyperparameters& shape = m.shape;
  uint64_t parameters = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < m.weights.size(); ++i) {
    if (m.is_made(i)) continue;
    const model::weight& w = m.weights[i];
    parameters += static_cast<uint64_t>(w.ne[0]) * static_cast<uint64_t>(w.ne[1]);
    bytes += w.data_bytes;
  }
  json out = {{"name", shape.name},
              {"vocabulary", shape.n_vocab},
              {"context", shape.n_context},
              {"layers", shape.n_layers},
              {"embedding", shape.n_embedding},
              {"feed_forward", shape.n_feed_forward},
              {"heads", shape.n_heads},
              {"kv_heads", shape.n_kv_heads},
              {"head_dim", shape.head_dim},
              {"rope", describe_rope(shape)},
              {"rms_epsilon", shortest(shape.rms_epsilon)},
              {"sub_norms", shape.sub_norms},
              {"head_norms", shape.head_norms},
              {"activation_group", shape.activation_group},
              {"post_norms", shape.post_norms},
              {"input_norms", shape.input_norms},
              {"activation", name_of(shape.gate)},
              {"tied_embedding", m.output == m.token_embedding},
              {"tokenizer", m.vocabulary.model},
              {"parameters", parameters},
              {"weight_bytes", bytes}};
  if (shape.pooling != 0) out["pooling"] = shape.pooling;
  if (shape.window != 0) out["window"] = describe_window(shape);
  if (!shape.recurrent.empty()) out["recurrent"] = describe_recurrence(shape);
  if (const std::string ignored = model::ignored_of(m); !ignored.empty()) out["ignored"] = ignored;
  return out;
}

// The context that fits into this machine's memory beside the weights, with f16 keys and values.
json describe_room(const model::hyperparameters& shape, uint64_t weight_bytes) {
  const uint64_t free = free_host_memory();
  if (free == 0) return {};
  constexpr uint32_t block = 64;  // tokens; sessions allocate in such blocks
  const uint64_t token_bytes =
      uint64_t{shape.n_attending()} * shape.n_kv_heads * shape.head_dim * 2 * 2;
  const uint64_t taken = weight_bytes + 2 * shape.state_elements() * sizeof(float);
  const uint64_t room = free - std::min(free, taken);
  return {{"memory_free_bytes", free},
          {"max_context", model::max_context(room, block * token_bytes, block)}};
}

// Notes each tensor type that no weight can have, one line each.
void note_types(const gguf::file& file, json& problems) {
  struct use {
    uint64_t count = 0;
    std::string_view first;
  };
  std::map<uint32_t, use> unreadable;
  for (const auto& t : file.tensors()) {
    if (formats::is_readable(t.info.type)) continue;
    use& u = unreadable[t.info.type];
    if (u.count++ == 0) u.first = t.info.name;
  }
  for (const auto& [type, u] : unreadable)
    problems.push_back(fmt::format("{}{} of type {}, which this program does not read; first {}",
                                   u.count, u.count == 1 ? " tensor" : " tensors",
                                   gguf::type_name(type), gguf::quote(u.first)));
}

// How the tensors were interpreted, and why: one line per reading.
json describe_readings(const model::loaded& m) {
  struct use {
    uint64_t count = 0;
    std::string first;
  };
  std::map<std::string, use> seen;
  for (size_t i = 0; i < m.readings.size(); ++i) {
    use& u = seen[m.readings[i].how];
    if (u.count++ == 0) u.first = m.weights[i].name;
  }
  json out = json::array();
  for (const auto& [how, u] : seen)
    out.push_back({{"as", how}, {"tensors", u.count}, {"first", u.first}});
  return out;
}

// Notes facts on the whole file that decide how its weights are read, even if it has none.
void note_whole_file(const gguf::file& file, json& report) {
  json& problems = report["problems"];
  const auto found = model::find_q2(file);
  if (!found) problems.push_back(found.error().message);
  const auto q2 = found.value_or(std::nullopt);
  if (q2)
    report["type_42"] = {{"layout", formats::q2_layout_name(q2->layout)},
                         {"recognised", formats::q2_evidence_name(q2->by)}};
  const auto rotated = model::read_hadamard(file);
  if (!rotated) problems.push_back(rotated.error().message);
  const auto form = rotated.value_or(std::nullopt);
  if (!form) return;
  json sign_widths = json::array();
  for (const model::hadamard::width& w : form->widths) sign_widths.push_back(w.columns);
  report["hadamard"] = {{"block", form->block},
                        {"signs", form->widths.empty() ? "identity" : "explicit"},
                        {"sign_widths", std::move(sign_widths)},
                        {"weights", form->weights.size()},
                        {"tables", form->tables.size()},
                        {"heads_are_grouped", form->heads_are_grouped}};
}

void note_tokens(const tokenizer::tokenizer& tokens, json& description, json& report) {
  if (!tokens.note().empty()) description["note"] = std::string(tokens.note());
  const chat::choice chosen = chat::choose(tokens);
  report["chat"] = {
      {"form", std::string(chosen.form)}, {"why", chosen.why}, {"set_aside", chosen.set_aside}};
}

// Notes whether the model would load, and its properties.
void note_model(gguf::file file, const model::load_options& options, json& report) {
  json& problems = report["problems"];
  auto m = model::read(std::move(file), options);
  if (!m) {
    const json why = m.error().message;
    if (std::ranges::find(problems, why) == problems.end()) problems.push_back(why);
    return;
  }
  json description = describe_model(*m);
  if (auto tokens = tokenizer::tokenizer::make(std::move(m->vocabulary)); !tokens)
    problems.push_back(tokens.error().message);
  else
    note_tokens(*tokens, description, report);
  const uint64_t weight_bytes = description["weight_bytes"];
  report["model"] = std::move(description);
  if (json room = describe_room(m->shape, weight_bytes); !room.empty())
    report["host"] = std::move(room);
  report["readings"] = describe_readings(*m);
  if (auto left_out = model::left_out_of(*m); !left_out.empty())
    report["left_out"] = std::move(left_out);
  if (json members = model::left_out_members(*m); !members.empty())
    report["left_out_members"] = std::move(members);
}

}  // namespace

result<std::string> inspect(const std::filesystem::path& file, const model::load_options& options) {
  json report;
  json problems = json::array();
  auto opened = model::open_file(file, options.judge);
  if (!opened && (std::filesystem::is_directory(file) || options.judge != nullptr))
    return std::unexpected(opened.error());
  if (!opened) {  // a shard may be missing, or this is not the first one; this file alone may be
                  // fine
    auto alone = gguf::file::open(file, gguf::file::shards::first);
    if (!alone) return std::unexpected(opened.error());
    problems.push_back(opened.error().message);
    opened = std::move(alone);
  }
  report["file"] = file.native();
  report["format"] = describe_format(*opened);
  const gguf::container& metadata = opened->metadata();
  if (const auto architecture = metadata.text("general.architecture"))
    if (const std::string_view spelled = architecture->value_or(""); !spelled.empty())
      report["architecture"] = std::string(spelled);
  report["metadata"] = describe_metadata(metadata);
  report["tensors"] = describe_tensors(*opened);
  note_types(*opened, problems);
  report["problems"] = std::move(problems);
  note_whole_file(*opened, report);
  note_model(std::move(*opened), options, report);
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace bitnet::inspect
