// The log beside what is printed: what a line is, where it goes, what an option's value may be.
#include "log/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "../scratch_folder.hpp"
#include "log/journal_stream.hpp"
#include "log/log_queue.hpp"

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

// Members of a line of JSON, whose values are of outside; a line of text has the text alone.
TEST(log, has_members_in_json) {
  const scratch_folder folder;
  const fs::path text = folder.path() / "log.txt";
  const fs::path json = folder.path() / "log.json";
  const log_facts facts{.message = "answered",
                        .fields = {{"path", "/a\r\n\x1b[2J\"}{\"level\":\"error\xff"},
                                   {"status", int64_t{404}},
                                   {"duration_ms", 1.25}}};
  opened({.file = text.string()})->write(log_level::note, "GET /a 404", facts);
  opened({.file = json.string(), .json = true})->write(log_level::note, "GET /a 404", facts);
  ASSERT_EQ(lines_of(text).size(), 1U);
  EXPECT_TRUE(lines_of(text).front().ends_with("] GET /a 404"));
  ASSERT_EQ(lines_of(json).size(), 1U);
  const auto object = nlohmann::json::parse(read(json));
  EXPECT_EQ(object.at("message"), "answered");
  EXPECT_EQ(object.at("path"), "/a\r\n\x1b[2J\"}{\"level\":\"error\xef\xbf\xbd");
  EXPECT_EQ(object.at("status"), 404);
  EXPECT_EQ(object.at("duration_ms"), 1.25);
  EXPECT_EQ(object.size(), 7U);
}

TEST(log, loses_nothing_in_background) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "log.txt";
  {
    const auto to = opened({.file = file.string()});
    to->write_in_background();
    for (int i = 0; i < 3000; ++i) to->write(log_level::note, std::to_string(i));
  }
  const auto lines = lines_of(file);
  ASSERT_EQ(lines.size(), 3000U);
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_TRUE(lines[i].ends_with("] " + std::to_string(i))) << lines[i];
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

TEST(log, rejects_what_is_no_file) {
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

// A place that takes nothing until it is opened.
class gate {
 public:
  void operator()(const log_line& line) {
    std::unique_lock lock(guard_);
    is_reached_ = true;
    reached_.notify_all();
    opened_.wait(lock, [this] { return is_open_; });
    texts_.push_back(line.text);
  }
  void open() {
    const std::lock_guard lock(guard_);
    is_open_ = true;
    opened_.notify_all();
  }
  // Waits until the first line has come, at most a minute.
  bool is_reached() {
    std::unique_lock lock(guard_);
    return reached_.wait_for(lock, std::chrono::minutes(1), [this] { return is_reached_; });
  }
  std::vector<std::string> texts() {
    const std::lock_guard lock(guard_);
    return texts_;
  }

 private:
  std::mutex guard_;
  std::condition_variable opened_, reached_;
  bool is_open_ = false, is_reached_ = false;
  std::vector<std::string> texts_;
};

std::unique_ptr<log_queue> queue_to(const std::shared_ptr<gate>& place,
                                    const log_queue::bounds& most) {
  auto out = std::make_unique<log_queue>([place](const log_line& line) { (*place)(line); }, most);
  out->start();
  return out;
}

// 1 line is taken by the thread that waits, 8 stay, and the others are dropped, the oldest first.
TEST(log_queue, drops_the_oldest_and_reports_how_many) {
  const auto place = std::make_shared<gate>();
  const uint64_t before = n_log_lines_dropped();
  const auto to = queue_to(place, {.lines = 8});
  to->add({.text = "first"});
  ASSERT_TRUE(place->is_reached()) << "the thread did not take the first line";
  for (int i = 0; i < 1000; ++i) to->add({.text = std::to_string(i)});
  EXPECT_EQ(n_log_lines_dropped() - before, 992U);
  place->open();
  EXPECT_EQ(to->close(), 0U);
  const auto texts = place->texts();
  ASSERT_EQ(texts.size(), 10U);
  EXPECT_EQ(texts[0], "first");
  EXPECT_EQ(texts[1], "992");
  EXPECT_EQ(texts[4], "995");
  EXPECT_TRUE(texts[5].starts_with("992 lines of the log were dropped")) << texts[5];
  EXPECT_EQ(texts[6], "996");
  EXPECT_EQ(texts[9], "999");
}

TEST(log_queue, is_bounded_in_bytes) {
  const auto place = std::make_shared<gate>();
  const uint64_t before = n_log_lines_dropped();
  const auto to = queue_to(place, {.lines = 1000, .bytes = 100'000});
  for (int i = 0; i < 100; ++i) to->add({.text = std::string(10'000, 'x')});
  EXPECT_GE(n_log_lines_dropped() - before, 89U);
  place->open();
}

// The program ends though its standard error is full.
TEST(log_queue, leaves_a_place_that_takes_nothing) {
  const auto place = std::make_shared<gate>();
  auto to = queue_to(place, {});
  for (int i = 0; i < 10; ++i) to->add({.text = "x"});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(to->close(), 10U);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
  to->add({.text = "too late"});
  place->open();
  to.reset();
  // The detached thread owns the writer, and the writer owns the place, until that thread ends.
  for (int i = 0; i < 1000 && place.use_count() > 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(place.use_count(), 1) << "the thread has not ended";
  EXPECT_EQ(place->texts().size(), 1U) << "lines that waited were written";
}

// By the signal, or by a sanitizer that reports it.
bool dies_of(int number, int status) {
  return WIFSIGNALED(status) ? WTERMSIG(status) == number : WEXITSTATUS(status) != 0;
}

// A crash: what was added before is written, and the signal does what it did.
TEST(log_queue, is_empty_before_a_fatal_signal_ends_the_process) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS}) {
    const auto die = [number] {
      log_queue to([](const log_line& line) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the place is slow
        (void)!::write(STDERR_FILENO, line.text.data(), line.text.size());
      });
      to.start();
      settle_logs_on_fatal_signals();
      for (const char* text : {"one,", "two,", "three"}) to.add({.text = text});
      (void)std::raise(number);
    };
    EXPECT_EXIT(die(), [number](int status) { return dies_of(number, status); }, "one,two,three");
  }
}

TEST(journal_stream, is_that_of_the_descriptor) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  struct stat found{};
  ASSERT_EQ(::fstat(pipe[1], &found), 0);
  const std::string numbers = std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
  EXPECT_TRUE(is_journal_stream(pipe[1], numbers));
  for (const std::string& other : {std::string(), numbers + "1", "1" + numbers, std::string(":"),
                                   std::to_string(found.st_dev), numbers + " "})
    EXPECT_FALSE(is_journal_stream(pipe[1], other)) << other;
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_FALSE(is_journal_stream(pipe[1], numbers)) << "a descriptor that is not open";
  EXPECT_EQ(priority_of(log_level::error), 3);  // as syslog(3) numbers them
  EXPECT_EQ(priority_of(log_level::warning), 4);
  EXPECT_EQ(priority_of(log_level::note), 6);
  EXPECT_EQ(priority_of(log_level::detail), 7);
  EXPECT_EQ(priority_of(log_level::debug), 7);
}

TEST(log_rotation, is_a_size_and_a_count) {
  const struct {
    const char* why;
    std::string_view text;
    std::size_t bytes, kept;  // 0, 0: rejected
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
