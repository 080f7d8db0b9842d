#pragma once
// An answer as the events of a stream: the text of "data: {...}" lines, in the order that clients
// of OpenAI's API expect.
//
//   one chunk for each choice of a chat, with its role
//   chunks with text, reasoning or pieces of calls; finish_reason is null
//   one chunk for each choice, with an empty delta and its finish_reason
//   where the body asks for it, a chunk without choices, with the usage
//   data: [DONE]

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "library/handles.hpp"
#include "openai/answer.hpp"
#include "openai/answer_writer.hpp"
#include "openai/timings.hpp"

namespace bitnet::host::openai {

class chunk_writer final : public answer_writer {
 public:
  // All but `about` outlive it. An error has the status 500: memory is short.
  [[nodiscard]] static parsed<std::unique_ptr<chunk_writer>> open(const request& from,
                                                                  object_facts about,
                                                                  std::span<const prompt> prompts,
                                                                  const bitnet_model* with);

  [[nodiscard]] std::string begin() override;
  // "" while text is held back.
  [[nodiscard]] parsed<std::string> take(std::size_t prompt, const bitnet_event& e) override;
  [[nodiscard]] parsed<std::string> end(const timings& took) override;
  [[nodiscard]] std::string fail(const api_error& why) override;

 private:
  struct choice_state {
    std::size_t index = 0;       // index of the choice
    answer_handle parts;         // empty: all text is content
    std::size_t n_logprobs = 0;  // sent so far
    uint64_t n_characters = 0;   // of the tokens sent
    bool has_call = false;
  };

  chunk_writer(const request& from, object_facts about) : from_(from), about_(std::move(about)) {}
  [[nodiscard]] parsed<void> add_choices(const prompt& of);
  [[nodiscard]] std::string chunk_of(nlohmann::ordered_json choices) const;
  [[nodiscard]] std::string delta(choice_state& of, const choice& said,
                                  nlohmann::ordered_json content, const char* finish_reason);
  [[nodiscard]] nlohmann::ordered_json new_logprobs(choice_state& of, const choice& said) const;
  [[nodiscard]] parsed<std::string> text(choice_state& of, const choice& said,
                                         std::string_view piece, bool is_last);
  [[nodiscard]] std::string parts(choice_state& of, const choice& said);

  const request& from_;
  object_facts about_;
  std::string unbound_;                             // unbound tools of the prompts
  std::vector<collected_answer> answers_;           // one per prompt
  std::vector<std::vector<choice_state>> choices_;  // per prompt and choice
  std::size_t n_choices_ = 0;
};

}  // namespace bitnet::host::openai
