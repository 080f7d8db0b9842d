// Compiled kernels that are kept: what comes back is what was put there, or nothing.

#include "binary_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "../scratch_folder.hpp"
#include "platform.hpp"

namespace bitnet::opencl::test {
namespace {

namespace fs = std::filesystem;

class cache_folder : public testing::Test {
 protected:
  std::vector<unsigned char> bytes_of(const fs::path& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void put(const fs::path& path, const std::vector<unsigned char>& bytes) const {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  bitnet::test::scratch_folder scratch_;
  fs::path root_ = scratch_.path();
  fs::path folder_ = root_ / "a/b";  // made when it is needed
};

const std::vector<unsigned char> some = {1, 2, 3, 250, 0, 7};

TEST_F(cache_folder, gives_back_what_was_kept) {
  const binary_cache cache(folder_);
  std::string note;
  std::vector<unsigned char> found;
  EXPECT_FALSE(cache.load("key", found, note));
  EXPECT_EQ(note, "") << "that nothing is there yet is no news";
  ASSERT_TRUE(cache.store("key", some, note)) << note;
  ASSERT_TRUE(cache.load("key", found, note)) << note;
  EXPECT_EQ(found, some);
  EXPECT_FALSE(cache.load("another key", found, note));
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "nothing is left beside it";
  ASSERT_TRUE(cache.store("key", {9}, note)) << "replaces what is there";
  ASSERT_TRUE(cache.load("key", found, note));
  EXPECT_EQ(found, std::vector<unsigned char>{9});
}

TEST_F(cache_folder, damage_at_any_place_is_reported) {
  const binary_cache cache(folder_);
  std::string note;
  ASSERT_TRUE(cache.store("key", some, note)) << note;
  const fs::path path = cache.path_of("key");
  const std::vector<unsigned char> whole = bytes_of(path);
  ASSERT_GT(whole.size(), 40u);
  std::vector<unsigned char> found = {42};
  const auto rejected = [&](const std::vector<unsigned char>& bytes) {
    put(path, bytes);
    note.clear();
    return !cache.load("key", found, note) && note.find("damaged") != std::string::npos;
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    std::vector<unsigned char> changed = whole;
    changed[at] ^= 4;
    EXPECT_TRUE(rejected(changed)) << "byte " << at;
    EXPECT_TRUE(rejected({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at)}))
        << "cut at " << at;
  }
  std::vector<unsigned char> longer = whole;
  longer.push_back(0);
  EXPECT_TRUE(rejected(longer));
  EXPECT_EQ(found, std::vector<unsigned char>{42}) << "nothing was handed out";
  put(path, whole);
  EXPECT_TRUE(cache.load("key", found, note)) << "the file that this changed is a good one";
}

TEST_F(cache_folder, what_others_can_write_is_not_run) {
  const binary_cache cache(folder_);
  std::string note;
  std::vector<unsigned char> found;
  ASSERT_TRUE(cache.store("key", some, note)) << note;
  const fs::path path = cache.path_of("key");
  fs::permissions(path, fs::perms::group_write, fs::perm_options::add);
  EXPECT_FALSE(cache.load("key", found, note));
  EXPECT_NE(note.find("users other than this one"), std::string::npos) << note;
  fs::permissions(path, fs::perms::group_write, fs::perm_options::remove);
  fs::rename(path, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", path);
  EXPECT_FALSE(cache.load("key", found, note)) << "a link";
  fs::permissions(folder_, fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(cache.store("key", some, note));
  EXPECT_NE(note.find("users other than this one"), std::string::npos) << note;
}

TEST_F(cache_folder, nothing_is_made_where_another_user_leads) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t nobody = 65534;
  fs::create_directory(root_ / "theirs");
  fs::create_directory(root_ / "precious");
  fs::create_directory_symlink(root_ / "precious", root_ / "link");
  ASSERT_EQ(lchown((root_ / "theirs").c_str(), nobody, nobody), 0);
  ASSERT_EQ(lchown((root_ / "link").c_str(), nobody, nobody), 0);
  for (const char* name : {"theirs/deep/kernels", "link/deep", "link"}) {
    std::string note;
    EXPECT_FALSE(binary_cache(root_ / name).store("key", some, note)) << name;
    EXPECT_NE(note.find("users other than this one"), std::string::npos) << note;
  }
  EXPECT_TRUE(fs::is_empty(root_ / "theirs"));
  EXPECT_TRUE(fs::is_empty(root_ / "precious"));
}

TEST_F(cache_folder, a_place_that_cannot_be_made_is_reported) {
  put(root_ / "file", some);
  const binary_cache cache(root_ / "file/folder");
  std::string note;
  std::vector<unsigned char> found;
  EXPECT_FALSE(cache.load("key", found, note));
  EXPECT_FALSE(cache.store("key", some, note));
  EXPECT_NE(note.find("not kept"), std::string::npos) << note;
}

TEST_F(cache_folder, off_keeps_nothing) {
  for (const char* name : {"", "off"}) {
    const binary_cache cache(name);
    std::string note;
    std::vector<unsigned char> found;
    EXPECT_FALSE(cache.store("key", some, note));
    EXPECT_FALSE(cache.load("key", found, note));
    EXPECT_EQ(note, "");
  }
  EXPECT_FALSE(fs::exists("off"));
}

// One kernel compiled on the first device, with this cache; what was logged.
std::string compile_with(const fs::path& folder) {
  bitnet_error error{};
  error.struct_size = sizeof error;
  const sdk::reporter report(&error, "test");
  std::string logged, why;
  const auto platform = open_platform(
      usual_loader, {folder, [&](uint32_t, const std::string& line) { logged += line + "\n"; }},
      why);
  if (!platform) return "no device: " + why;
  std::unique_ptr<gpu::device> device;
  std::unique_ptr<gpu::kernel> kernel;
  if (platform->open(0, device, report) != BITNET_OK ||
      device->make_kernel({gpu::kernel_id::gather_rows, {4}}, kernel, report) != BITNET_OK)
    return std::string("failed: ") + error.message;
  return logged;
}

TEST_F(cache_folder, kernels_are_compiled_once) {
  const std::string first = compile_with(folder_);
  if (first.starts_with("no device")) GTEST_SKIP() << first;
  ASSERT_EQ(first, "");
  ASSERT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  const fs::path path = fs::directory_iterator(folder_)->path();
  const std::vector<unsigned char> kept = bytes_of(path);
  const auto last_write = fs::last_write_time(path);
  EXPECT_EQ(compile_with(folder_), "");
  EXPECT_EQ(fs::last_write_time(path), last_write) << "it was read, not written";

  std::vector<unsigned char> damaged = kept;
  damaged.back() ^= 1;
  put(path, damaged);
  EXPECT_NE(compile_with(folder_).find("damaged"), std::string::npos);
  EXPECT_EQ(compile_with(folder_), "") << "it was healed";

  // Whole, and no program of this driver.
  const uint64_t key_bytes = [&] {
    uint64_t n = 0;
    std::copy_n(kept.begin() + 16, sizeof n, reinterpret_cast<unsigned char*>(&n));
    return n;
  }();
  const std::string key(kept.begin() + 40,
                        kept.begin() + 40 + static_cast<std::ptrdiff_t>(key_bytes));
  std::string note;
  ASSERT_TRUE(binary_cache(folder_).store(key, some, note)) << note;
  EXPECT_NE(compile_with(folder_).find("refuses"), std::string::npos);
  EXPECT_EQ(compile_with(folder_), "") << "it was healed";
}

}  // namespace
}  // namespace bitnet::opencl::test
