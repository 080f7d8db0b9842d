#include "api/edge.hpp"
#include "api/objects.hpp"
#include "chat/fitting.hpp"
#include "chat/template.hpp"

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;
using bitnet::api::view;

std::string_view template_of(const bitnet_model& model, const char* name) {
  const std::string_view wanted = name == nullptr ? "auto" : name;
  if (!wanted.empty() && wanted != "auto") return wanted;
  std::call_once(model.chat_once, [&] {
    model.chat = bitnet::chat::choose(model.model.tokens());
    if (model.runtime == nullptr) return;
    model.runtime->services.log(
        model.chat.set_aside ? BITNET_LOG_WARN : BITNET_LOG_INFO, "chat",
        model.chat.set_aside
            ? fmt::format("{}; the built-in form {} is; name a template to have another",
                          model.chat.why, model.chat.form)
            : fmt::format("the form is {}: {}", model.chat.form, model.chat.why));
  });
  return model.chat.form;
}

bitnet::result<std::vector<bitnet::chat::message>> messages_of(const bitnet_message* messages,
                                                               uint64_t n, uint32_t size) {
  std::vector<bitnet::chat::message> out;
  constexpr uint32_t first_size = 32;
  for (uint64_t i = 0; i < n; ++i) {
    const auto one = bitnet::api::element_of(messages, i, size, first_size, "a message");
    if (!one) return std::unexpected(one.error());
    out.push_back({view(one->role), view(one->content)});
  }
  return out;
}

}  // namespace

bitnet_status bitnet_tokenize(const bitnet_model* model, bitnet_str text, uint32_t flags,
                              bitnet_token* out, uint64_t capacity, uint64_t* count,
                              bitnet_error* err) {
  return guarded(err, "bitnet_tokenize", [&]() -> bitnet::result<void> {
    using bos = bitnet::tokenizer::encode_options::bos;
    if (model == nullptr || count == nullptr) return missing("model or count");
    bitnet::tokenizer::encode_options options;
    options.add_bos = (flags & BITNET_TOKENIZE_ADD_BOS) != 0     ? bos::always
                      : (flags & BITNET_TOKENIZE_MODEL_BOS) != 0 ? bos::if_model_asks
                                                                 : bos::never;
    options.parse_special = (flags & BITNET_TOKENIZE_PARSE_SPECIAL) != 0;
    auto ids = model->model.tokens().encode(view(text), options);
    if (!ids) return std::unexpected(ids.error());
    const auto& tokens = model->model.tokens();
    if ((flags & BITNET_TOKENIZE_MODEL_EOS) != 0 && tokens.adds_eos() && tokens.eos())
      ids->push_back(*tokens.eos());
    *count = ids->size();
    if (out != nullptr) std::copy_n(ids->begin(), std::min<uint64_t>(capacity, ids->size()), out);
    return {};
  });
}

bitnet_status bitnet_detokenize(const bitnet_model* model, const bitnet_token* ids, uint64_t n,
                                uint32_t flags, char* out, uint64_t capacity, uint64_t* needed,
                                bitnet_error* err) {
  return guarded(err, "bitnet_detokenize", [&]() -> bitnet::result<void> {
    if (model == nullptr || (ids == nullptr && n != 0)) return missing("model or ids");
    auto text = model->model.tokens().decode({ids, n}, (flags & BITNET_DETOKENIZE_SPECIAL) != 0);
    if (!text) return std::unexpected(text.error());
    return bitnet::api::give_text(*text, out, capacity, needed);
  });
}

int32_t bitnet_token_ends_generation(const bitnet_model* model, bitnet_token id) {
  return model != nullptr && model->model.tokens().ends_generation(id) ? 1 : 0;
}

void bitnet_chat_defaults(bitnet_chat_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_chat_tokenize(const bitnet_model* model, const bitnet_chat_options* options,
                                   const bitnet_message* messages, uint32_t message_size,
                                   uint64_t n, bitnet_token* out, uint64_t capacity,
                                   uint64_t* count, uint64_t* left_out, bitnet_error* err) {
  return guarded(err, "bitnet_chat_tokenize", [&]() -> bitnet::result<void> {
    if (model == nullptr || count == nullptr || (messages == nullptr && n != 0))
      return missing("model, count or messages");
    const auto taken = bitnet::api::take_options(options, bitnet_chat_defaults);
    if (!taken) return std::unexpected(taken.error());
    const auto list = messages_of(messages, n, message_size);
    if (!list) return std::unexpected(list.error());
    const auto prompt =
        bitnet::chat::fit(template_of(*model, taken->template_name), model->model.tokens(), *list,
                          taken->parse_special != 0, taken->n_context);
    if (!prompt) return std::unexpected(prompt.error());
    const auto& ids = prompt->ids;
    *count = ids.size();
    if (left_out != nullptr) *left_out = prompt->left_out;
    if (out != nullptr) std::copy_n(ids.begin(), std::min<uint64_t>(capacity, ids.size()), out);
    return {};
  });
}

bitnet_status bitnet_chat_format(const bitnet_model* model, const char* template_name,
                                 const bitnet_message* messages, uint32_t message_size, uint64_t n,
                                 char* out, uint64_t capacity, uint64_t* needed,
                                 bitnet_error* err) {
  return guarded(err, "bitnet_chat_format", [&]() -> bitnet::result<void> {
    if (model == nullptr || (messages == nullptr && n != 0)) return missing("model or messages");
    const auto list = messages_of(messages, n, message_size);
    if (!list) return std::unexpected(list.error());
    // A template may look at the clock.
    const std::string_view form = template_of(*model, template_name);
    std::string of = fmt::format("chat {} {}", static_cast<const void*>(model), form);
    for (const auto& m : *list) of.append("\n").append(m.role).append("\n").append(m.content);
    return bitnet::api::give_changing_text(
        of, out, capacity, needed, [&]() -> bitnet::result<std::string> {
          auto text = bitnet::chat::format(form, model->model.tokens(), *list);
          if (!text) return std::unexpected(text.error());
          return text->bytes();
        });
  });
}
