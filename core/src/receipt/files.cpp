#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "json/reading.hpp"
#include "plugin/codes/text.hpp"
#include "plugin/trust/trust.hpp"
#include "receipt/derived.hpp"
#include "receipt/digest.hpp"
#include "receipt/rules.hpp"

namespace bitnet::receipt {
namespace {

namespace fs = std::filesystem;

// The sum of a local file, read now, not from the cache. "": no such file. A file of another size
// than `bytes` is not read: the receipt may name any file.
result<std::string> sum_here(const fs::path& path, uint64_t bytes) {
  const auto file = plugin::open_any(path);
  if (!file && file.error().code == plugin::code::trust_missing) return std::string();
  if (!file) return bad_data(file.error().reason);
  if (file->identity.size_bytes != bytes)
    return fmt::format("that of {} bytes, in place of {}", file->identity.size_bytes, bytes);
  return sha256_of({file->fd.get(), file->identity.size_bytes, "", path});
}

std::string shown_path(const fs::path& path) {
  return plugin::printable(path.string(), 400);
}

}  // namespace

// A plugin that is not installed here is no fault of the receipt: only a note.
void check_plugins(const json::value& predicate, findings& found) {
  const json::value& plugins = json::member(predicate, "plugins");
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    const std::string field = fmt::format("plugins[{}].sha256", i);
    const fs::path path = text_in(plugins[i], "path");
    const auto note = [&](std::string text) {
      found.push_back({finding::level_type::note, "plugin", field, std::move(text)});
    };
    if (!path.is_absolute()) {
      note("not looked at: its path is not absolute");
      continue;
    }
    const auto is = sum_here(path, count_in(plugins[i], "bytes"));
    if (!is || is->empty())
      note(fmt::format("not looked at: {}",
                       is ? shown_path(path) + " is not here" : is.error().message));
    else if (*is != text_in(plugins[i], "sha256"))
      found.push_back(
          {finding::level_type::error, "plugin", field,
           fmt::format("{} is another file: its SHA-256 is {}", shown_path(path), *is)});
  }
}

// A split model or a checkpoint is given by one of its files or by its folder.
void check_model(const json::value& predicate, const fs::path& model, findings& found) {
  const json::value& of = json::member(predicate, "model");
  const json::value& files = json::member(of, "files");
  if (files.empty()) {
    found.push_back({finding::level_type::error, "model", "model", "it names no model"});
    return;
  }
  std::error_code ignored;
  const bool is_folder = fs::is_directory(model, ignored);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name = text_in(files[i], "name");
    const fs::path path = is_folder           ? model / fs::path(name).filename()
                          : files.size() == 1 ? model
                                              : model.parent_path() / fs::path(name).filename();
    const auto is = sum_here(path, count_in(files[i], "bytes"));
    const std::string field = fmt::format("model.files[{}].sha256", i);
    const auto reject_model = [&](std::string text) {
      found.push_back({finding::level_type::error, "model", field, std::move(text)});
    };
    if (!is)
      reject_model(is.error().message);
    else if (is->empty())
      reject_model(fmt::format("{} is not here", shown_path(path)));
    else if (*is != text_in(files[i], "sha256"))
      reject_model(fmt::format("{} is another file: its SHA-256 is {}", shown_path(path), *is));
  }
}

}  // namespace bitnet::receipt
