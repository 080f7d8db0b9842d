// What is kept is found again; what is damaged, foreign, too old or too much is not.
#include "engine/pack_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <random>

#include "../../scratch_folder.hpp"

namespace bitnet::engine {
namespace {

namespace fs = std::filesystem;

class packed_files : public testing::Test {
 protected:
  pack_cache cache(uint64_t max_bytes = uint64_t{1} << 30) {
    return pack_cache(
        {.folder = folder_ / "packed",
         .max_bytes = max_bytes,
         .note = [this](uint32_t, const std::string& text) { notes_ += text + "\n"; }});
  }
  static std::vector<std::byte> form(size_t size, uint32_t seed = 1) {
    std::mt19937 random(seed);
    std::vector<std::byte> out(size);
    for (std::byte& b : out) b = static_cast<std::byte>(random());
    return out;
  }
  bool finds(const std::string& key, const std::vector<std::byte>& expected) {
    const auto found = cache().find(key);
    return found && std::ranges::equal(found->form, expected);
  }
  void damage(const fs::path& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char old = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(old ^ 1));
  }

  test::scratch_folder scratch_;
  fs::path folder_ = scratch_.path();
  std::string notes_;
};

TEST_F(packed_files, are_found_again) {
  for (const size_t size : {size_t{1}, size_t{4} << 20, (size_t{9} << 20) + 5}) {
    const std::string key = "key " + std::to_string(size);
    EXPECT_FALSE(cache().find(key));
    cache().keep(key, form(size));
    EXPECT_TRUE(finds(key, form(size))) << size << notes_;
    const auto found = cache().find(key);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(found->form.data()) % 4096, 0U) << "begins at a page";
  }
  EXPECT_EQ(notes_, "");
  EXPECT_FALSE(cache().find("another key"));
}

TEST_F(packed_files, damage_is_reported_and_removed) {
  const size_t size = (size_t{5} << 20) + 3;
  struct row {
    const char* why;
    std::streamoff at;  // byte to change, or -1: cut the file
  };
  const row rows[] = {{"the magic", 0},
                      {"the length", 8},
                      {"the key", 40},
                      {"the header's padding", 3000},
                      {"the first byte", 4096},
                      {"the last byte", 4096 + std::streamoff(size) - 1},
                      {"a checksum", 4096 + std::streamoff(size) + 3},
                      {"the end", -1}};
  for (const row& r : rows) {
    cache().keep("key", form(size));
    const fs::path path = cache().file_of("key");
    if (r.at < 0)
      fs::resize_file(path, fs::file_size(path) - 1);
    else
      damage(path, r.at);
    notes_.clear();
    EXPECT_FALSE(cache().find("key")) << r.why;
    EXPECT_NE(notes_.find("are made again"), std::string::npos) << r.why << notes_;
    EXPECT_FALSE(fs::exists(path)) << r.why;
    cache().keep("key", form(size));
    EXPECT_TRUE(finds("key", form(size))) << r.why;
  }
}

TEST_F(packed_files, of_another_key_under_this_name_are_not_used) {
  cache().keep("one", form(100));
  fs::copy_file(cache().file_of("one"), cache().file_of("two"));
  EXPECT_FALSE(cache().find("two"));
  EXPECT_NE(notes_.find("belongs to another model"), std::string::npos) << notes_;
}

TEST_F(packed_files, that_others_may_write_are_not_used) {
  cache().keep("key", form(100));
  const fs::path path = cache().file_of("key");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_FALSE(cache().find("key"));
  EXPECT_NE(notes_.find("another user could write"), std::string::npos) << notes_;
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(finds("key", form(100)));
  fs::rename(path, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", path);
  EXPECT_FALSE(cache().find("key")) << "a link";
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "packed").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(packed_files, stay_below_the_limit) {
  constexpr uint64_t room = 350000;
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 4; ++i) {
    const std::string key = "key " + std::to_string(i);
    cache(room).keep(key, form(100000, static_cast<uint32_t>(i)));
    if (fs::exists(cache().file_of(key)))
      fs::last_write_time(cache().file_of(key), now - std::chrono::hours(10 - i));
    if (i == 2) {
      EXPECT_TRUE(finds("key 0", form(100000, 0))) << "and is used last";
    }
  }
  EXPECT_TRUE(finds("key 0", form(100000, 0)));
  EXPECT_FALSE(cache().find("key 1")) << "was not used longest";
  EXPECT_TRUE(finds("key 3", form(100000, 3)));
  notes_.clear();
  cache(room).keep("large", form(400000));
  EXPECT_NE(notes_.find("are not kept: the cache may have 350000"), std::string::npos) << notes_;
}

TEST_F(packed_files, a_folder_that_cannot_be_made_is_a_note) {
  std::ofstream(folder_ / "packed") << "a file";
  cache().keep("key", form(100));
  EXPECT_NE(notes_.find("packed weights are not kept"), std::string::npos) << notes_;
  EXPECT_FALSE(cache().find("key"));
}

}  // namespace
}  // namespace bitnet::engine
