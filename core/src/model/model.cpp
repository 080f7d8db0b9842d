#include "model/model.hpp"

#include "gguf/text.hpp"
#include "huggingface/checkpoint.hpp"
#include "model/read.hpp"

namespace bitnet::model {

result<gguf::file> open_file(const std::filesystem::path& path, bool metadata_only) {
  if (huggingface::is_checkpoint(path)) return huggingface::open(path);
  return gguf::file::open(path,
                          metadata_only ? gguf::file::shards::first : gguf::file::shards::all);
}

struct model::contents {
  loaded data;
  tokenizer::tokenizer tokens;
};

result<model> model::load(const std::filesystem::path& file, const load_options& options) {
  const std::string which = gguf::quote(file.native());
  auto opened = open_file(file, options.vocabulary_only);
  if (!opened) return std::unexpected(opened.error());
  auto data = read(std::move(*opened), options);
  if (!data) return pass_on(std::move(data), which);
  auto tokens = tokenizer::tokenizer::make(std::move(data->vocabulary));
  if (!tokens) return pass_on(std::move(tokens), which);
  return model(std::make_unique<contents>(std::move(*data), std::move(*tokens)));
}

model::model(std::unique_ptr<contents> c) : contents_(std::move(c)) {}
model::model(model&&) noexcept = default;
model& model::operator=(model&&) noexcept = default;
model::~model() = default;

const hyperparameters& model::shape() const {
  return contents_->data.shape;
}
const tokenizer::tokenizer& model::tokens() const {
  return contents_->tokens;
}
std::span<const weight> model::weights() const {
  return contents_->data.weights;
}
std::span<const layer> model::layers() const {
  return contents_->data.layers;
}
uint32_t model::token_embedding() const {
  return contents_->data.token_embedding;
}
uint32_t model::output_norm() const {
  return contents_->data.output_norm;
}
uint32_t model::output() const {
  return contents_->data.output;
}
uint32_t model::rope_freqs() const {
  return contents_->data.rope_freqs;
}

result<void> model::stream_weight(uint32_t index, const sink& to) const {
  return stream(contents_->data, index, to);
}

}  // namespace bitnet::model
