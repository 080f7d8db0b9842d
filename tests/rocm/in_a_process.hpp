#pragma once
// Settings of the stand-in that differ from one case of a test to the next.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace bitnet::rocm::test {

// What `say` returns in a process of its own with these settings: the stand-in reads them once.
template <class Say>
std::string said_with(const char* settings, const Say& say) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    setenv("BITNET_STAND_IN", settings, 1);
    const std::string out = say();
    const ssize_t written = write(ends[1], out.data(), out.size());
    _exit(written == static_cast<ssize_t>(out.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string out;
  char part[512];
  for (ssize_t n = 0; (n = read(ends[0], part, sizeof part)) > 0;)
    out.append(part, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << out;
  return out;
}
}  // namespace bitnet::rocm::test
