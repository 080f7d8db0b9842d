// Files on disk: what cannot be opened, split models, and files that change under us.
#include "gguf/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "../../scratch_folder.hpp"
#include "gguf_builder.hpp"

namespace bitnet::gguf {
namespace {

using tests::bytes;
using tests::gguf_builder;
namespace fs = std::filesystem;

class gguf_file : public testing::Test {
 protected:
  fs::path write(const std::string& name, const bytes& content) const {
    std::ofstream out(folder_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(content.data()),
              static_cast<std::streamsize>(content.size()));
    return folder_ / name;
  }
  static gguf_builder shard(uint16_t number, uint16_t count, int32_t tensors,
                            const std::string& tensor) {
    gguf_builder b;
    b.number<uint16_t>("split.no", 2, number).number<uint16_t>("split.count", 2, count);
    b.number<int32_t>("split.tensors.count", 5, tensors);
    b.add(tensor, {8}, 0, bytes(32));
    return b;
  }
  static std::string why(const fs::path& path, file::shards which = file::shards::all) {
    const auto f = file::open(path, which);
    return f ? "opened" : f.error().message;
  }
  static bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }

  const test::scratch_folder scratch_;
  const fs::path& folder_ = scratch_.path();
};

TEST_F(gguf_file, says_why_it_cannot_be_opened) {
  EXPECT_EQ(file::open(folder_ / "none.gguf").error().status, BITNET_NOT_FOUND);
  EXPECT_TRUE(contains(why(folder_ / "none.gguf"), "No such file or directory; check the path"));
  EXPECT_EQ(file::open(folder_).error().status, BITNET_BAD_DATA);
  EXPECT_TRUE(contains(why(folder_),
                       "is a directory without a config.json; name the .gguf file inside it"));
  EXPECT_TRUE(contains(why(write("empty.gguf", {})), "is empty"));
  bytes text;
  tests::put_raw(text, "Once upon a time", 16);
  EXPECT_TRUE(contains(why(write("text.gguf", text)), "not a GGUF model"));
  ASSERT_EQ(mkfifo((folder_ / "pipe.gguf").c_str(), 0600), 0);
  EXPECT_TRUE(contains(why(folder_ / "pipe.gguf"), "not a regular file"));
  EXPECT_TRUE(contains(why("/dev/null"), "not a regular file"));
}

TEST_F(gguf_file, says_that_it_may_not_be_read) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const fs::path path = write("secret.gguf", gguf_builder().build());
  fs::permissions(path, fs::perms::none);
  EXPECT_TRUE(contains(why(path), "Permission denied; check who may read it"));
}

TEST_F(gguf_file, reads_all_shards_of_a_split_model) {
  write("m-00002-of-00003.gguf", shard(1, 3, 3, "b").build());
  write("m-00003-of-00003.gguf", shard(2, 3, 3, "c").build());
  const auto f = file::open(write("m-00001-of-00003.gguf", shard(0, 3, 3, "a").build()));
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_EQ(f->containers().size(), 3U);
  ASSERT_EQ(f->tensors().size(), 3U);
  ASSERT_NE(f->find("c"), nullptr);
  EXPECT_EQ(f->find("c")->shard, 2U);
  EXPECT_EQ(f->find("d"), nullptr);
  EXPECT_TRUE(f->check_size());
}

TEST_F(gguf_file, rejects_shards_that_do_not_belong_together) {
  const fs::path first = write("m-00001-of-00002.gguf", shard(0, 2, 2, "a").build());
  const fs::path second = folder_ / "m-00002-of-00002.gguf";
  EXPECT_TRUE(contains(why(first), "part 2 of 2")) << why(first);
  EXPECT_EQ(file::open(first).error().status, BITNET_NOT_FOUND);
  EXPECT_EQ(why(first, file::shards::first), "opened") << "metadata needs no second part";
  struct row {
    const char* reason;
    gguf_builder content;
    const char* says;
  };
  const row rows[] = {
      {"the first part under another name", shard(0, 2, 2, "a"), "says that it is part 1 of 2"},
      {"a part of a longer split", shard(1, 3, 2, "b"), "says that it is part 2 of 3"},
      {"a whole model", gguf_builder(), "says that it is part 1 of 1"},
      {"the same tensor again", shard(1, 2, 2, "a"), "tensor 'a' is in two parts"},
  };
  for (const row& r : rows) {
    write("m-00002-of-00002.gguf", r.content.build());
    EXPECT_TRUE(contains(why(first), r.says)) << r.reason << ": " << why(first);
  }
  write("m-00002-of-00002.gguf", shard(1, 2, 2, "b").build());
  EXPECT_EQ(why(first), "opened");
  EXPECT_TRUE(contains(why(second), "is part 2 of 2; open the first, 'm-00001-of-00002.gguf'"));
  EXPECT_TRUE(contains(why(write("renamed.gguf", shard(0, 2, 2, "a").build())),
                       "its name should end in -00001-of-00002.gguf"));
  write("m-00001-of-00002.gguf", shard(0, 2, 9, "a").build());
  EXPECT_TRUE(contains(why(first), "split.tensors.count is 9, but the 2 parts hold 2 tensors"));
}

TEST_F(gguf_file, rejects_senseless_split_numbers) {
  gguf_builder b;
  b.u32("split.no", 7).u32("split.count", 3);
  EXPECT_TRUE(contains(why(write("m.gguf", b.build())), "claims to be part 7 (from 0) of 3"));
  b.u32("split.no", 0).u32("split.count", 100000);
  EXPECT_TRUE(contains(why(write("m.gguf", b.build())), "at most 99999 parts"));
  b.text("split.count", "2");
  EXPECT_TRUE(contains(why(write("m.gguf", b.build())), "should be an integer"));
}

TEST_F(gguf_file, notices_that_it_was_cut_while_open) {
  const fs::path path = write("m.gguf", shard(0, 1, 1, "a").build());
  const auto f = file::open(path);
  ASSERT_TRUE(f) << f.error().message;
  EXPECT_TRUE(f->check_size());
  fs::resize_file(path, 16);
  const auto ok = f->check_size();
  ASSERT_FALSE(ok);
  EXPECT_TRUE(contains(ok.error().message, "it was changed while in use"));
}

}  // namespace
}  // namespace bitnet::gguf
