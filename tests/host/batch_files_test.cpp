// The files of a batch: lines that come in, an output that is gone on with, and shards.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../scratch_folder.hpp"
#include "batch/batch_line.hpp"
#include "batch/id_set.hpp"
#include "batch/line_reader.hpp"
#include "batch/output_file.hpp"
#include "model_files/fingerprint.hpp"

namespace bitnet::host::batch {
namespace {

using nlohmann::json;
using test::scratch_folder;

// ---- lines -------------------------------------------------------------------------------------

// "number:text", or "number!fault".
std::vector<std::string> all_lines(line_reader& from) {
  std::vector<std::string> out;
  while (true) {
    const auto line = from.take();
    if (!line) return {"failed: " + line.error().message};
    if (*line) {
      out.push_back(std::to_string((*line)->number) +
                    ((*line)->fault.empty() ? ":" + (*line)->text : "!" + (*line)->fault));
    } else if (from.at_end()) {
      return out;
    } else if (auto ok = from.read_more(); !ok) {
      return {"failed: " + ok.error().message};
    }
  }
}

std::vector<std::string> lines_of(std::string_view content) {
  const scratch_folder folder;
  auto reader = line_reader::open(folder.write("in", content).string());
  if (!reader) return {"failed: " + reader.error().message};
  return all_lines(*reader);
}

TEST(line_reader, numbers_lines_and_leaves_blank_ones_out) {
  using lines = std::vector<std::string>;
  EXPECT_EQ(lines_of(""), lines());
  EXPECT_EQ(lines_of("a\nb\n"), (lines{"1:a", "2:b"}));
  EXPECT_EQ(lines_of("a\n\n \r\nb"), (lines{"1:a", "4:b"})) << "the last line may have no end";
  EXPECT_EQ(lines_of("\xEF\xBB\xBF"
                     "a\r\nb\r\n"),
            (lines{"1:a", "2:b"}))
      << "as Windows writes it";
  EXPECT_EQ(lines_of(std::string_view("a\nb\0c\nd\n", 8)).size(), 3U);
  EXPECT_EQ(lines_of(std::string_view("a\nb\0c\nd\n", 8))[1].substr(0, 2), "2!");
  EXPECT_NE(lines_of(std::string_view("{\0}\0\n\0", 6))[0].find("UTF-16"), std::string::npos);
}

TEST(line_reader, drops_what_is_too_long_and_goes_on) {
  const std::string longest(longest_line, 'a');
  const auto lines = lines_of(longest + "\n" + longest + "b\nc\n" + longest + longest);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].size(), longest.size() + 2);
  EXPECT_EQ(lines[1].substr(0, 3), "2!t");
  EXPECT_EQ(lines[2], "3:c");
  EXPECT_EQ(lines[3].substr(0, 3), "4!t");
}

TEST(line_reader, reads_a_pipe_as_it_comes) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string name = "/dev/fd/" + std::to_string(ends[0]);
  auto reader = line_reader::open(name);
  ASSERT_TRUE(reader);
  ASSERT_EQ(::write(ends[1], "a\nb", 3), 3);
  ASSERT_TRUE(reader->read_more());
  EXPECT_EQ((*reader->take())->text, "a");
  EXPECT_FALSE(*reader->take()) << "half a line is none";
  ASSERT_EQ(::write(ends[1], "c\n", 2), 2);
  ::close(ends[1]);
  EXPECT_EQ(all_lines(*reader), std::vector<std::string>{"2:bc"});
  ::close(ends[0]);
}

TEST(request_line, has_an_id_or_says_why_not) {
  const auto good = read_request_line(
      R"({"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": {"input": "x"}})");
  ASSERT_TRUE(good.request);
  EXPECT_EQ(good.request->to, openai::endpoint::embeddings);
  EXPECT_EQ(good.request->body["input"], "x");
  EXPECT_EQ(good.request->text, R"({"input": "x"})");
  const std::tuple<const char*, const char*, const char*> rows[] = {
      {"no json", "", ""},
      {"{}", "", "custom_id"},
      {R"({"custom_id": 5})", "", "custom_id"},
      {R"({"custom_id": ""})", "", "custom_id"},
      {R"({"custom_id": "a", "method": "GET"})", "a", "method"},
      {R"({"custom_id": "a", "url": "/v1/files"})", "a", "url"},
      {R"({"custom_id": "a", "url": "/v1/embeddings", "body": []})", "a", "body"}};
  for (const auto& [text, id, param] : rows) {
    const auto read = read_request_line(text);
    EXPECT_FALSE(read.request) << text;
    EXPECT_EQ(read.custom_id, id) << text;
    EXPECT_EQ(read.fault.param, param) << text;
  }
}

