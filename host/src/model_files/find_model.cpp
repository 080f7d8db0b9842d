#include "model_files/find_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace bitnet::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view demo_prefix = "TinyTales";

// The last by name, so that v1.1 wins over v1.0.
std::string demo_in(const fs::path& folder) {
  std::string best;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(demo_prefix) && name.ends_with(".gguf") && name > best) best = name;
  }
  return best.empty() ? "" : (folder / best).string();
}

std::string listed(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& one : folders) text += (text.empty() ? "" : ", ") + one.string();
  return text;
}

}  // namespace

result<void> check_is_no_model(const std::string& target) {
  std::error_code error;
  if (!fs::is_regular_file(target, error)) return {};
  std::string magic(4, '\0');
  std::ifstream(target, std::ios::binary).read(magic.data(), 4);
  if (magic != "GGUF") return {};
  return fail(exit_code::usage, fmt::format("{} is a model; name another file", target));
}

std::vector<fs::path> model_folders(const environment& variables) {
  if (const auto only = variables.get("BITNET_MODELS")) return {fs::path(*only)};
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& one) {
    if (std::ranges::find(folders, one) == folders.end()) folders.push_back(one);
  };
  if (const auto home = variables.data_home()) add(*home / "bitnet/models");
  // The build tree and a moved prefix are laid out like an installation.
  const fs::path installed = fs::path(BITNET_INSTALL_PREFIX) / BITNET_MODEL_DIR;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error && program.parent_path() != fs::path(BITNET_INSTALL_PREFIX) / BITNET_BIN_DIR)
    add(program.parent_path().parent_path() / fs::path(BITNET_MODEL_DIR).relative_path());
  add(installed);
  return folders;
}

result<std::string> find_model(const std::string& wanted, const environment& variables) {
  const auto folders = model_folders(variables);
  if (wanted.empty()) {
    for (const fs::path& one : folders) {
      if (std::string found = demo_in(one); !found.empty()) return found;
    }
    return fail(exit_code::model,
                fmt::format("no model was given, and the demo model ({}*.gguf) is in none of: {}; "
                            "name a model with -m FILE",
                            demo_prefix, listed(folders)));
  }
  std::error_code error;
  if (fs::exists(wanted, error)) return wanted;
  if (error)  // an error other than a missing file
    return fail(exit_code::model,
                fmt::format("model file '{}' cannot be reached: {}; check who may read its folders",
                            wanted, error.message()));
  if (wanted.find('/') == std::string::npos) {
    for (const fs::path& one : folders) {
      for (const char* const suffix : {"", ".gguf"}) {
        const fs::path file = one / (wanted + suffix);
        if (fs::is_regular_file(file, error)) return file.string();
      }
    }
  }
  const bool prose = wanted.find(' ') != std::string::npos;
  return fail(exit_code::model,
              fmt::format("model file '{}' does not exist{}", wanted,
                          prose ? "; for the demo model with this prompt use -p" : ""));
}

}  // namespace bitnet::host
