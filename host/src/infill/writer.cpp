#include "infill/writer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "infill/request.hpp"

namespace bitnet::host::infill {
namespace {

using nlohmann::ordered_json;
using openai::line_of;

const char* stop_type_of(uint32_t reason) {
  switch (reason) {
    case BITNET_STOP_LENGTH:
    case BITNET_STOP_CONTEXT:
      return "limit";
    case BITNET_STOP_STRING:
      return "word";
    default:
      return "eos";
  }
}

// Picks the requested members, each named by its path: "timings/prompt_n".
ordered_json picked(const ordered_json& all, const std::string& paths) {
  ordered_json out = ordered_json::object();
  for (const auto& path : ordered_json::parse(paths)) {
    const auto& text = path.get_ref<const std::string&>();
    const ordered_json* at = &all;
    for (std::size_t begin = 0; at != nullptr && begin <= text.size();) {
      const std::size_t end = std::min(text.find('/', begin), text.size());
      const auto found = at->is_object() ? at->find(text.substr(begin, end - begin)) : at->end();
      at = at->is_object() && found != at->end() ? &*found : nullptr;
      begin = end + 1;
    }
    if (at != nullptr) out[text] = *at;
  }
  return out;
}

class writer final : public openai::answer_writer {
 public:
  writer(const openai::request& from, openai::object_facts about)
      : from_(from), about_(std::move(about)) {}

  [[nodiscard]] openai::parsed<std::string> take(std::size_t /*prompt*/,
                                                 const bitnet_event& e) override {
    if (e.kind == BITNET_EVENT_END) last_ = end_of(e);
    if (e.kind != BITNET_EVENT_TEXT || e.text.size == 0 || only_computes()) return "";
    const std::string piece(e.text.data, e.text.size);
    if (from_.stream)
      return event({{"index", 0}, {"content", piece}, {"stop", false}, {"model", about_.model}});
    text_ += piece;
    return "";
  }

  [[nodiscard]] openai::parsed<std::string> end(const openai::timings& took) override {
    ordered_json out = {{"index", 0}, {"content", text_}, {"stop", true}, {"model", about_.model}};
    out.update(last_);
    out["timings"] = took.json();
    out["system_fingerprint"] = about_.fingerprint;
    if (!from_.answer_members.empty()) out = picked(out, from_.answer_members);
    return from_.stream ? event(out) : line_of(out);
  }

  [[nodiscard]] std::string fail(const openai::api_error& why) override {
    return event(openai::error_body(why));
  }

 private:
  static std::string event(const ordered_json& content) {
    return fmt::format("data: {}\n\n", line_of(content));
  }

  [[nodiscard]] bool only_computes() const { return from_.gap && from_.gap->only_computes; }

  [[nodiscard]] ordered_json end_of(const bitnet_event& e) const {
    const auto& stops = from_.how.stops;
    const bool by_word = e.stop_reason == BITNET_STOP_STRING && e.stop_index < stops.size();
    return {{"tokens_predicted", only_computes() ? 0 : e.n_generated},
            {"tokens_evaluated", e.n_prompt},
            {"tokens_cached", e.n_cached},
            {"truncated", false},
            {"stop_type", stop_type_of(e.stop_reason)},
            {"stopping_word", by_word ? stops[e.stop_index] : ""}};
  }

  const openai::request& from_;
  openai::object_facts about_;
  std::string text_;  // collected if the answer is no stream
  ordered_json last_ = ordered_json::object();
};

openai::parsed<std::unique_ptr<openai::answer_writer>> open_writer(
    const openai::request& from, openai::object_facts about,
    std::span<const openai::prompt> /*prompts*/, const bitnet_model* /*with*/) {
  return std::make_unique<writer>(from, std::move(about));
}

ordered_json error_of_gap(const openai::api_error& why) {
  openai::api_error named = why;
  if (why.param == "prompt") named.param = "input_prefix";
  return openai::error_body(named);
}

}  // namespace

const openai::api_form& form() {
  static const openai::api_form out{openai::endpoint::completions, "infill-", parse_request,
                                    open_writer, error_of_gap};
  return out;
}

}  // namespace bitnet::host::infill
