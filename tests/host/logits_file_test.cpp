// Files of saved logits: what was written is read, and nothing else is.
#include "eval/logits_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "../scratch_folder.hpp"

namespace bitnet::host::eval {
namespace {

using test::scratch_folder;

constexpr uint32_t n_vocab = 3, n_context = 5, n_chunks = 2;  // two scored rows in each chunk

class LogitsFile : public testing::Test {
 protected:
  std::string file(const char* name) const { return (folder_.path() / name).string(); }

  static std::vector<float> rows_of(uint32_t chunk) {
    std::vector<float> out(2 * n_vocab);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(10 * chunk + i);
    return out;
  }

  std::string write(const char* name, std::vector<float> first = rows_of(0)) const {
    auto to = logits_writer::create(
        file(name), {"a model", n_vocab, n_context, n_chunks, {0, 1, 2, 0, 1, 2, 1, 0, 2, 1}});
    EXPECT_TRUE(to);
    if (!to) return "";
    EXPECT_TRUE(to->write(std::span(first).first(n_vocab)));  // row by row
    EXPECT_TRUE(to->write(std::span(first).subspan(n_vocab)));
    EXPECT_TRUE(to->end_chunk());
    EXPECT_TRUE(to->write(rows_of(1)));
    EXPECT_TRUE(to->end_chunk());
    EXPECT_TRUE(to->finish());
    return file(name);
  }

  static std::string bytes_of(const std::string& name) {
    std::ifstream in(name, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }

  // Why the whole file is rejected; "": it is not.
  std::string why(const std::string& bytes) const {
    const std::string name = file("changed");
    std::ofstream(name, std::ios::binary | std::ios::trunc) << bytes;
    return why_file(name);
  }
  static std::string why_file(const std::string& name) {
    auto from = logits_reader::open(name);
    if (!from) return from.error();
    for (uint32_t i = 0; i < n_chunks; ++i) {
      std::vector<float> rows(2 * n_vocab);
      if (auto done = from->read(rows); !done) return done.error();
      if (auto done = from->end_chunk(); !done) return done.error();
    }
    return "";
  }

  scratch_folder folder_;
};

TEST_F(LogitsFile, what_was_written_is_read) {
  auto from = logits_reader::open(write("good"));
  ASSERT_TRUE(from);
  EXPECT_EQ(from->header().model, "a model");
  EXPECT_EQ(from->header().n_vocab, n_vocab);
  EXPECT_EQ(from->header().n_context, n_context);
  EXPECT_EQ(from->header().n_chunks, n_chunks);
  EXPECT_EQ(from->header().tokens, (std::vector<bitnet_token>{0, 1, 2, 0, 1, 2, 1, 0, 2, 1}));
  for (uint32_t i = 0; i < n_chunks; ++i) {
    std::vector<float> rows(2 * n_vocab);
    ASSERT_TRUE(from->read(rows));
    EXPECT_EQ(rows, rows_of(i));
    EXPECT_TRUE(from->end_chunk());
  }
}

TEST_F(LogitsFile, a_flipped_bit_anywhere_is_found) {
  const std::string good = bytes_of(write("good"));
  ASSERT_EQ(good.size(), 32 + 7 + 4 * 10 + 8 + 2 * (4 * 6 + 8));
  EXPECT_EQ(why(good), "");
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_NE(why(bad), "") << "byte " << at;
  }
}

TEST_F(LogitsFile, a_file_of_any_other_length_is_rejected) {
  const std::string good = bytes_of(write("good"));
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_NE(why(good.substr(0, n)), "") << n;
  EXPECT_NE(why(good + "x").find("it was cut or damaged"), std::string::npos);
}

TEST_F(LogitsFile, sizes_are_not_believed) {
  const std::string good = bytes_of(write("good"));
  for (const std::size_t at : {12U, 16U, 20U, 24U})
    for (const uint32_t value : {0U, 1U, 2U, 1U << 24, 0x7fffffffU, 0xffffffffU}) {
      std::string bad = good;
      std::memcpy(bad.data() + at, &value, sizeof value);
      if (bad == good) continue;
      EXPECT_NE(why(bad), "") << at << " " << value;
    }
}

TEST_F(LogitsFile, another_version_is_named) {
  std::string other = bytes_of(write("good"));
  other[8] = 9;
  EXPECT_NE(why(other).find("version 9"), std::string::npos);
}

TEST_F(LogitsFile, chunks_in_another_order_are_found) {
  std::string other = bytes_of(write("good"));
  const std::size_t begin = 32 + 7 + 40 + 8;
  const std::string first = other.substr(begin, 32);
  other = other.substr(0, begin) + other.substr(begin + 32) + first;
  EXPECT_NE(why(other).find("checksum of chunk 1"), std::string::npos);
}

TEST_F(LogitsFile, no_number_is_rejected) {
  std::vector<float> rows = rows_of(0);
  rows[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(why_file(write("nan", rows)).find("no finite number"), std::string::npos);
}

TEST_F(LogitsFile, tokens_outside_of_the_vocabulary_are_rejected) {
  auto to = logits_writer::create(file("ids"), {"m", n_vocab, 4, 1, {0, 1, 3, 0}});
  ASSERT_TRUE(to);
  ASSERT_TRUE(to->write(rows_of(0)));
  ASSERT_TRUE(to->end_chunk());
  ASSERT_TRUE(to->finish());
  const std::string said = why_file(file("ids"));
  EXPECT_NE(said, "");
}

TEST_F(LogitsFile, what_is_no_file_is_rejected_at_once) {
  EXPECT_NE(why_file(file("missing")).find("cannot be opened"), std::string::npos);
  EXPECT_NE(why_file(folder_.path().string()).find("no regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_NE(why_file(file("pipe")).find("no regular file"), std::string::npos);
}

}  // namespace
}  // namespace bitnet::host::eval
