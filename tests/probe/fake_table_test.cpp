// Every fake backend through the C API, and the table of what became of it: how far it came, the
// reason, what the user can do, and how long it took. Meanwhile a session of the same process
// generates on the cpu backend, and its text must not change.

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "../fakes/loader_fixture.hpp"
#include "bitnet/bitnet.h"

namespace {

using bitnet::test::folder;
using bitnet::test::manifest_text;
using nlohmann::json;

struct row {
  const char* fake;
  const char* stage;  // reached, in the report's words
  const char* code;
  std::vector<const char*> mentions;  // of the reason
  uint32_t timeout_ms = 60'000;       // of the manifest
  const char* last = "";              // stage of the probe that began last
};

// Long enough for a busy machine to reach the stage that hangs, short enough to wait for.
constexpr uint32_t brief_ms = 1500;

const row rows[] = {
    // Never started: inspection says enough.
    {"no-entry", "found", "BN-I-NO-ENTRY", {}},
    {"other-major", "found", "BN-A-MAJOR", {}},
    {"note-minor", "found", "BN-A-MINOR", {"speaks ABI 0.6 to 0.9, this core speaks 0.1"}},
    {"unique", "found", "BN-I-EXPORTS", {}},
    {"needy", "found", "BN-I-DEPENDENCY", {"libfake-absent-one.so, libfake-absent-two.so"}},
    // The entry and its table.
    {"needs-minor", "inspected", "BN-A-MINOR", {}, 60'000, "S1 open"},
    {"minor-too-new", "inspected", "BN-A-TABLE", {}, 60'000, "S1 open"},
    {"short-table", "inspected", "BN-A-TABLE", {}, 60'000, "S1 open"},
    {"too-long", "inspected", "BN-A-TABLE", {}, 60'000, "S1 open"},
    {"null-slot", "inspected", "BN-A-SLOT", {"queue_submit"}, 60'000, "S1 open"},
    {"garbage-reserved", "inspected", "BN-A-TABLE", {}, 60'000, "S1 open"},
    {"overrun", "inspected", "BN-A-OVERRUN", {}, 60'000, "S1 open"},
    // Crashes name their stage and the last words.
    {"crash-constructor",
     "inspected",
     "BN-P-CRASH",
     {"SIGSEGV in S1 open", "its last words: about to crash"},
     60'000,
     "S1 open"},
    {"crash-entry",
     "inspected",
     "BN-P-CRASH",
     {"SIGSEGV in S1 open, in bitnet_backend_abi0(), at ", "address 0x8; its last words"},
     60'000,
     "S1 open"},
    {"kernel-crashes",
     "probed",
     "BN-P-CRASH",
     {"SIGSEGV in S3 self-test, in queue_submit(), testing linear_ternary.ternary2 (kernel "
      "ternary.quick), at ",
      "ternary<", "(libfake-kernel-crashes.so+0x", "address 0x8"},
     60'000,
     "S3 self-test"},
    {"crash-enumerate",
     "loaded",
     "BN-P-CRASH",
     {"SIGSEGV in S2 enumerate, in device_count(), at ", "(libfake-crash-enumerate.so+0x"},
     60'000,
     "S2 enumerate"},
    {"crash-self-test",
     "probed",
     "BN-P-CRASH",
     {"SIGSEGV in S3 self-test"},
     60'000,
     "S3 self-test"},
    {"crash-close", "probed", "BN-P-CRASH", {"SIGSEGV in S4 close"}, 60'000, "S4 close"},
    {"exit-crash", "probed", "BN-P-CRASH", {"SIGSEGV in S4 close"}, 60'000, "S4 close"},
    {"aborts",
     "loaded",
     "BN-P-CRASH",
     {"SIGABRT in S2 enumerate, in device_count(), at libc.so.6+0x", "called from "},
     60'000,
     "S2 enumerate"},
    {"exits", "loaded", "BN-P-EXIT", {"exit status 0 in S2 enumerate"}, 60'000, "S2 enumerate"},
    {"throws-entry", "inspected", "BN-P-THROWS", {"in S1 open"}, 60'000, "S1 open"},
    {"throws-words",
     "inspected",
     "BN-P-THROWS",
     {"let an exception out of a call in S1 open: no such luck"},
     60'000,
     "S1 open"},
    {"throws", "loaded", "BN-P-THROWS", {"in S2"}, 60'000, "S2 enumerate"},
    // Hangs end at their deadline.
    {"hang-constructor", "inspected", "BN-P-TIMEOUT", {"in S1 open"}, brief_ms, "S1 open"},
    {"hang-entry", "inspected", "BN-P-TIMEOUT", {"in S1 open"}, brief_ms, "S1 open"},
    {"hang-enumerate", "loaded", "BN-P-TIMEOUT", {"in S2 enumerate"}, brief_ms, "S2 enumerate"},
    {"hang-self-test", "probed", "BN-P-TIMEOUT", {"in S3 self-test"}, brief_ms, "S3 self-test"},
    {"hang-close", "probed", "BN-P-TIMEOUT", {"in S4 close"}, brief_ms, "S4 close"},
    {"stubborn", "loaded", "BN-P-TIMEOUT", {"in S2 enumerate"}, brief_ms, "S2 enumerate"},
    // What they leave behind or take away.
    {"forks", "probed", "BN-P-LEFTOVER", {"left a process"}, 60'000, "S4 close"},
    {"thread", "probed", "BN-P-LEFTOVER", {"left 1 running after close"}, 60'000, "S4 close"},
    {"closes-fds",
     "loaded",
     "BN-P-EXIT",
     {"closed the descriptors of its host in S2"},
     60'000,
     "S2 enumerate"},
    {"prints", "probed", "BN-P-OUTPUT", {"printed 10000000 bytes"}, 60'000, "S4 close"},
    {"chats", "probed", "BN-OK", {"note: it printed 640 bytes"}, 60'000, "S4 close"},
    {"tls", "probed", "BN-OK", {"usable"}, 60'000, "S4 close"},
    {"leaks", "probed", "BN-OK", {"usable"}, 60'000, "S4 close"},
    {"no-memory",
     "loaded",
     "BN-P-FAILED",
     {"device_info(3) failed: no memory is left"},
     60'000,
     "S2 enumerate"},
    // What belongs to the whole process: BR-10.
    {"sets-locale",
     "loaded",
     "BN-P-HYGIENE",
     {"the locale", "S2 enumerate"},
     60'000,
     "S2 enumerate"},
    {"leaves-folder", "loaded", "BN-P-HYGIENE", {"the working folder"}, 60'000, "S2 enumerate"},
    {"rounds-up", "loaded", "BN-P-HYGIENE", {"the floating-point modes"}, 60'000, "S2 enumerate"},
    {"flushes-to-zero",
     "loaded",
     "BN-P-HYGIENE",
     {"the floating-point modes"},
     60'000,
     "S2 enumerate"},
    {"handles-signal",
     "loaded",
     "BN-P-HYGIENE",
     {"the handler of SIGUSR1"},
     60'000,
     "S2 enumerate"},
    {"handles-crash", "loaded", "BN-P-HYGIENE", {"the handler of SIGSEGV"}, 60'000, "S2 enumerate"},
    {"blocks-signals", "loaded", "BN-P-HYGIENE", {"the blocked signals"}, 60'000, "S2 enumerate"},
    {"lowers-limit",
     "loaded",
     "BN-P-HYGIENE",
     {"changed a limit of its process"},
     60'000,
     "S2 enumerate"},
    {"sets-mask", "loaded", "BN-P-HYGIENE", {"the mask of modes"}, 60'000, "S2 enumerate"},
    {"changes-variable", "loaded", "BN-P-HYGIENE", {"the variable PATH"}, 60'000, "S2 enumerate"},
    {"sets-variable", "probed", "BN-OK", {"the variable BITNET_FAKE is new"}, 60'000, "S4 close"},
    {"opens-files", "probed", "BN-OK", {"left 1 descriptor open"}, 60'000, "S4 close"},
    // What reaches beyond it.
    {"daemon", "probed", "BN-P-LEFTOVER", {"left a process"}, 60'000, "S4 close"},
    {"daemon-crash", "loaded", "BN-P-CRASH", {"SIGSEGV in S2"}, 60'000, "S2 enumerate"},
    // Nonsense for answers.
    {"many-devices", "loaded", "BN-P-ANSWER", {"100000 devices"}, 60'000, "S2 enumerate"},
    {"raw-name",
     "loaded",
     "BN-P-ANSWER",
     {"a text of device 0 has no end"},
     60'000,
     "S2 enumerate"},
    {"device-size",
     "loaded",
     "BN-P-ANSWER",
     {"device_info(0) changed struct_size from "},
     60'000,
     "S2 enumerate"},
    {"many-kernels", "loaded", "BN-P-ANSWER", {"4000000 kernels"}, 60'000, "S2 enumerate"},
    {"unavailable",
     "loaded",
     "BN-P-UNAVAILABLE",
     {"libfake.so.1 is not installed"},
     60'000,
     "S2 enumerate"},
    {"zero", "loaded", "BN-P-NO-DEVICE", {"no device"}, 60'000, "S2 enumerate"},
    // Sums that are wrong.
    {"computes", "probed", "BN-OK", {"usable"}, 60'000, "S4 close"},
    {"leaves-out",
     "probed",
     "BN-OK",
     {"kernel ternary.quick is disabled", "has other bits than ternary.plain"},
     60'000,
     "S4 close"},
    {"leaves-out-lost",
     "probed",
     "BN-OK",
     {"kernel ternary.quick is disabled", "began again without kernel ternary.quick"},
     60'000,
     "S4 close"},
    {"wrong-through", "probed", "BN-OK", {"ternary.quick is disabled"}, 60'000, "S4 close"},
    {"wrong-kernel", "probed", "BN-OK", {"kernel ternary.quick is disabled"}, 60'000, "S4 close"},
    {"wrong-alone",
     "probed",
     "BN-P-SELF-TEST",
     {"no kernel that computes is left: ternary.quick", "row 3 of token 0 of 1 is "},
     60'000,
     "S3 self-test"},
    {"wrong-reference",
     "probed",
     "BN-P-SELF-TEST",
     {"its reference kernel ternary.plain gives wrong results", "row 3 of token 0"},
     60'000,
     "S3 self-test"},
    {"good", "probed", "BN-OK", {"usable"}, 60'000, "S4 close"},
};

bitnet_error blank() {
  bitnet_error e{};
  e.struct_size = sizeof e;
  return e;
}

std::string text_of(const json& from, const char* key) {
  return from.contains(key) && from[key].is_string() ? from[key].get<std::string>() : "";
}

// A session on the cpu backend that writes the same text again and again.
class background {
 public:
  background() {
    const char* source = std::getenv("BITNET_SOURCE_DIR");
    if (source == nullptr) return;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(source) / "models"))
      if (entry.path().extension() == ".gguf") model_file_ = entry.path();
    bitnet_runtime_options options;
    bitnet_runtime_defaults(&options, sizeof options);
    options.n_threads = 1;
    options.device = "cpu";
    options.probe_cache = "";
    bitnet_error err = blank();
    if (bitnet_runtime_open(&options, &runtime_, &err) != BITNET_OK ||
        bitnet_model_open(runtime_, model_file_.c_str(), nullptr, &model_, &err) != BITNET_OK) {
      problem_ = err.message;
      return;
    }
    expected_ = generate();
    thread_ = std::thread([this] {
      while (!stop_) {
        const std::string text = generate();
        ++rounds_;
        if (text != expected_) ++different_;
      }
    });
  }
  background(const background&) = delete;
  background& operator=(const background&) = delete;
  ~background() {
    finish();
    bitnet_model_close(model_);
    bitnet_runtime_close(runtime_);
  }
  void finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] const std::string& text() const { return expected_; }
  [[nodiscard]] int rounds() const { return rounds_; }
  [[nodiscard]] int different() const { return different_; }

 private:
  std::string generate() {
    bitnet_session_options options;
    bitnet_session_defaults(&options, sizeof options);
    options.n_context = 128;
    bitnet_session* session = nullptr;
    bitnet_error err = blank();
    if (bitnet_session_open(model_, &options, &session, &err) != BITNET_OK) return err.message;
    const std::string prompt = "Once upon a time";
    std::vector<bitnet_token> ids(64);
    uint64_t n = 0;
    bitnet_tokenize(model_, {prompt.data(), prompt.size()}, BITNET_TOKENIZE_MODEL_BOS, ids.data(),
                    ids.size(), &n, &err);
    bitnet_sampling sampling;
    bitnet_sampling_defaults(&sampling, sizeof sampling);
    sampling.temperature = 0;
    std::string out;
    bitnet_generation g{};
    g.struct_size = sizeof g;
    g.max_tokens = 48;
    g.sampling = &sampling;
    g.text = [](void* user, bitnet_str piece) -> int32_t {
      static_cast<std::string*>(user)->append(piece.data, piece.size);
      return 0;
    };
    g.text_user = &out;
    bitnet_generation_result result{};
    result.struct_size = sizeof result;
    if (bitnet_generate(session, ids.data(), n, &g, &result, &err) != BITNET_OK) out = err.message;
    bitnet_session_close(session);
    return out;
  }

  std::string model_file_, problem_, expected_;
  bitnet_runtime* runtime_ = nullptr;
  bitnet_model* model_ = nullptr;
  std::atomic<bool> stop_{false};
  std::atomic<int> rounds_{0}, different_{0};
  std::thread thread_;
};

std::size_t descriptors() {
  std::size_t n = 0;
  DIR* all = opendir("/proc/self/fd");
  while (readdir(all) != nullptr) ++n;
  closedir(all);
  return n;
}

// The report's entry of the only backend in `manifests`.
json probe_alone(const std::filesystem::path& manifests, const std::string& cache = "") {
  const std::string directory = manifests.string();
  const char* const directories[] = {directory.c_str()};
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  options.n_threads = 1;
  options.manifest_dirs = directories;
  options.n_manifest_dirs = 1;
  options.probe_cache = cache.c_str();
  options.probe_wait_ms = 120'000;
  bitnet_runtime* runtime = nullptr;
  bitnet_error err = blank();
  if (bitnet_runtime_open(&options, &runtime, &err) != BITNET_OK) return {};
  EXPECT_EQ(bitnet_runtime_probe(runtime, &err), BITNET_OK) << err.message;
  uint64_t needed = 0;
  bitnet_runtime_report(runtime, nullptr, 0, &needed, nullptr);
  std::string text(needed, '\0');
  EXPECT_EQ(bitnet_runtime_report(runtime, text.data(), needed, &needed, nullptr), BITNET_OK);
  bitnet_runtime_close(runtime);
  const json report = json::parse(text);
  return report["backends"].empty() ? json() : report["backends"][0];
}

TEST(fakes, cost_a_child_each_and_nothing_else) {
  background session;
  if (!session.problem().empty()) GTEST_SKIP() << session.problem();
  const std::size_t open_before = descriptors();
  std::printf("%-18s %-10s %-17s %-13s %7s  %s\n", "fake", "stage", "code", "last began", "ms",
              "reason; hint");
  for (const row& r : rows) {
    SCOPED_TRACE(r.fake);
    const folder f;
    f.write("backends.d/50-" + std::string(r.fake) + ".yaml",
            manifest_text(r.fake, f.fake(r.fake),
                          {{"class", "cpu"},  // else it gives way to the session
                           {"probe", "{timeout_ms: " + std::to_string(r.timeout_ms) + "}"}}));
    const auto begin = std::chrono::steady_clock::now();
    const json got = probe_alone(f.path() / "backends.d");
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::steady_clock::now() - begin)
                        .count();
    const json probe = got.value("probe", json::object());
    std::printf("%-18s %-10s %-17s %-13s %7lld  %s; %s\n", r.fake, text_of(got, "stage").c_str(),
                text_of(got, "code").c_str(), text_of(probe, "stage").c_str(),
                static_cast<long long>(ms), text_of(got, "reason").substr(0, 110).c_str(),
                text_of(got, "hint").c_str());
    EXPECT_EQ(text_of(got, "stage"), r.stage);
    EXPECT_EQ(text_of(got, "code"), r.code) << text_of(got, "reason");
    EXPECT_EQ(text_of(probe, "stage"), r.last);
    for (const char* part : r.mentions)
      EXPECT_NE(text_of(got, "reason").find(part), std::string::npos)
          << "'" << part << "' is not in: " << text_of(got, "reason");
    if (std::string(r.code) != "BN-OK") {
      EXPECT_FALSE(text_of(got, "hint").empty());
    }
    EXPECT_LE(text_of(probe, "output").size(), 70'000U);
    if (std::string(r.code) == "BN-P-OUTPUT") {
      EXPECT_FALSE(text_of(probe, "output").empty());
    }
    EXPECT_EQ(session.different(), 0) << "the session's text changed";
  }
  session.finish();
  std::printf("meanwhile the session wrote its %zu bytes %d times, %d of them otherwise\n",
              session.text().size(), session.rounds(), session.different());
  EXPECT_GT(session.rounds(), 1);
  EXPECT_LE(descriptors(), open_before);  // the session may have held some for a moment then
  errno = 0;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST(fakes, a_slow_one_joins_a_runtime_late) {
  const folder f;
  for (const char* name : {"slow", "alpha"})
    f.write("backends.d/50-" + std::string(name) + ".yaml",
            manifest_text(name, f.fake(name), {{"class", "cpu"}}));
  const std::string directory = (f.path() / "backends.d").string();
  const char* const directories[] = {directory.c_str()};
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  EXPECT_EQ(options.probe_wait_ms, 3000U);
  options.n_threads = 1;
  options.manifest_dirs = directories;
  options.n_manifest_dirs = 1;
  options.probe_cache = "";
  options.probe_wait_ms = 0;
  bitnet_runtime* runtime = nullptr;
  bitnet_error err = blank();
  ASSERT_EQ(bitnet_runtime_open(&options, &runtime, &err), BITNET_OK) << err.message;
  const auto line = [&] {
    char text[256];
    uint64_t n = 0;
    EXPECT_EQ(bitnet_runtime_selection_line(runtime, text, sizeof text, &n, nullptr), BITNET_OK);
    return std::string(text, n);
  };
  EXPECT_EQ(bitnet_runtime_wait_probes(runtime, 0, &err), BITNET_OK) << "nothing was asked yet";
  ASSERT_EQ(bitnet_runtime_select(runtime, &err), BITNET_OK) << err.message;
  EXPECT_EQ(line(), "requested=auto detected=[alpha] selected=alpha");
  EXPECT_EQ(bitnet_runtime_wait_probes(runtime, 1, &err), BITNET_TIMEOUT);
  EXPECT_EQ(bitnet_runtime_wait_probes(runtime, 60'000, &err), BITNET_OK) << err.message;
  EXPECT_EQ(line(), "requested=auto detected=[alpha,slow] selected=alpha");
  bitnet_runtime_close(runtime);
}

// In a session of its own, with no parent: it ends with its probe all the same.
TEST(fakes, what_they_leave_running_ends_with_the_probe) {
  for (const char* name : {"daemon", "daemon-crash"}) {
    SCOPED_TRACE(name);
    const folder f;
    f.write("backends.d/50-" + std::string(name) + ".yaml", manifest_text(name, f.fake(name)));
    f.write("cache/there", "");
    chmod((f.path() / "cache").c_str(), 0700);
    const json got = probe_alone(f.path() / "backends.d", (f.path() / "cache").string());
    ASSERT_NE(text_of(got, "code"), "BN-OK") << got;
    pid_t left = 0;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      std::ifstream maps(process.path() / "maps");
      for (std::string line; std::getline(maps, line);)
        if (line.find(f.path().string()) != std::string::npos)
          left = std::atoi(process.path().filename().c_str());
    }
    EXPECT_EQ(left, 0) << "process " << left << " outlived its probe";
    if (left != 0) kill(left, SIGKILL);
  }
}

void expect_answer(const char* fake, const char* says) {
  const folder f;
  f.write("backends.d/50-" + std::string(fake) + ".yaml", manifest_text(fake, f.fake(fake)));
  const json got = probe_alone(f.path() / "backends.d");
  EXPECT_EQ(text_of(got, "code"), "BN-OK") << got;
  EXPECT_NE(text_of(got.value("probe", json::object()), "output").find(says), std::string::npos)
      << got;
}

TEST(fakes, cannot_signal_the_parent) {
  constexpr long create_ruleset = 444, with_signals = 6;
  if (syscall(create_ruleset, nullptr, 0, 1) < with_signals)
    GTEST_SKIP() << "this kernel's Landlock keeps no signals back";
  expect_answer("signals-parent", "it was kept back");
}

TEST(fakes, cannot_take_all_memory) {
#ifdef BITNET_SHADOW_MEMORY  // a sanitizer takes terabytes of addresses, so nothing limits them
  expect_answer("takes-memory", "memory granted, score 1000");
#else
  expect_answer("takes-memory", "memory refused, score 1000");
#endif
}

TEST(fakes, leaking_shows_in_the_peak_of_the_child) {
  const folder f;
  f.write("backends.d/50-leaks.yaml", manifest_text("leaks", f.fake("leaks")));
  const json got = probe_alone(f.path() / "backends.d");
  ASSERT_TRUE(got.contains("probe"));
  EXPECT_GT(got["probe"].value("peak_bytes", uint64_t{0}), 64'000'000U);
}

}  // namespace
