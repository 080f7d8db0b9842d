#include "huggingface/folder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "gguf/stand_in.hpp"
#include "gguf/text.hpp"

namespace bitnet::huggingface {
namespace {

namespace fs = std::filesystem;
using gguf::quote;

constexpr std::size_t most_entries = 10000;  // entries read at most

// Names in the folder, sorted; nullopt: unreadable, with the reason in `error`.
std::optional<std::vector<std::string>> names_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> out;
  fs::directory_iterator it(folder, error), end;
  for (; !error && it != end && out.size() < most_entries; it.increment(error))
    out.push_back(it->path().filename().native());
  if (error) return std::nullopt;
  std::ranges::sort(out);
  return out;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// The first name with this ending; "": none.
std::string first_with_end(const std::vector<std::string>& names, std::string_view end) {
  const auto found =
      std::ranges::find_if(names, [&](const std::string& n) { return n.ends_with(end); });
  return found == names.end() ? "" : *found;
}

// Describes weights in other programs' forms, and what to do.
std::string other_weights(const std::vector<std::string>& names) {
  for (const std::string_view end :
       {".bin.index.json", "pytorch_model.bin", ".pth", ".pt", ".ckpt", ".msgpack", ".h5", ".bin"})
    if (const std::string found = first_with_end(names, end); !found.empty())
      return fmt::format(
          "its weights are in {}, which can hold code and is not read; load it with "
          "transformers and save it with save_pretrained(), which writes safetensors",
          quote(found));
  return "";
}

// Lists the folder's GGUF files, and which one to name.
std::string gguf_files(const std::vector<std::string>& names) {
  const auto is_gguf = [](const std::string& n) { return n.ends_with(".gguf"); };
  const auto count = std::ranges::count_if(names, is_gguf);
  if (count == 0) return "";
  const auto is_first = [](const std::string& n) { return n.contains("-00001-of-"); };
  const auto first_part =
      std::ranges::find_if(names, [&](const std::string& n) { return is_gguf(n) && is_first(n); });
  const bool split = first_part != names.end();
  return fmt::format("is a folder with {} GGUF file{}; name {}, {}", count, count == 1 ? "" : "s",
                     split        ? "the first part"
                     : count == 1 ? "the file"
                                  : "one of them",
                     quote(split ? *first_part : first_with_end(names, ".gguf")));
}

std::string without_config(const fs::path& folder, const std::vector<std::string>& names) {
  if (names.empty()) return "is an empty folder; download the model into it";
  const auto is_hidden = [](const std::string& n) { return n.starts_with('.'); };
  if (has(names, ".git") && std::ranges::all_of(names, is_hidden))
    return "is a git repository without files; run `git checkout HEAD -- .` in it, or clone it "
           "again";
  if (std::string files = gguf_files(names); !files.empty()) return files;
  std::error_code ignored;
  if (fs::is_directory(folder / "snapshots", ignored)) {
    std::error_code unreadable;
    const auto all = names_in(folder / "snapshots", unreadable);
    return fmt::format(
        "is a folder of Hugging Face's cache; name the folder of a revision below it{}",
        all && !all->empty() ? ", " + quote((folder / "snapshots" / all->front()).native())
                             : ", which `hf download` makes: there is none yet");
  }
  if (has(names, "adapter_config.json"))
    return "is an adapter (LoRA), which needs its model; merge both with peft's merge_and_unload() "
           "and "
           "save them with save_pretrained()";
  if (!first_with_end(names, ".safetensors").empty())
    return "has weights in safetensors but no config.json, which says how to compute with them; "
           "download it too";
  if (const std::string other = other_weights(names); !other.empty())
    return "has no config.json, and " + other;
  return "is a folder without a config.json; name a .gguf file inside it, or the folder of a "
         "Hugging "
         "Face checkpoint";
}

// "tokenizer.json", or "'model-2.safetensors' (file 2 of 3 in the index)", since that name is
// untrusted.
std::string place_of(const std::string& name, const std::string& listed_as) {
  return listed_as.empty() ? name : fmt::format("{} ({})", quote(name), listed_as);
}

}  // namespace

result<gguf::mapping> open_member(const fs::path& folder, const std::string& name,
                                  const std::string& listed_as) {
  const std::string which = place_of(name, listed_as);
  std::error_code unknown;
  const fs::file_status there = fs::symlink_status(folder / name, unknown);
  if (there.type() == fs::file_type::not_found)
    return fail(
        BITNET_NOT_FOUND,
        fmt::format("{} is not in the folder; download the model again, or this file", which));
  if (there.type() == fs::file_type::symlink && !fs::exists(folder / name, unknown) && !unknown)
    return fail(
        BITNET_NOT_FOUND,
        fmt::format("{} is a link to a file that is not there; download the model again", which));
  if (std::error_code none;
      fs::is_regular_file(folder / name, none) && fs::file_size(folder / name, none) == 0)
    return bad_data(fmt::format("{} is empty; download it again", which));
  auto mapped = gguf::mapping::open(folder / name);
  if (!mapped) return pass_on(std::move(mapped), which);
  if (const std::string what = gguf::stand_in(mapped->bytes()); !what.empty())
    return bad_data(fmt::format("{} {}", which, what));
  return mapped;
}

result<gguf::mapping> open_weights(const fs::path& folder) {
  constexpr const char* name = "model.safetensors";
  auto mapped = open_member(folder, name);
  if (mapped || mapped.error().status != BITNET_NOT_FOUND) return mapped;
  std::error_code unreadable;
  const auto names = names_in(folder, unreadable);
  if (!names || has(*names, name)) return mapped;
  const std::string shard = first_with_end(*names, ".safetensors");
  if (shard.contains("-of-"))
    return fail(
        BITNET_NOT_FOUND,
        fmt::format("has {}, a part of the weights, but no model.safetensors.index.json, which "
                    "says what the parts are; download it too",
                    quote(shard)));
  if (const std::string other = other_weights(*names); !other.empty())
    return fail(BITNET_UNSUPPORTED, "has no model.safetensors: " + other);
  if (std::string files = gguf_files(*names); !files.empty())
    return fail(BITNET_NOT_FOUND, "has no model.safetensors, and " + files);
  return mapped;
}

result<gguf::mapping> open_tokenizer(const fs::path& folder) {
  auto mapped = open_member(folder, "tokenizer.json");
  if (mapped || mapped.error().status != BITNET_NOT_FOUND) return mapped;
  std::error_code unreadable;
  const auto names = names_in(folder, unreadable);
  if (!names || has(*names, "tokenizer.json")) return mapped;
  for (const std::string_view older :
       {"tokenizer.model", "spiece.model", "vocab.json", "vocab.txt"})
    if (has(*names, older))
      return fail(
          BITNET_UNSUPPORTED,
          fmt::format("has no tokenizer.json, and {} is not read; load it with transformers' "
                      "AutoTokenizer and save it with save_pretrained(), which writes one",
                      older));
  return mapped;
}

failure no_checkpoint(const fs::path& folder) {
  std::error_code error;
  const auto names = names_in(folder, error);
  if (!names)
    return {BITNET_NOT_FOUND, fmt::format("{}: cannot be read: {}; check who may read it",
                                          quote(folder.native()), error.message())};
  return {BITNET_BAD_DATA,
          fmt::format("{}: {}", quote(folder.native()), without_config(folder, *names))};
}

}  // namespace bitnet::huggingface
