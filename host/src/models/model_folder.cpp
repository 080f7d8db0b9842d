#include "models/model_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

namespace bitnet::host {
namespace {

namespace fs = std::filesystem;

bool is_gguf(const fs::path& file) {
  std::error_code error;
  return file.extension() == ".gguf" && fs::is_regular_file(file, error);
}

// The only GGUF file of a folder, or the folder itself if it is a checkpoint, or "".
std::string model_of_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_regular_file(folder / "config.json", error)) return folder.string();
  std::string only;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_gguf(it->path())) continue;
    if (!only.empty()) return "";
    only = it->path().string();
  }
  return only;
}

}  // namespace

result<std::vector<model_source>> models_in(const std::string& folder) {
  std::map<std::string, std::string> found;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const fs::path& one = it->path();
    std::error_code ignored;
    if (is_gguf(one))
      found[one.stem().string()] = one.string();
    else if (fs::is_directory(one, ignored))
      if (std::string file = model_of_folder(one); !file.empty())
        found.emplace(one.filename().string(), std::move(file));
  }
  if (error)
    return fail(exit_code::usage,
                fmt::format("the folder of models '{}' cannot be read: {}; --models-dir names a "
                            "folder with GGUF files",
                            folder, error.message()));
  std::vector<model_source> out;
  out.reserve(found.size());
  for (const auto& [name, file] : found) out.push_back({name, file});
  return out;
}

}  // namespace bitnet::host
