#pragma once
// What the tests of reloading share: a folder with plugins and manifests that change, a runtime
// that looks there, and one line for each thing that a program does with it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../demo_model.hpp"
#include "../scratch_folder.hpp"
#include "bitnet/bitnet.h"

namespace bitnet::test {

inline std::string read(const std::filesystem::path& file) {
  return scratch_folder::read(file);
}

// The plugin as if it had been built again: the same code under another build id.
inline std::string rebuilt(std::string plugin, uint32_t serial) {
  const char head[] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
  const auto at = plugin.find(std::string_view(head, sizeof head));
  if (at == std::string::npos) throw std::runtime_error("the plugin has no sha1 build id");
  std::memcpy(plugin.data() + at + sizeof head, &serial, sizeof serial);
  return plugin;
}

// The same file with other bytes, while processes have it mapped.
inline void overwrite(const std::filesystem::path& file, std::string_view bytes) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot write to " + file.string());
  const auto written = ::pwrite(fd, bytes.data(), bytes.size(), 0);
  ::close(fd);
  if (written != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("a short write");
}

class yard {
 public:
  yard() {
    std::filesystem::create_directories(path_ / "lib");
    std::filesystem::create_directories(path_ / "manifests");
  }

  [[nodiscard]] std::filesystem::path library(const std::string& name) const {
    return path_ / "lib" / ("libbitnet-backend-" + name + ".so");
  }
  [[nodiscard]] std::filesystem::path manifest(const std::string& name) const {
    return path_ / "manifests" / ("50-" + name + ".yaml");
  }
  [[nodiscard]] std::string manifests() const { return (path_ / "manifests").string(); }

  // As package managers do it: a new file, renamed over the old one.
  void replace(const std::filesystem::path& file, std::string_view bytes, mode_t mode) const {
    const std::filesystem::path fresh = file.string() + ".new";
    std::ofstream(fresh, std::ios::binary) << bytes;
    if (chmod(fresh.c_str(), mode) != 0) throw std::runtime_error("chmod failed");
    std::filesystem::rename(fresh, file);
  }
  void install(const std::string& name, std::string_view bytes) const {
    replace(library(name), bytes, 0755);
  }
  void describe(const std::string& name, const std::string& more = "") const {
    replace(manifest(name),
            "schema: 1\nname: " + name +
                "\nversion: 0.1.0\nvendor: org.bitnet\nlicense: Apache-2.0" + "\nlibrary: " +
                library(name).string() + "\nabi: {major: 0, min: 1, max: 1}\nclass: cpu\n" + more,
            0644);
  }

 private:
  scratch_folder folder_;
  std::filesystem::path path_ = folder_.path();
};

struct failed_call : std::runtime_error {
  failed_call(bitnet_status s, const bitnet_error& e)
      : std::runtime_error(std::string(e.message)), status(s), error(e) {}
  bitnet_status status;
  bitnet_error error;
};

inline bitnet_error blank() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

// A runtime and a model on `device`.
class program {
 public:
  program(const yard& y, const std::string& device, const bitnet_model_options* options = nullptr,
          const std::string& file = demo_model(), uint32_t probe_wait_ms = 60'000) {
    const std::string folder = y.manifests();
    const char* const folders[] = {folder.c_str()};
    bitnet_runtime_options o;
    bitnet_runtime_defaults(&o, sizeof o);
    o.probe_wait_ms = probe_wait_ms;  // probes are idle: a busy machine keeps them waiting
    if (probe_wait_ms == 0) o.probe_cache = "";  // no probe goes on when the test has ended
    o.device = device.c_str();
    o.n_threads = 2;
    o.poll = 0;  // these tests have more threads than CPUs
    o.manifest_dirs = folders;
    o.n_manifest_dirs = 1;
    o.log_user = this;
    o.log = [](void* self, uint32_t, const char* line) {
      auto& p = *static_cast<program*>(self);
      const std::scoped_lock lock(p.mutex_);
      p.log_ += std::string(line) + "\n";
    };
    bitnet_error e = blank();
    if (const auto s = bitnet_runtime_open(&o, &runtime, &e); s != BITNET_OK)
      throw failed_call(s, e);
    if (const auto s = bitnet_model_open(runtime, file.c_str(), options, &model, &e);
        s != BITNET_OK)
      throw failed_call(s, e);
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program() {
    bitnet_model_close(model);
    bitnet_runtime_close(runtime);
  }

  [[nodiscard]] std::string log() {
    const std::scoped_lock lock(mutex_);
    return log_;
  }

  void forget_log() {
    const std::scoped_lock lock(mutex_);
    log_ = {};
  }

  // The report of a reload; throws failed_call.
  nlohmann::json reload(const std::string& backend, uint32_t policy = BITNET_RELOAD_FINISH) {
    bitnet_reload_options o;
    bitnet_reload_defaults(&o, sizeof o);
    o.policy = policy;
    return reload(backend, o);
  }
  nlohmann::json reload(const std::string& backend, bitnet_reload_options o) {
    std::string text;
    o.report_user = &text;
    o.report = [](void* to, bitnet_str json) {
      static_cast<std::string*>(to)->assign(json.data, json.size);
    };
    bitnet_error e = blank();
    if (const auto s = bitnet_backend_reload(runtime, backend.c_str(), &o, &e); s != BITNET_OK)
      throw failed_call(s, e);
    return nlohmann::json::parse(text);
  }

  // What the report says of a backend.
  nlohmann::json backend(const std::string& name) {
    uint64_t n = 0;
    bitnet_runtime_report(runtime, nullptr, 0, &n, nullptr);
    std::string text(n, '\0');
    bitnet_runtime_report(runtime, text.data(), n, &n, nullptr);
    const auto report = nlohmann::json::parse(text);
    for (const auto& b : report["backends"])
      if (b["name"] == name) return b;
    return nlohmann::json::object();
  }

  // "active", "draining", ... of the copies of a backend, oldest first.
  std::vector<std::string> generations(const std::string& name) {
    std::vector<std::string> out;
    for (const auto& g : backend(name).value("generations", nlohmann::json::array()))
      out.push_back(g["state"]);
    return out;
  }

  bitnet_runtime* runtime = nullptr;
  bitnet_model* model = nullptr;

 private:
  std::mutex mutex_;
  std::string log_;
};

inline bitnet_session_options usual() {
  bitnet_session_options o;
  bitnet_session_defaults(&o, sizeof o);
  o.n_context = 256;
  o.n_batch = 32;
  o.deterministic = 1;
  return o;
}

// So many tokens, the most probable each time; points to its own sampling.
struct greedy {
  explicit greedy(int32_t n) {
    bitnet_sampling_defaults(&sampling, sizeof sampling);
    sampling.temperature = 0;
    sampling.ignore_eos = 1;
    bitnet_generation_defaults(&generation, sizeof generation);
    generation.max_tokens = n;
    generation.sampling = &sampling;
  }
  greedy(const greedy&) = delete;
  greedy& operator=(const greedy&) = delete;

