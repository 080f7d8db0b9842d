#pragma once
// What something says in a process of its own: the stand-in reads its settings once.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>

namespace bitnet::test {

// What `say` returns, or why it throws, with these settings of its stand_in.hpp.
template <class Say>
std::string said_in_a_process(const char* settings, const Say& say) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    setenv("BITNET_STAND_IN", settings, 1);
    std::string out;
    try {
      out = say();
    } catch (const std::exception& e) {
      out = e.what();
    }
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

}  // namespace bitnet::test
