#include "infill/request.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace bitnet::host::infill {
namespace {

using nlohmann::json;
using openai::field_reader;
using openai::infill_gap;
using openai::request;

constexpr std::size_t most_files = 2048;
constexpr std::size_t most_fields = 64;

void read_others(field_reader& in, infill_gap& gap) {
  const json* const found = in.any("input_extra");
  if (found == nullptr || in.error()) return;
  if (!found->is_array() || found->size() > most_files)
    return in.wrong(
        "input_extra",
        fmt::format("an array of at most {} objects with 'filename' and 'text'", most_files));
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::string path = fmt::format("input_extra[{}]", i);
    if (!(*found)[i].is_object())
      return in.keep(openai::invalid(path,
                                     fmt::format("'{}' expects an object, found {}", path,
                                                 openai::shown((*found)[i])),
                                     "invalid_type")
                         .error());
    field_reader file((*found)[i], path + ".");
    infill_gap::file one{.name = "tmp", .text = ""};  // llama-server's default name
    file.text("filename", one.name);
    file.text("text", one.text);
    if (const auto& why = file.error()) return in.keep(*why);
    gap.others.push_back(std::move(one));
  }
}

void read_fields(field_reader& in, request& to) {
  const json* const found = in.any("response_fields");
  if (found == nullptr || in.error()) return;
  bool fine = found->is_array() && found->size() <= most_fields;
  for (std::size_t i = 0; fine && i < found->size(); ++i) fine = (*found)[i].is_string();
  if (!fine)
    return in.wrong("response_fields", fmt::format("an array of at most {} strings", most_fields));
  to.answer_members = found->dump();
}

}  // namespace

openai::parsed<request> parse_request(const json& body, std::string_view text,
                                      const openai::model_limits& model,
                                      const openai::generation_wish& defaults) {
  field_reader in(body);
  request out;
  out.to = openai::endpoint::completions;
  out.how = defaults;
  in.text("model", out.model);
  // With n_predict 0, editors have a prompt evaluated before they need its answer. A request for no
  // token would compute nothing, so this one requests a token that the answer leaves out.
  out.how.echo = true;
  openai::read_generation(in, text, model.n_vocab, out.how);
  out.how.echo = false;
  const bool only_computes = out.how.max_tokens == 0;
  if (only_computes) out.how.max_tokens = 1;
  if (out.how.n_choices != 1)
    in.keep(openai::unsupported("n", "a gap is filled in once; send the body again for another")
                .error());
  in.flag("stream", out.stream);
  std::string prefix, prompt;
  infill_gap gap{.suffix = "",
                 .others = {},
                 .in_repository = true,
                 .only_computes = only_computes,
                 .member = "input_suffix"};
  for (const char* name : {"input_prefix", "input_suffix"})
    if (in.any(name) == nullptr) in.wrong(name, "a string");
  in.text("input_prefix", prefix);
  in.text("input_suffix", gap.suffix);
  in.text("prompt", prompt);
  read_others(in, gap);
  read_fields(in, out);
  if (const auto& why = in.error()) return std::unexpected(*why);
  out.inputs.emplace_back(prefix + prompt);
  out.gap = std::move(gap);
  return out;
}

}  // namespace bitnet::host::infill
