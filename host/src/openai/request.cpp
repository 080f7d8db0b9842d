#include "openai/request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "openai/raw_member.hpp"
#include "openai/system_lines.hpp"

namespace bitnet::host::openai {
namespace {

using nlohmann::json;

constexpr std::size_t most_inputs = 2048;  // per body, OpenAI's limit for embeddings
constexpr uint32_t most_top_logprobs = 20;

// ---- chats -------------------------------------------------------------------------------------

// Copies the raw text of a member that is an array or an object, which the library parses; "" if it
// is empty.
void read_json(field_reader& in, std::string_view body, const char* name, bool is_list,
               std::string& to) {
  const json* const found = in.any(name);
  if (found == nullptr || in.error()) return;
  if (is_list ? !found->is_array() : !found->is_object())
    return in.wrong(name, is_list ? "an array" : "an object");
  if (!found->empty()) to = raw_member(body, name);
}

// ---- texts and tokens --------------------------------------------------------------------------

bool is_id(const json& value, uint32_t n_vocab) {
  return value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() < n_vocab;
}

// Reads an array of ids; `path` names it in messages.
parsed<token_list> ids_of(const json& from, const std::string& path, uint32_t n_vocab) {
  const auto odd = std::ranges::find_if_not(from, [&](const json& x) { return is_id(x, n_vocab); });
  if (odd == from.end()) return from.get<token_list>();
  const std::string place = fmt::format("{}[{}]", path, odd - from.begin());
  return invalid(place,
                 fmt::format("'{}' expects a token id from 0 to {}, found {}", place, n_vocab - 1,
                             shown(*odd)),
                 "invalid_type");
}

parsed<text_or_ids> input_of(const json& from, const std::string& path, uint32_t n_vocab) {
  if (from.is_string()) return text_or_ids(from.get<std::string>());
  if (!from.is_array() || from.empty())
    return invalid(path,
                   fmt::format("'{}' expects a string or an array of token ids, found {}", path,
                               from.is_array() ? "an empty array" : shown(from)),
                   "invalid_type");
  auto ids = ids_of(from, path, n_vocab);
  if (!ids) return std::unexpected(ids.error());
  return text_or_ids(*std::move(ids));
}

// Reads a string, an array of strings, an array of ids, or an array of such arrays.
void read_inputs(field_reader& in, const char* name, uint32_t n_vocab,
                 std::vector<text_or_ids>& to) {
  const json* const found = in.any(name);
  if (in.error()) return;
  if (found == nullptr) return in.wrong(name, "a string, an array of strings, or token ids");
  const bool several = found->is_array() && !found->empty() && !found->front().is_number();
  const json list = several ? json() : json::array({*found});
  const json& all = several ? *found : list;
  if (all.size() > most_inputs)
    return in.keep(invalid(name, fmt::format("'{}' has {} texts; at most {} are possible", name,
                                             all.size(), most_inputs))
                       .error());
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto one = input_of(all[i], several ? fmt::format("{}[{}]", name, i) : name, n_vocab);
    if (!one) return in.keep(one.error());
    to.push_back(*std::move(one));
  }
}

// ---- the three bodies --------------------------------------------------------------------------

void read_stream(field_reader& in, request& to) {
  in.flag("stream", to.stream);
  const json* const options = in.any("stream_options");
  if (options == nullptr || in.error()) return;
  if (!options->is_object()) return in.wrong("stream_options", "an object");
  field_reader fields(*options, "stream_options.");
  fields.flag("include_usage", to.include_usage);
  if (const auto& why = fields.error()) in.keep(*why);
}

void read_chat(field_reader& in, std::string_view body, request& to) {
  read_json(in, body, "messages", true, to.messages);
  if (to.messages.empty()) in.wrong("messages", "an array of at least one message");
  to.messages = settled_messages(to.messages, to.how);
  read_json(in, body, "tools", true, to.tools);
  if (in.any("tool_choice") != nullptr) to.tool_choice = raw_member(body, "tool_choice");
  read_json(in, body, "chat_template_kwargs", false, to.template_arguments);
  bool several = true;
  in.flag("parallel_tool_calls", several);
  to.one_call = !several;
  for (const char* name : {"functions", "function_call"})
    in.reject(name, "it is the form of old; give 'tools' and 'tool_choice'");
  in.flag("logprobs", to.how.logprobs);
  in.number("top_logprobs", 0, most_top_logprobs, to.how.n_top_logprobs);
  if (to.how.n_top_logprobs != 0 && !to.how.logprobs)
    in.keep(invalid("top_logprobs", "'top_logprobs' needs 'logprobs' to be true").error());
  in.reject("audio", "the model writes text only");
}

void read_suffix(field_reader& in, request& to) {
  std::string suffix;
  in.text("suffix", suffix);
  if (suffix.empty()) return;
  if (to.how.echo)
    in.keep(unsupported("suffix", "'echo' repeats a prompt that has no gap; leave one of them out")
                .error());
  to.gap = {.suffix = std::move(suffix), .others = {}, .member = "suffix"};
}

void read_completion(field_reader& in, uint32_t n_vocab, request& to) {
  read_inputs(in, "prompt", n_vocab, to.inputs);
  if (in.any("logprobs") != nullptr) {
    in.number("logprobs", 0, most_top_logprobs, to.how.n_top_logprobs);
    to.how.logprobs = true;
  }
  read_suffix(in, to);
  if (to.stream && to.how.echo)
    in.keep(unsupported("echo",
                        "an answer by events begins behind the prompt; leave out 'echo' or "
                        "'stream'")
                .error());
  in.number("best_of", 1, most_choices, to.how.best_of);
  if (to.how.best_of != 0 && to.how.best_of < to.how.n_choices)
    in.keep(invalid("best_of",
                    fmt::format("'best_of' is {}, and 'n' is {}: at least as many answers must be "
                                "generated as are given; raise 'best_of' or leave it out",
                                to.how.best_of, to.how.n_choices))
                .error());
}

void read_embeddings(field_reader& in, const model_limits& model, request& to) {
  read_inputs(in, "input", model.n_vocab, to.inputs);
  for (std::size_t i = 0; i < to.inputs.size(); ++i)
    if (const auto* const text = std::get_if<std::string>(&to.inputs[i]); text && text->empty())
      in.keep(invalid("input", fmt::format("text {} of 'input' is empty", i)).error());
  std::string format = "float";
  in.text("encoding_format", format);
  if (format != "float" && format != "base64")
    in.wrong("encoding_format", "\"float\" or \"base64\"");
  to.base64 = format == "base64";
  uint32_t dimensions = model.n_embedding;
  in.number("dimensions", 1, 1 << 20, dimensions);
  if (dimensions != model.n_embedding)
    in.keep(unsupported("dimensions", fmt::format("embeddings of this model have {} numbers; "
                                                  "leave it out",
                                                  model.n_embedding))
                .error());
}

}  // namespace

std::optional<endpoint> endpoint_of(std::string_view url) {
  if (url.starts_with("/v1/")) url.remove_prefix(3);
  if (url == "/chat/completions") return endpoint::chat;
  if (url == "/completions") return endpoint::completions;
  if (url == "/embeddings") return endpoint::embeddings;
  return std::nullopt;
}

const char* prompt_member(endpoint to) {
  return to == endpoint::chat ? "messages" : to == endpoint::completions ? "prompt" : "input";
}

parsed<request> parse_request(endpoint to, const json& body, std::string_view text,
                              const model_limits& model, const generation_wish& defaults) {
  field_reader in(body);
  request out;
  out.to = to;
  out.how = defaults;
  in.text("model", out.model);
  if (to == endpoint::embeddings) {
    read_embeddings(in, model, out);
  } else {
    if (to == endpoint::completions) in.flag("echo", out.how.echo);  // max_tokens depends on it
    read_generation(in, text, model.n_vocab, out.how);
    read_stream(in, out);
    if (to == endpoint::chat)
      read_chat(in, text, out);
    else
      read_completion(in, model.n_vocab, out);
  }
  if (const auto& why = in.error()) return std::unexpected(*why);
  return out;
}

}  // namespace bitnet::host::openai
