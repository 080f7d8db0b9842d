// What the child that runs a plugin may write to: nothing but its folder and the pipes of services.

#include "probe/sandbox.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "../../fakes/loader_fixture.hpp"

namespace bitnet::probe {
namespace {

bool opens(const std::filesystem::path& file, int how) {
  const int fd = open(file.c_str(), how | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// What a child in the sandbox says of its attempts: a letter for each that succeeds.
std::string attempts_in(const test::folder& all, const std::vector<std::filesystem::path>& pipes) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    const std::filesystem::path& at = all.path();
    std::string out = enter_sandbox(parent, at / "own", {}, pipes).substr(0, 8);
    if (opens(at / "own/new", O_WRONLY | O_CREAT)) out += " own";
    if (opens(at / "service/control", O_RDWR)) out += " pipe";
    if (opens(at / "service/below/log", O_WRONLY)) out += " below";
    if (opens(at / "service/new", O_WRONLY | O_CREAT)) out += " made";
    if (unlink((at / "service/control").c_str()) == 0) out += " removed";
    if (opens(at / "other", O_WRONLY)) out += " other";
    if (opens(at / "other", O_RDONLY)) out += " read";
    [[maybe_unused]] const ssize_t n = write(ends[1], out.data(), out.size());
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 256> text{};
  const ssize_t n = read(ends[0], text.data(), text.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return {text.data(), static_cast<std::size_t>(n < 0 ? 0 : n)};
}

TEST(sandbox, pipes_of_services_can_be_written_to) {
  const test::folder all;
  all.write("own/keep", "");
  all.write("service/below/log", "");
  all.write("other", "");
  ASSERT_EQ(mkfifo((all.path() / "service/control").c_str(), 0600), 0);
  const std::string without = attempts_in(all, {});
  if (!without.starts_with("landlock")) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(without, "landlock own read");
  EXPECT_EQ(attempts_in(all, {all.path() / "service"}), "landlock own pipe below read");
  EXPECT_EQ(attempts_in(all, {all.path() / "none"}), "landlock own read")
      << "one that is not there";
}

}  // namespace
}  // namespace bitnet::probe
