#include "harness/lint_suite.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace bitnet::conformance {
namespace {

using nlohmann::json;

// What the program prints, and its exit status; -1 if it could not be started.
int output_of(const std::string& program, std::vector<std::string> words, std::string& out) {
  int ends[2] = {};
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  words.insert(words.begin(), program);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int started = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char bytes[65536];
  for (ssize_t n = 0; started == 0 && (n = read(ends[0], bytes, sizeof bytes)) > 0;)
    out.append(bytes, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  if (started != 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

std::string text_of(const json& from, const char* key) {
  return from.is_object() && from.contains(key) && from[key].is_string()
             ? from[key].get<std::string>()
             : "";
}

json findings_of(const json& answer) {
  if (!answer.is_object() || !answer.contains("files") || !answer["files"].is_array() ||
      answer["files"].empty())
    return json::array();
  const json& file = answer["files"][0];
  return file.is_object() && file.contains("findings") && file["findings"].is_array()
             ? file["findings"]
             : json::array();
}

}  // namespace

void run_lint(const std::string& file, findings& out) {
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const std::string program = (here / "bitnet-backend-lint").string();
  if (access(program.c_str(), X_OK) != 0) {
    out.add({"lint.file", "skipped",
             program + " is not there: install it too, which comes with the SDK", 0});
    return;
  }
  std::string text;
  const int status = output_of(program, {"--json", file}, text);
  uint64_t checks = 0;
  for (const json& one : findings_of(json::parse(text, nullptr, false))) {
    ++checks;
    const std::string level = text_of(one, "level");
    std::string name = "lint." + text_of(one, "check");
    for (char& c : name)
      if (c == ' ') c = '_';
    const std::string what = text_of(one, "text") + " [" + text_of(one, "code") + "]";
    if (level == "error") out.add({name, "failed", what, 0});
    if (level == "warning") out.add({name, "passed", "warning: " + what, 0});
  }
  if (status < 0 || checks == 0)
    out.add({"lint.file", "failed", program + " could not judge the file", 0});
  else
    out.add({"lint.file", out.failed("lint") ? "failed" : "passed",
             std::to_string(checks) + " checks", 0});
}

}  // namespace bitnet::conformance
