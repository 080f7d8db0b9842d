#pragma once
// What tests of the loader share: a folder of their own, manifests written in one line, and a host
// that remembers what plugins said.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../scratch_folder.hpp"
#include "plugin/loading/backend.hpp"

namespace bitnet::test {

class folder : public scratch_folder {
 public:
  std::filesystem::path write(const std::filesystem::path& name, std::string_view text,
                              mode_t mode = 0644) const {
    const auto file = scratch_folder::write(name, text);
    if (chmod(file.c_str(), mode) != 0) throw std::runtime_error("chmod failed");
    return file;
  }

  // A copy of a fake backend, so that owner and mode are ours whatever the build tree's are.
  [[nodiscard]] std::filesystem::path fake(const std::string& name) const {
    return write("lib/libfake-" + name + ".so", read(built(name)), 0755);
  }

  [[nodiscard]] static std::filesystem::path built(const std::string& name) {
    const char* tree = std::getenv("BITNET_BINARY_DIR");
    return std::filesystem::path(tree == nullptr ? "." : tree) / "tests/fakes" /
           ("libfake-" + name + ".so");
  }
};

// What a plugin of this build speaks, as a manifest says it: "{major: 0, min: 0, max: 3}".
inline std::string abi_text() {
  std::string out = BITNET_ABI_RANGE;
  out.replace(out.find('.'), 1, ", min: ");
  out.replace(out.find('-'), 1, ", max: ");
  return "{major: " + out + "}";
}

// A manifest's text; `changes` replace fields' lines, a value of "" leaves the field out.
inline std::string manifest_text(const std::string& name, const std::filesystem::path& library,
                                 const std::map<std::string, std::string>& changes = {}) {
  std::string out;
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"schema", "1"},
           {"name", name},
           {"version", "1.2.3"},
           {"vendor", "org.example"},
           {"license", "CC0-1.0"},
           {"library", library.string()},
           {"abi", abi_text()},
           {"class", "other"},
       }) {
    const auto change = changes.find(key);
    const std::string& text = change == changes.end() ? value : change->second;
    if (!text.empty()) out += key + ": " + text + "\n";
  }
  for (const auto& [key, value] : changes)
    if (out.find("\n" + key + ":") == std::string::npos && key != "schema" && !value.empty())
      out += key + ": " + value + "\n";
  return out;
}

class recording_host final : public plugin::host_services {
 public:
  void log(uint32_t level, std::string_view component, std::string_view message) override {
    if (throws) throw std::runtime_error("log");
    lines.push_back(std::to_string(level) + " " + std::string(component) + ": " +
                    std::string(message));
  }
  uint32_t parallel_width() override {
    if (throws) throw std::runtime_error("width");
    return width;
  }
  bitnet_status parallel_run(uint32_t n, bitnet_task task, void* arg) override {
    if (throws) throw std::runtime_error("run");
    for (uint32_t w = 0; w < n; ++w) task(arg, w, n);
    return BITNET_OK;
  }
  bool cancelled(uint64_t token) override {
    if (throws) throw std::runtime_error("cancelled");
    return token == 7;
  }
  uint64_t now_ns() override {
    if (throws) throw std::runtime_error("now");
    return 42;
  }
  std::vector<std::pair<std::string, std::string>> params(std::string_view) override {
    return settings;
  }

  [[nodiscard]] bool said(std::string_view what) const {
    for (const std::string& line : lines)
      if (line.find(what) != std::string::npos) return true;
    return false;
  }

  bool throws = false;
  uint32_t width = 3;
  std::vector<std::string> lines;
  std::vector<std::pair<std::string, std::string>> settings;
};

}  // namespace bitnet::test