  bitnet_sampling sampling{};
  bitnet_generation generation{};
};

class conversation {
 public:
  explicit conversation(program& p, const bitnet_session_options& o = usual()) : program_(p) {
    bitnet_error e = blank();
    if (const auto s = bitnet_session_open(p.model, &o, &handle, &e); s != BITNET_OK)
      throw failed_call(s, e);
  }
  conversation(const conversation&) = delete;
  conversation& operator=(const conversation&) = delete;
  ~conversation() { bitnet_session_close(handle); }

  // The text that follows, greedily; `each` is called with every piece.
  std::string generate(const std::string& prompt, int32_t n,
                       const std::function<void(int)>& each = nullptr) {
    uint64_t count = 0;
    bitnet_error e = blank();
    const uint32_t flags = prompt.empty() ? 0 : BITNET_TOKENIZE_MODEL_BOS;
    bitnet_tokenize(program_.model, {prompt.data(), prompt.size()}, flags, nullptr, 0, &count, &e);
    std::vector<bitnet_token> ids(count);
    bitnet_tokenize(program_.model, {prompt.data(), prompt.size()}, flags, ids.data(), count,
                    &count, &e);
    greedy how(n);
    struct listener {
      std::string text;
      const std::function<void(int)>* each;
      int pieces = 0;
    } heard{{}, &each};
    how.generation.text_user = &heard;
    how.generation.text = [](void* to, bitnet_str piece) {
      auto& h = *static_cast<listener*>(to);
      h.text.append(piece.data, piece.size);
      if (*h.each) (*h.each)(h.pieces++);
      return int32_t{0};
    };
    result = {};
    result.struct_size = sizeof result;
    if (const auto s =
            bitnet_generate(handle, ids.data(), ids.size(), &how.generation, &result, &e);
        s != BITNET_OK)
      throw failed_call(s, e);
    return heard.text;
  }

  void prefer(const std::string& list) {
    bitnet_error e = blank();
    if (const auto s = bitnet_session_set_preference(handle, list.c_str(), &e); s != BITNET_OK)
      throw failed_call(s, e);
  }
  void forget() { bitnet_session_truncate(handle, 0, nullptr); }

  [[nodiscard]] nlohmann::json report() {
    uint64_t n = 0;
    bitnet_session_report(handle, nullptr, 0, &n, nullptr);
    std::string text(n, '\0');
    bitnet_session_report(handle, text.data(), n, &n, nullptr);
    return nlohmann::json::parse(text);
  }

  bitnet_session* handle = nullptr;
  bitnet_generation_result result{};

 private:
  program& program_;
};

}  // namespace bitnet::test
