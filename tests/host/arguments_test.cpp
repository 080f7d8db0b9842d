// The words of a command line as Boost.Program_options reads them with our style.
#include "settings/arguments.hpp"

#include <gtest/gtest.h>

#include "settings/option_names.hpp"

namespace bitnet::host {
namespace {

using words = std::vector<std::string>;

// "name=value" for each flag, then each positional; or the message.
words read(const char* command, const words& given) {
  const auto got = parse_arguments(*find_command(command), given);
  if (!got) {
    EXPECT_EQ(got.error().exit_code, exit_code::usage);
    return {got.error().message};
  }
  words out;
  for (const flag_use& use : got->flags) out.push_back(std::string(use.row->name) + "=" + use.text);
  out.insert(out.end(), got->positionals.begin(), got->positionals.end());
  return out;
}

struct row {
  const char* why;
  const char* command;
  words given;
  words expected;
};

void check(const std::vector<row>& rows) {
  for (const row& one : rows) {
    SCOPED_TRACE(one.why);
    EXPECT_EQ(read(one.command, one.given), one.expected);
  }
}

TEST(arguments, are_read) {
  check({
      {"nothing", "run", {}, {}},
      {"a value behind it", "run", {"--ctx-size", "4k"}, {"ctx-size=4k"}},
      {"a value in the word", "run", {"--ctx-size=4k"}, {"ctx-size=4k"}},
      {"an empty value in the word", "run", {"--prompt="}, {"prompt="}},
      {"an empty value behind it", "run", {"--prompt", ""}, {"prompt="}},
      {"a value with an equals sign", "run", {"--prompt=a=b"}, {"prompt=a=b"}},
      {"a long name of one letter", "bench", {"--n", "3"}, {"n-gen=3"}},
      {"and its option's short one as a value", "bench", {"--device", "-n"}, {"device=-n"}},
      {"another long name", "run", {"--predict", "3"}, {"n-predict=3"}},
      {"one letter", "run", {"-c", "4k"}, {"ctx-size=4k"}},
      {"one letter with its number", "run", {"-n128"}, {"n-predict=128"}},
      {"several letters behind one dash", "run", {"-ctk", "q8_0"}, {"cache-type-k=q8_0"}},
      {"the same letters in another command", "logits", {"-o", "x"}, {"output=x"}},
      {"and in a third", "bench", {"-o", "json"}, {"output-format=json"}},
      {"a flag takes no word", "run", {"--json", "off"}, {"json=true", "off"}},
      {"unless in its own", "run", {"--json=off"}, {"json=off"}},
      {"turned off", "run", {"--no-json"}, {"json=false"}},
      {"in the order given",
       "run",
       {"--json", "-c", "1", "--no-json", "-c", "2"},
       {"json=true", "ctx-size=1", "json=false", "ctx-size=2"}},
      {"a number is no flag", "run", {"-1", "-5x"}, {"-1", "-5x"}},
      {"a negative value", "run", {"-s", "-1"}, {"seed=-1"}},
      {"a flag's name as a value", "run", {"-p", "--json"}, {"prompt=--json"}},
      {"a flag's name without dashes as a value", "run", {"-p", "prompt"}, {"prompt=prompt"}},
      {"a short flag as a value", "run", {"-p", "-c"}, {"prompt=-c"}},
      {"the end of flags as a value", "run", {"-p", "--"}, {"prompt=--"}},
      {"no flags behind the end", "run", {"--", "--json", "--", "-c"}, {"--json", "--", "-c"}},
      {"a dash alone is a file", "run", {"-", "x"}, {"-", "x"}},
      {"an empty word", "run", {"", "x"}, {"", "x"}},
      {"words that are no UTF-8", "run", {"-p", "\xff\xfe"}, {"prompt=\xff\xfe"}},
  });
}

TEST(arguments, are_rejected_as_they_were_typed) {
  check({
      {"no value", "run", {"-p"}, {"-p needs a value (TEXT)"}},
      {"no value of a long name", "run", {"--ctx-size"}, {"--ctx-size needs a value (N)"}},
      {"a value for what takes none", "run", {"--no-json=1"}, {"--no-json takes no value"}},
      {"an empty one", "run", {"--no-json="}, {"--no-json takes no value"}},
      {"no prefixes",
       "run",
       {"--promp", "x"},
       {"unknown flag --promp (did you mean '--prompt'?); see bitnet run --help"}},
      {"a value of what is unknown",
       "run",
       {"--qqqqqqqqqq=1"},
       {"unknown flag --qqqqqqqqqq; see bitnet run --help"}},
      {"its value is not the name's",
       "run",
       {"--qqqqqqqqqq="},
       {"unknown flag --qqqqqqqqqq; see bitnet run --help"}},
      {"no long name behind one dash",
       "run",
       {"-prompt", "x"},
       {"unknown flag -prompt (did you mean '--prompt'?); see bitnet run --help"}},
      {"no short name behind two",
       "run",
       {"--ctk", "x"},
       {"unknown flag --ctk (did you mean "
        "'-ctk'?); see bitnet run --help"}},
      {"a letter with text",
       "run",
       {"-px"},
       {"unknown flag -px (did you mean '-p'?); see bitnet "
        "run --help"}},
      {"three dashes",
       "run",
       {"---json"},
       {"unknown flag ---json (did you mean '--json'?); see bitnet run --help"}},
      {"no name", "run", {"--=x"}, {"unknown flag -- (did you mean '-m'?); see bitnet run --help"}},
      {"of another command",
       "version",
       {"-c", "3"},
       {"`bitnet version` has no flag -c; see bitnet version --help"}},
      {"turned off in another command",
       "tokenize",
       {"--no-perf", "x"},
       {"`bitnet tokenize` has no flag --no-perf; see bitnet tokenize --help"}},
      {"only flags are turned off",
       "run",
       {"--no-prompt"},
       {"unknown flag --no-prompt (did you mean '--prompt'?); see bitnet run --help"}},
  });
}

// What Program_options would read as several names, or as a pattern of names.
TEST(arguments, have_plain_names) {
  for (const option& row : all_options())
    for (const std::string& name : long_names_of(row))
      EXPECT_EQ(name.find_first_of(",*="), std::string::npos) << name;
}

}  // namespace
}  // namespace bitnet::host
