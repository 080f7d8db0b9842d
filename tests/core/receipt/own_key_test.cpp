// The key of a user, and sums of files that are remembered.

#include "receipt/own_key.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../../scratch_folder.hpp"
#include "files/descriptor.hpp"
#include "plugin/trust/ed25519.hpp"
#include "receipt/digest.hpp"

namespace bitnet::receipt {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const fs::path& file) {
  struct stat s{};
  EXPECT_EQ(::stat(file.c_str(), &s), 0) << file;
  return s.st_mode & 07777U;
}

TEST(own_key, is_made_once_and_for_its_owner_alone) {
  const test::scratch_folder scratch;
  const fs::path folder = scratch.path() / "data/bitnet";
  const auto first = own_key(folder);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  const key_files files = keys_in(folder);
  EXPECT_EQ(mode_of(files.secret), 0600U);
  EXPECT_EQ(mode_of(folder), 0700U);
  EXPECT_EQ(own_key(folder).value_or(""), *first) << "the second time it is the same";
  EXPECT_EQ(public_key_in(files.open).value_or("a"), public_key_in(files.secret).value_or("b"));
}

TEST(own_key, that_others_may_read_is_rejected) {
  const test::scratch_folder scratch;
  ASSERT_TRUE(own_key(scratch.path() / "keys").has_value());
  const key_files files = keys_in(scratch.path() / "keys");
  ASSERT_EQ(::chmod(files.secret.c_str(), 0640), 0);
  const auto rejected = own_key(scratch.path() / "keys");
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().status, BITNET_REJECTED);
  EXPECT_NE(rejected.error().message.find("chmod 600"), std::string::npos);
}

TEST(own_key, a_file_that_is_not_a_key_is_not_replaced) {
  const test::scratch_folder scratch;
  const fs::path folder = scratch.path() / "keys";
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all);
  std::ofstream(keys_in(folder).secret) << "not a key";
  fs::permissions(keys_in(folder).secret, fs::perms::owner_read | fs::perms::owner_write);
  const auto text = own_key(folder);
  ASSERT_TRUE(text.has_value()) << "signing with it says what is wrong";
  EXPECT_FALSE(plugin::sign_message("x", *text).has_value());
}

// FIPS 180-2, appendix B.
TEST(sha256_sum, is_the_standards) {
  sha256 sum;
  sum.add("a");
  sum.add("bc");
  EXPECT_EQ(sum.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

open_file opened(const files::descriptor& file, const fs::path& path, const std::string& identity) {
  return {file.get(), fs::file_size(path), identity, path};
}

TEST(remembered_sums, are_believed_while_the_identity_is_the_same) {
  const test::scratch_folder scratch;
  const fs::path path = scratch.path() / "model";
  std::ofstream(path) << std::string(std::size_t{2} << 20, 'x');
  const files::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const remembered_sums sums(scratch.path() / "sums");
  const auto first = sums.of(opened(file, path, "one"));
  ASSERT_TRUE(first.has_value());
  std::ofstream(path) << std::string(std::size_t{2} << 20, 'y');
  EXPECT_EQ(sums.of(opened(file, path, "one")).value_or(""), *first) << "it was not read again";
  EXPECT_NE(sums.of(opened(file, path, "two")).value_or(*first), *first) << "it is another file";
  for (const auto& entry : fs::directory_iterator(scratch.path() / "sums"))
    std::ofstream(entry.path()) << "bitnet file sum 1\none\n" << std::string(64, 'z') << "\n";
  EXPECT_NE(sums.of(opened(file, path, "one")).value_or(*first), *first) << "a damaged one is none";
}

TEST(remembered_sums, of_a_file_that_became_shorter_are_none) {
  const test::scratch_folder scratch;
  const fs::path path = scratch.path() / "model";
  std::ofstream(path) << "abc";
  const files::descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  open_file longer = opened(file, path, "");
  longer.size_bytes = 10;
  const auto sum = sha256_of(longer);
  ASSERT_FALSE(sum.has_value());
  EXPECT_EQ(sum.error().status, BITNET_BAD_DATA);
}

}  // namespace
}  // namespace bitnet::receipt
