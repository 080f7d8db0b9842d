#include "model/model.hpp"

#define XXH_INLINE_ALL
#include <fmt/core.h>

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "gguf/text.hpp"
#include "huggingface/checkpoint.hpp"
#include "huggingface/folder.hpp"
#include "model/architectures/architecture.hpp"
#include "model/read.hpp"

namespace bitnet::model {

namespace {

result<gguf::file> open_any_form(const std::filesystem::path& path, bool metadata_only) {
  if (huggingface::is_checkpoint(path)) return huggingface::open(path, checkpoint_forms());
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return std::unexpected(huggingface::no_checkpoint(path));
  return gguf::file::open(path,
                          metadata_only ? gguf::file::shards::first : gguf::file::shards::all);
}

}  // namespace

result<gguf::file> open_file(const std::filesystem::path& path, gguf::file_judge* judge,
                             bool metadata_only) {
  const gguf::file_judge::scope judged(judge);
  auto opened = open_any_form(path, metadata_only);
  if (opened && judge != nullptr)
    if (auto ok = judge->conclude(); !ok) return std::unexpected(std::move(ok.error()));
  return opened;
}

struct model::contents {
  loaded data;
  tokenizer::tokenizer tokens;
  std::mutex scales_mutex{};  // guards what follows, and weight::scales
  uint32_t scales_held = 0;
  bool scales_are_there = true;
  load_options read_by{};
  std::mutex fingerprint_mutex{};  // guards what follows
  std::string fingerprint{};       // "": not computed yet
};

result<model> model::load(const std::filesystem::path& file, const load_options& options) {
  const std::string which = gguf::quote(file.native());
  auto opened = open_file(file, options.judge, options.vocabulary_only);
  if (!opened) return std::unexpected(opened.error());
  auto data = read(std::move(*opened), options);
  if (!data) return pass_on(std::move(data), which);
  auto tokens = tokenizer::tokenizer::make(std::move(data->vocabulary));
  if (auto ok = data->file.check_size(); !ok) return std::unexpected(ok.error());
  if (!tokens) return pass_on(std::move(tokens), which);
  auto made = std::make_unique<contents>(std::move(*data), std::move(*tokens));
  made->read_by = options;
  made->read_by.judge = nullptr;
  return model(std::move(made));
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
transform model::embedding_transform() const {
  return contents_->data.embedding_transform;
}
uint32_t model::output_norm() const {
  return contents_->data.output_norm;
}
uint32_t model::output() const {
  return contents_->data.output;
}
rotation model::rotation_of(uint32_t n_context) const {
  const loaded& m = contents_->data;
  const hyperparameters& shape = m.shape;
  rotation out{shape.rope_base, shape.rope_scale, m.rope_divisors, shape.rope_scaling.magnitude};
  if (shape.rope_scaling.kind == stretch::dynamic)
    out.base = dynamic_base(shape.rope_scaling, shape.rope_base, shape.rope_dims, n_context);
  if (shape.rope_scaling.kind == stretch::longrope &&
      n_context > shape.rope_scaling.original_context)
    out.divisors = m.rope_divisors_long;
  return out;
}

rotation model::local_rotation() const {
  return {.base = contents_->data.shape.local_rope_base};
}

result<model::scales_hold> model::hold_scales() const {
  contents& c = *contents_;
  const std::lock_guard lock(c.scales_mutex);
  if (!c.scales_are_there)
    if (auto ok = recall_scales(c.data); !ok) return std::unexpected(std::move(ok.error()));
  c.scales_are_there = true;
  ++c.scales_held;
  return scales_hold(&c, [&c](const void*) {
    const std::lock_guard last(c.scales_mutex);
    if (--c.scales_held != 0) return;
    // Assigning {} would keep the capacity.
    for (weight& w : c.data.weights) std::vector<float>().swap(w.scales);
    c.scales_are_there = false;
  });
}

std::string model::ignored() const {
  return ignored_of(contents_->data);
}

std::vector<std::string> model::left_out() const {
  std::vector<std::string> out;
  for (const gguf::left_out_member& one : contents_->data.file.left_out())
    out.push_back(fmt::format("{} ({})", gguf::name_of(one), one.why));
  return out;
}

std::string model::weight_identity(uint32_t index) const {
  const loaded& m = contents_->data;
  const std::span<const std::byte> bytes = m.sources[index].bytes;
  const gguf::mapping* file = m.file.mapping_of(bytes);
  if (file == nullptr) return "";
  constexpr uint64_t samples = 64;
  constexpr uint64_t sample_bytes = 4096;
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t at = bytes.size() / samples * i;
    const auto sample = bytes.subspan(at, std::min(sample_bytes, bytes.size() - at));
    XXH3_64bits_update(&hash, sample.data(), sample.size());
  }
  const weight& w = m.weights[index];
  return fmt::format("{}:{}:{}:{}:{}:{}x{}", file->identity(), bytes.data() - file->bytes().data(),
                     XXH3_64bits_digest(&hash), w.name, w.format, w.ne[0], w.ne[1]);
}

namespace {

// Reads the file, not the mapping: pages of the mapping would stay in memory beside a backend's
// copy.
result<void> add_file(const gguf::mapping& file, XXH3_state_t& hash) {
  std::vector<std::byte> piece(std::size_t{1} << 20);
  for (uint64_t at = 0; at < file.bytes().size();) {
    const ssize_t n =
        ::pread(file.descriptor(), piece.data(), piece.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return bad_data(
          fmt::format("{}: expected {} bytes, found {}: the file was changed or cannot "
                      "be read; open the model again",
                      gguf::quote(file.path().native()), file.bytes().size(), at));
    XXH3_128bits_update(&hash, piece.data(), static_cast<std::size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  return {};
}

}  // namespace

result<std::string> model::fingerprint() const {
  contents& c = *contents_;
  const std::lock_guard lock(c.fingerprint_mutex);
  if (!c.fingerprint.empty()) return c.fingerprint;
  XXH3_state_t hash;
  XXH3_128bits_reset(&hash);
  for (const gguf::mapping& file : c.data.file.mappings())
    if (auto ok = add_file(file, hash); !ok) return std::unexpected(std::move(ok.error()));
  const auto metadata = c.data.file.composed_metadata();
  XXH3_128bits_update(&hash, metadata.data(), metadata.size());
  const load_options& by = c.read_by;
  const std::string how =
      fmt::format("{} {} {} {}", by.i2s_layout, static_cast<int>(by.tl1_tiles),
                  by.gate ? static_cast<int>(*by.gate) : -1, static_cast<int>(by.activations));
  XXH3_128bits_update(&hash, how.data(), how.size());
  if (auto ok = check_file(); !ok) return std::unexpected(std::move(ok.error()));
  const XXH128_hash_t sum = XXH3_128bits_digest(&hash);
  c.fingerprint = fmt::format("{:016x}{:016x}", sum.high64, sum.low64);
  return c.fingerprint;
}

std::vector<model::source_file> model::files() const {
  std::vector<source_file> out;
  for (const gguf::mapping& file : contents_->data.file.mappings())
    out.push_back({file.path(), file.descriptor(), file.bytes().size(), file.identity()});
  return out;
}

void model::feed_tokenizer(const std::function<void(std::span<const std::byte>)>& to) const {
  std::vector<const gguf::entry*> entries;
  for (const gguf::entry& one : contents_->data.file.metadata().entries())
    if (one.key.starts_with("tokenizer.")) entries.push_back(&one);
  std::ranges::sort(entries, {}, &gguf::entry::key);
  const auto feed = [&](std::span<const std::byte> bytes) {
    const uint64_t size = bytes.size();
    to(std::as_bytes(std::span(&size, 1)));
    to(bytes);
  };
  for (const gguf::entry* one : entries) {
    feed(std::as_bytes(std::span(one->key.data(), one->key.size())));
    feed(one->content.bytes);
  }
}

result<void> model::check_file() const {
  return contents_->data.file.check_size();
}

result<void> model::check_read() const {
  return contents_->data.file.check_read();
}

result<void> model::stream_weight(uint32_t index, const sink& to) const {
  const loaded& m = contents_->data;
  auto streamed = stream(m, index, to);
  // The receiver has copied the bytes, so the file's pages are not needed.
  m.file.give_back(m.sources[index].bytes);
  return streamed;
}

}  // namespace bitnet::model
