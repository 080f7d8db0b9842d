// The log beside what is printed: what a line is, where it goes, what an option's value may be.
#include "log/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "../scratch_folder.hpp"

namespace bitnet::host {
namespace {

namespace fs = std::filesystem;
using test::scratch_folder;

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> out;
  std::ifstream in(file, std::ios::binary);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::unique_ptr<log> opened(const log_options& wanted) {
  auto made = log::open(wanted, [](const std::string& why) { ADD_FAILURE() << why; });
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return std::move(*made);
}

// A message from outside is one line whatever it holds, and forges no other.
TEST(log, writes_one_line_for_one_message) {
  using namespace std::string_literals;
  const struct {
    const char* why;
    std::string message;
    const char* text;  // how a text line ends
    std::string json;  // the member `message`
  } rows[] = {
      {"as it is", "model 'a' is here", "] model 'a' is here", "model 'a' is here"},
      {"a forged line", "a\n2026-01-01T00:00:00.000000Z error   [1] b", "[1] b",
       "a\n2026-01-01T00:00:00.000000Z error   [1] b"},
      {"a forged object", "a\"}\n{\"level\":\"error", "] a\"}\\n{\"level\":\"error",
       "a\"}\n{\"level\":\"error"},
      {"what a terminal obeys", "\x1b[2Jx\r", "] \\x1b[2Jx\\r", "\x1b[2Jx\r"},
      {"a sequence of C1",
       "\xc2\x9b"
       "2J",
       "] \\xc2\\x9b2J",
       "\xc2\x9b"
       "2J"},
      {"a line end of Unicode",
       "a\xe2\x80\xa8"
       "b",
       "] a\\xe2\\x80\\xa8"
       "b",
       "a\xe2\x80\xa8"
       "b"},
      {"bytes that are no UTF-8",
       "a\xff"
       "b",
       "] a\\xff"
       "b",
       "a\xef\xbf\xbd"
       "b"},
      {"a pattern of spdlog", "%v %* {}", "] %v %* {}", "%v %* {}"},
      {"a zero byte", "a\0b"s, "] a\\x00b", "a\0b"s},
      {"nothing", "", "] ", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const scratch_folder folder;
    const fs::path text = folder.path() / "log.txt";
    const fs::path json = folder.path() / "log.json";
    opened({.file = text.string()})->write(log_level::note, row.message);
    opened({.file = json.string(), .json = true})->write(log_level::note, row.message);
    ASSERT_EQ(lines_of(text).size(), 1U) << read(text);
    EXPECT_TRUE(lines_of(text).front().ends_with(row.text)) << read(text);
    ASSERT_EQ(lines_of(json).size(), 1U) << read(json);
    const auto object = nlohmann::json::parse(read(json));
    EXPECT_EQ(object.at("message"), row.json);
    EXPECT_EQ(object.at("level"), "info");
    EXPECT_EQ(object.size(), 4U);
    for (const char c : read(json)) EXPECT_LT(static_cast<unsigned char>(c), 0x7F);
  }
}

TEST(log, drops_what_is_above_its_level) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "log.txt";
  const auto to = opened({.file = file.string(), .level = 2});
  for (const log_level level :
       {log_level::error, log_level::warning, log_level::note, log_level::detail, log_level::debug})
    to->write(level, "x");
  ASSERT_EQ(lines_of(file).size(), 2U);
  EXPECT_NE(lines_of(file)[0].find(" error "), std::string::npos);
  EXPECT_NE(lines_of(file)[1].find(" warning "), std::string::npos);
}

TEST(log, keeps_files_to_their_size_and_number) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "log.txt";
  const auto to = opened({.file = file.string(), .rotation = {.bytes = 2048, .kept = 3}});
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      for (int line = 0; line < 100; ++line) to->write(log_level::note, std::string(50, 'x'));
    });
  for (std::thread& one : writers) one.join();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
    EXPECT_LE(entry.file_size(), 2048U) << entry.path();
    for (const std::string& line : lines_of(entry.path()))
      EXPECT_TRUE(line.ends_with("] " + std::string(50, 'x'))) << line;
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"log.1.txt", "log.2.txt", "log.3.txt", "log.txt"}));
}

TEST(log, appends_to_what_is_there) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "log.txt";
  for (int i = 0; i < 3; ++i) opened({.file = file.string()})->write(log_level::note, "x");
  EXPECT_EQ(lines_of(file).size(), 3U);
}

TEST(log, leaves_no_descriptor_to_children) {
  const scratch_folder folder;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4096}}) {
    const fs::path file = folder.path() / "log.txt";
    const auto to = opened({.file = file.string(), .rotation = {.bytes = bytes, .kept = 1}});
    int found = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (fs::read_symlink(entry.path(), gone) != file) continue;
      ++found;
      EXPECT_NE(fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0);
    }
    EXPECT_EQ(found, 1);
  }
}

TEST(log, refuses_what_is_no_file) {
  const scratch_folder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const struct {
    const char* why;
    fs::path file;
    const char* message;
  } rows[] = {
      {"spdlog would wait for a reader", pipe, "no regular file"},
      {"a device", "/dev/null", "no regular file"},
      {"a folder", folder.path(), "no regular file"},
      {"spdlog would make the folder", folder.path() / "absent/log.txt", "there is no folder"},
      {"a name that is too long", folder.path() / std::string(300, 'x'), "File name too long"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const auto made = log::open({.file = row.file.string()}, [](const std::string&) {});
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().exit_code, exit_code::failure);
    EXPECT_NE(made.error().message.find(row.message), std::string::npos) << made.error().message;
  }
  EXPECT_FALSE(fs::exists(folder.path() / "absent"));
}

TEST(log_rotation, is_a_size_and_a_count) {
  const struct {
    const char* why;
    std::string_view text;
    std::size_t bytes, kept;  // 0, 0: refused
  } rows[] = {
      {"five older files by default", "10M", 10U << 20U, 5},
      {"with a count", "4k,3", 4000, 3},
      {"the smallest", "1024,1", 1024, 1},
      {"smaller than a line may be", "1023", 0, 0},
      {"none older: the log would be lost at once", "10M,0", 0, 0},
      {"more than anyone keeps", "10M,1001", 0, 0},
      {"a negative size", "-5", 0, 0},
      {"no size", "x", 0, 0},
      {"nothing", "", 0, 0},
      {"an empty count", "10M,", 0, 0},
      {"two counts", "10M,2,3", 0, 0},
      {"beyond 64 bits", "99999999999999999999", 0, 0},
      {"beyond any disk", "9000000G", 0, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.why);
    const auto got = parse_rotation(row.text);
    ASSERT_EQ(got.has_value(), row.bytes != 0);
    if (!got) {
      EXPECT_EQ(got.error().exit_code, exit_code::usage);
      EXPECT_NE(got.error().message.find("SIZE,COUNT"), std::string::npos);
      continue;
    }
    EXPECT_EQ(got->bytes, row.bytes);
    EXPECT_EQ(got->kept, row.kept);
  }
}

}  // namespace
}  // namespace bitnet::host
