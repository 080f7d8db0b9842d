#include "plugin/loading/mapped_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "../../fakes/loader_fixture.hpp"
#include "plugin/trust/trust.hpp"

namespace bitnet::plugin {
namespace {

struct row {
  const char* why;
  const char* text;
  std::size_t files;
  const char* path;
  bool deleted;
};

TEST(mapped_files, each_line_of_the_kernel_gives_its_file_or_none) {
  const row rows[] = {
      {"a library", "7f0e00-7f1000 r-xp 00002000 103:02 1185    /usr/lib/x.so\n", 1,
       "/usr/lib/x.so", false},
      {"no newline at the end", "1-2 r--p 0 08:01 7 /x", 1, "/x", false},
      {"a name with blanks", "1-2 r--p 0 08:01 7 /a b c\n", 1, "/a b c", false},
      {"a replaced file", "1-2 r--p 0 08:01 7 /x.so (deleted)\n", 1, "/x.so", true},
      {"no name", "1-2 r--p 0 08:01 7 \n", 1, "", false},
      {"memory of no file", "1-2 rw-p 00000000 00:00 0      [heap]\n", 0, "", false},
      {"no numbers", "x-y r--p 0 08:01 7 /x\n", 0, "", false},
      {"cut off", "1-2 r--p 0 08:", 0, "", false},
      {"a number that is too large", "1-2 r--p 0 08:01 99999999999999999999 /x\n", 0, "", false},
      {"nothing", "", 0, "", false},
      {"empty lines", "\n\n\n", 0, "", false},
  };
  for (const row& r : rows) {
    const auto found = parse_maps(r.text);
    ASSERT_EQ(found.size(), r.files) << r.why;
    if (found.empty()) continue;
    EXPECT_EQ(found.front().path, r.path) << r.why;
    EXPECT_EQ(found.front().deleted, r.deleted) << r.why;
  }
  const auto numbers = parse_maps("10-2f r-xp 00002000 103:02 1185 /x\n").front();
  EXPECT_EQ(numbers.begin, 0x10u);
  EXPECT_EQ(numbers.end, 0x2fu);
  EXPECT_EQ(numbers.identity, (mapped_identity{uint64_t{0x103} << 32 | 2, 1185}));
}

TEST(mapped_files, a_file_is_known_by_what_it_looks_like_when_mapped) {
  const test::folder f;
  const auto a = open_trusted(f.write("a", "x")), b = open_trusted(f.write("b", "x"));
  ASSERT_TRUE(a && b);
  const auto first = identity_when_mapped(a->fd.get());
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first, identity_when_mapped(a->fd.get()));
  EXPECT_NE(first, identity_when_mapped(b->fd.get()));
  EXPECT_FALSE(is_mapped(*first)) << "only for a moment";
  EXPECT_FALSE(identity_when_mapped(-1).has_value());
}

TEST(mapped_files, code_lies_in_a_file_and_the_stack_does_not) {
  const int here = 0;
  EXPECT_TRUE(mapped_at(reinterpret_cast<uintptr_t>(&parse_maps)).has_value());
  EXPECT_FALSE(mapped_at(reinterpret_cast<uintptr_t>(&here)).has_value());
}

}  // namespace
}  // namespace bitnet::plugin
