#include "api/edge.hpp"
#include "api/objects.hpp"

namespace {

using bitnet::api::guarded;
using bitnet::api::missing;
using bitnet::api::view;

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