TEST(output_lines, have_the_members_of_openai) {
  const json answer = json::parse(answer_line("a", {{"object", "list"}}));
  EXPECT_EQ(answer["custom_id"], "a");
  EXPECT_EQ(answer["response"]["status_code"], 200);
  EXPECT_EQ(answer["response"]["body"]["object"], "list");
  EXPECT_TRUE(answer["response"]["request_id"].is_string());
  EXPECT_TRUE(answer["error"].is_null());
  const auto why = openai::invalid("n", "wrong", "invalid_type").error();
  const json rejection = json::parse(rejection_line("a", why));
  EXPECT_EQ(rejection["response"]["status_code"], 400);
  EXPECT_EQ(rejection["response"]["body"]["error"]["param"], "n");
  EXPECT_EQ(rejection["error"],
            json({{"code", "invalid_type"}, {"message", "wrong"}, {"param", "n"}}));
  const json fault = json::parse(fault_line("", 7, why));
  EXPECT_TRUE(fault["custom_id"].is_null());
  EXPECT_TRUE(fault["response"].is_null());
  EXPECT_EQ(fault["error"]["line"], 7);
  EXPECT_NE(fault["id"], json::parse(fault_line("", 8, why))["id"]);
}

// ---- ids ---------------------------------------------------------------------------------------

TEST(id_set, distinguishes_new_answered_and_repeated) {
  id_set ids;
  EXPECT_TRUE(ids.add_answered("a"));
  EXPECT_FALSE(ids.add_answered("a"));
  EXPECT_TRUE(ids.add_answered("gone"));
  EXPECT_EQ(ids.meet("a"), id_set::found::answered);
  EXPECT_EQ(ids.meet("a"), id_set::found::repeated);
  EXPECT_EQ(ids.meet("b"), id_set::found::unknown);
  EXPECT_EQ(ids.meet("b"), id_set::found::repeated);
  EXPECT_EQ(ids.unmet(), 1U) << "\"gone\" is in the output only";
}

TEST(shard, reads_i_of_n) {
  const auto third = parse_shard("2/3");
  ASSERT_TRUE(third);
  EXPECT_EQ(third->index, 2U);
  EXPECT_EQ(third->count, 3U);
  for (const char* wrong : {"", "1", "/", "1/", "/2", "2/2", "3/2", "-1/2", "1/2/3", "0/0", "1 /2"})
    EXPECT_FALSE(parse_shard(wrong)) << wrong;
}

TEST(shard, gives_each_id_to_one_part) {
  constexpr uint64_t n = 7;
  std::vector<uint64_t> sizes(n);
  for (int i = 0; i < 700; ++i) {
    const std::string id = "request-" + std::to_string(i);
    uint64_t owners = 0;
    for (uint64_t part = 0; part < n; ++part) {
      const bool has = shard{part, n}.has(id);
      owners += has ? 1 : 0;
      sizes[part] += has ? 1 : 0;
    }
    EXPECT_EQ(owners, 1U) << id;
  }
  for (const uint64_t size : sizes) EXPECT_GT(size, 50U) << "parts are about equal";
  // XXH3 of "" with seed 0, as its authors publish it: documented, so that others can check.
  EXPECT_TRUE((shard{0x2D06800538D394C2 % n, n}.has("")));
}

// ---- the output --------------------------------------------------------------------------------

class output : public testing::Test {
 protected:
  void SetUp() override {
    input_ = ::open(folder_.write("in", "").c_str(), O_RDONLY);
    path_ = (folder_.path() / "out").string();
  }
  void TearDown() override { ::close(input_); }

  result<output_file> open(written& already, shard part = {}, const char* fingerprint = "fp_1") {
    return output_file::open(path_, input_, part, fingerprint, already);
  }
  void is_rejected(int code, std::string_view part_of_message, shard part = {}) {
    const bool exists = std::filesystem::exists(path_);
    const std::string before = exists ? scratch_folder::read(path_) : "";
    written already;
    const auto file = open(already, part);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().exit_code, code);
    EXPECT_NE(file.error().message.find(part_of_message), std::string::npos)
        << file.error().message;
    if (exists) {
      EXPECT_EQ(scratch_folder::read(path_), before) << "nothing of it is changed";
    }
  }
  static std::string answer(const char* id, const char* fingerprint = "fp_1") {
    return answer_line(id, {{"system_fingerprint", fingerprint}});
  }

  scratch_folder folder_;
  int input_ = -1;
  std::string path_;
};

TEST_F(output, is_gone_on_with) {
  const auto why = openai::invalid("", "wrong").error();
  {
    written already;
    auto file = open(already);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(already.n, 0U);
    for (const std::string& line :
         {answer("a"), rejection_line("b", why), fault_line("", 3, why), fault_line("c", 4, why)})
      ASSERT_TRUE(file->append(line));
    ASSERT_TRUE(file->sync());
  }
  written already;
  ASSERT_TRUE(open(already));
  EXPECT_EQ(already.n, 4U);
  EXPECT_EQ(already.cut_bytes, 0U);
  for (const char* id : {"a", "b", "c"}) EXPECT_EQ(already.ids.meet(id), id_set::found::answered);
  EXPECT_TRUE(already.lines.contains(3));
  EXPECT_FALSE(already.lines.contains(4)) << "it has an id, which names it";
}

TEST_F(output, loses_a_cut_last_line_at_every_byte) {
  const std::string whole = answer("a");
  const std::string next = answer("b");
  for (std::size_t n = 0; n < next.size(); ++n) {
    folder_.write("out", whole + next.substr(0, n));
    written already;
    ASSERT_TRUE(open(already)) << n;
    EXPECT_EQ(already.n, 1U);
    EXPECT_EQ(already.cut_bytes, n);
    EXPECT_EQ(scratch_folder::read(path_), whole) << n;
  }
  for (std::size_t n = 0; n < whole.size(); ++n) {
    folder_.write("out", whole.substr(0, n));
    written already;
    ASSERT_TRUE(open(already)) << n;
    EXPECT_EQ(scratch_folder::read(path_), "") << n;
  }
}

TEST_F(output, that_is_something_else_stays_as_it_is) {
  const std::tuple<std::string, const char*> rows[] = {
      {"my thesis", "no output of a batch"},
      {"my thesis\n", "line 1"},
      {answer("a") + "more\n", "line 2"},
      {answer("a", "fp_2"), "another model (fp_2, and this one is fp_1)"},
      {answer("a") + answer("b") + answer("a"), "line 3"}};
  for (const auto& [content, message] : rows) {
    folder_.write("out", content);
    is_rejected(exit_code::usage, message);
  }
  folder_.write("out", answer("a"));
  const bool first = shard{0, 2}.has("a");
  is_rejected(exit_code::usage, "another --shard", shard{first ? 1U : 0U, 2});
}

TEST_F(output, is_no_folder_pipe_or_input) {
  path_ = folder_.path().string();
  const auto rejected = [&](const char* message) {
    written already;
    const auto file = open(already);
    ASSERT_FALSE(file) << message;
    EXPECT_EQ(file.error().exit_code, exit_code::usage);
    EXPECT_NE(file.error().message.find(message), std::string::npos) << file.error().message;
  };
  rejected("no regular file");
  path_ = (folder_.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  rejected("no regular file");
  path_ = "/dev/null";
  rejected("no regular file");
  path_ = (folder_.path() / "in").string();
  rejected("is the input too");
  path_ = (folder_.path() / "no/such/folder").string();
  rejected("No such file");
}

TEST_F(output, belongs_to_one_process_at_a_time) {
  {
    written already;
    const auto file = open(already);
    ASSERT_TRUE(file);
    is_rejected(exit_code::failure, "another process writes");
  }
  written already;
  EXPECT_TRUE(open(already)) << "the lock ends with the file";
}

TEST(fingerprint, distinguishes_files) {
  const scratch_folder folder;
  const std::string big(1 << 20, 'a');
  std::string other = big;
  other.replace(0, 8, "differs!");
  const auto mark = [&](const char* name, const std::string& content) {
    return fingerprint_of(folder.write(name, content).string());
  };
  EXPECT_EQ(mark("a/1", big), mark("b/2", big)) << "names do not count";
  EXPECT_NE(mark("a/1", big), mark("a/2", other));
  EXPECT_NE(mark("a/1", big), mark("a/3", big + "a"));
  EXPECT_EQ(mark("a/1", big).size(), std::string_view("fp_0123456789abcdef").size());
  mark("c/1", big);
  mark("d/1", other);
  EXPECT_NE(fingerprint_of((folder.path() / "c").string()),
            fingerprint_of((folder.path() / "d").string()));
}

}  // namespace
}  // namespace bitnet::host::batch
