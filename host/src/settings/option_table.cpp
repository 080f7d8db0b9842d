#include <algorithm>
#include <array>
#include <cctype>

#include "settings/option.hpp"

namespace bitnet::host {
namespace {

namespace to = command_bit;
constexpr command_set generating = to::run | to::chat;
constexpr command_set computing = generating | to::logits;
constexpr command_set reading = computing | to::inspect | to::tokenize | to::detokenize;
constexpr command_set everywhere = reading | to::backends | to::version | to::help;

// Names, aliases and defaults are llama.cpp's wherever it has the option. ubatch-size is the size
// of one step; batch-size limits it, as there.
constexpr auto rows = std::to_array<option>({
    {.name = "model",
     .aliases = "-m",
     .type = kind::text,
     .metavar = "FILE",
     .help = "GGUF model, or its name in the models folder (default: the demo model)",
     .group = "Model",
     .commands = reading,
     .llama_variable = "LLAMA_ARG_MODEL"},
    {.name = "i2s-layout",
     .type = kind::choice,
     .initial = "a",
     .metavar = "a|b|c",
     .help = "how I2_S weights are packed; files do not say it",
     .group = "Model",
     .commands = computing | to::inspect,
     .choices = "a|b|c"},
    {.name = "activation",
     .type = kind::choice,
     .initial = "auto",
     .metavar = "auto|relu2|silu",
     .help = "activation of the feed-forward part",
     .group = "Model",
     .commands = computing | to::inspect,
     .choices = "auto|relu2|silu"},

    {.name = "prompt",
     .aliases = "-p",
     .type = kind::text,
     .metavar = "TEXT",
     .help = "text to continue",
     .group = "Text",
     .commands = computing,
     .command_line_only = true},
    {.name = "file",
     .aliases = "-f",
     .type = kind::text,
     .metavar = "FILE",
     .help = "read the text from a file",
     .group = "Text",
     .commands = computing | to::tokenize | to::detokenize,
     .command_line_only = true},
    {.name = "ids",
     .type = kind::text,
     .metavar = "\"1 2 3\"",
     .help = "token ids instead of a prompt",
     .group = "Text",
     .commands = to::logits,
     .command_line_only = true},
    {.name = "system-prompt",
     .aliases = "-sys",
     .type = kind::text,
     .metavar = "TEXT",
     .help = "first message of the chat; with run, the prompt becomes a chat turn",
     .group = "Text",
     .commands = generating},
    {.name = "chat-template",
     .type = kind::text,
     .metavar = "NAME",
     .help = "auto, bitnet, llama3, chatml, falcon3, instruct or raw",
     .group = "Text",
     .commands = generating},
    {.name = "conversation",
     .aliases = "-cnv",
     .type = kind::flag,
     .help = "chat instead of continuing one prompt",
     .group = "Text",
     .commands = to::run,
     .command_line_only = true},
    {.name = "escape",
     .aliases = "-e",
     .type = kind::flag,
     .initial = "true",
     .help = "read \\n, \\t, \\\\, \\\", \\x41 in texts given as flags",
     .group = "Text",
     .commands = generating},
    {.name = "display-prompt",
     .type = kind::flag,
     .initial = "true",
     .help = "print the prompt before its continuation",
     .group = "Text",
     .commands = to::run},
    {.name = "add-bos",
     .type = kind::flag,
     .help = "put the begin-of-sequence token first",
     .group = "Text",
     .commands = to::tokenize},
    {.name = "parse-special",
     .type = kind::flag,
     .help = "read names of control tokens in the text as those tokens",
     .group = "Text",
     .commands = to::tokenize | to::logits},
    {.name = "special",
     .aliases = "-sp",
     .type = kind::flag,
     .help = "print control tokens by name",
     .group = "Text",
     .commands = to::detokenize},

    {.name = "n-predict",
     .aliases = "-n --predict",
     .type = kind::integer,
     .initial = "-1",
     .metavar = "N",
     .help = "tokens to generate at most; -1: until the model ends",
     .group = "Generation",
     .commands = generating,
     .lowest = -1,
     .highest = 2147483647,
     .llama_variable = "LLAMA_ARG_N_PREDICT"},
    {.name = "reverse-prompt",
     .aliases = "-r --stop",
     .type = kind::list,
     .metavar = "TEXT",
     .help = "stop where this text would appear; may be repeated",
     .group = "Generation",
     .commands = generating},
    {.name = "stop-id",
     .type = kind::list,
     .metavar = "ID",
     .help = "stop at this token; may be repeated",
     .group = "Generation",
     .commands = generating},
    {.name = "ignore-eos",
     .type = kind::flag,
     .help = "never choose an end-of-text token",
     .group = "Generation",
     .commands = generating},

    {.name = "seed",
     .aliases = "-s",
     .type = kind::integer,
     .initial = "-1",
     .metavar = "N",
     .help = "same seed, same text; -1: a random one",
     .group = "Sampling",
     .commands = generating,
     .lowest = -1,
     .highest = 4294967295.0},
    {.name = "temp",
     .aliases = "-temp --temperature",
     .type = kind::real,
     .initial = "0.8",
     .metavar = "N",
     .help = "0: always the most likely token",
     .group = "Sampling",
     .commands = generating,
     .lowest = 0,
     .highest = 1000,
     .llama_variable = "LLAMA_ARG_TEMPERATURE"},
    {.name = "top-k",
     .type = kind::integer,
     .initial = "40",
     .metavar = "N",
     .help = "only the N most likely tokens; 0: off",
     .group = "Sampling",
     .commands = generating,
     .lowest = 0,
     .highest = 2147483647},
    {.name = "top-p",
     .type = kind::real,
     .initial = "0.95",
     .metavar = "P",
     .help = "only the most likely tokens that sum up to P; 1: off",
     .group = "Sampling",
     .commands = generating,
     .lowest = 0,
     .highest = 1},
    {.name = "min-p",
     .type = kind::real,
     .initial = "0.05",
     .metavar = "P",
     .help = "only tokens with at least P times the best probability; 0: off",
     .group = "Sampling",
     .commands = generating,
     .lowest = 0,
     .highest = 1},
    {.name = "repeat-last-n",
     .type = kind::integer,
     .initial = "64",
     .metavar = "N",
     .help = "tokens that the penalties look at; -1: all",
     .group = "Sampling",
     .commands = generating,
     .lowest = -1,
     .highest = 2147483647},
    {.name = "repeat-penalty",
     .type = kind::real,
     .initial = "1",
     .metavar = "N",
     .help = "divides the logits of repeated tokens; 1: off",
     .group = "Sampling",
     .commands = generating,
     .lowest = 0.001,
     .highest = 1000},
    {.name = "presence-penalty",
     .type = kind::real,
     .initial = "0",
     .metavar = "N",
     .help = "subtracted once from tokens that occurred",
     .group = "Sampling",
     .commands = generating,
     .lowest = -1000,
     .highest = 1000},
    {.name = "frequency-penalty",
     .type = kind::real,
     .initial = "0",
     .metavar = "N",
     .help = "subtracted for each time a token occurred",
     .group = "Sampling",
     .commands = generating,
     .lowest = -1000,
     .highest = 1000},
    {.name = "logit-bias",
     .aliases = "-l",
     .type = kind::list,
     .metavar = "ID(+|-)N",
     .help = "make a token more or less likely: 15043+1, 2-inf; may be repeated",
     .group = "Sampling",
     .commands = generating},

    {.name = "ctx-size",
     .aliases = "-c",
     .type = kind::integer,
     .initial = "0",
     .metavar = "N",
     .help = "tokens of context; 0: the model's own",
     .group = "Session",
     .commands = computing,
     .lowest = 0,
     .highest = 16777216,
     .llama_variable = "LLAMA_ARG_CTX_SIZE"},
    {.name = "batch-size",
     .aliases = "-b",
     .type = kind::integer,
     .initial = "2048",
     .metavar = "N",
     .help = "tokens of a prompt that are computed together at most",
     .group = "Session",
     .commands = computing,
     .lowest = 1,
     .highest = 65536,
     .llama_variable = "LLAMA_ARG_BATCH"},
    {.name = "ubatch-size",
     .aliases = "-ub",
     .type = kind::integer,
     .initial = "512",
     .metavar = "N",
     .help = "tokens of one step at most",
     .group = "Session",
     .commands = computing,
     .lowest = 1,
     .highest = 65536,
     .llama_variable = "LLAMA_ARG_UBATCH"},
    {.name = "cache-type-k",
     .aliases = "-ctk",
     .type = kind::choice,
     .initial = "f16",
     .metavar = "f16|f32",
     .help = "type of the K cache",
     .group = "Session",
     .commands = computing,
     .choices = "f16|f32"},
    {.name = "cache-type-v",
     .aliases = "-ctv",
     .type = kind::choice,
     .initial = "f16",
     .metavar = "f16|f32",
     .help = "type of the V cache",
     .group = "Session",
     .commands = computing,
     .choices = "f16|f32"},
    {.name = "deterministic",
     .type = kind::flag,
     .help = "the same logits whatever the batch size",
     .group = "Session",
     .commands = computing},

    {.name = "device",
     .aliases = "-dev",
     .type = kind::text,
     .initial = "auto",
     .metavar = "NAME",
     .help = "auto, cpu, gpu, a backend's name, NAME:INDEX, or a list by preference",
     .group = "Backend",
     .commands = computing | to::backends,
     .llama_variable = "LLAMA_ARG_DEVICE"},
    {.name = "require-backend",
     .type = kind::flag,
     .help = "only the first name of --device will do",
     .group = "Backend",
     .commands = computing | to::backends},
    {.name = "allow-fallback",
     .type = kind::flag,
     .help = "choose as auto would when nothing in --device works",
     .group = "Backend",
     .commands = computing | to::backends},
    {.name = "backend-dir",
     .type = kind::list,
     .metavar = "DIR",
     .help = "folder of backend manifests, instead of the usual ones; may be repeated",
     .group = "Backend",
     .commands = computing | to::backends},
    {.name = "list-devices",
     .type = kind::flag,
     .help = "list backends and devices, then leave",
     .group = "Backend",
     .commands = generating,
     .command_line_only = true},
    {.name = "threads",
     .aliases = "-t",
     .type = kind::integer,
     .initial = "-1",
     .metavar = "N",
     .help = "CPU threads; -1: what affinity and quota allow",
     .group = "Backend",
     .commands = computing | to::backends,
     .lowest = -1,
     .highest = 4096,
     .llama_variable = "LLAMA_ARG_THREADS"},

    {.name = "output",
     .aliases = "-o",
     .type = kind::text,
     .metavar = "FILE",
     .help = "NumPy file to write; -: standard output",
     .group = "Output",
     .commands = to::logits,
     .command_line_only = true},
    {.name = "all",
     .type = kind::flag,
     .help = "a row of logits for every position",
     .group = "Output",
     .commands = to::logits,
     .command_line_only = true},
    {.name = "json",
     .type = kind::flag,
     .help = "print JSON",
     .group = "Output",
     .commands = everywhere & ~(to::chat | to::logits | to::help),
     .command_line_only = true},
    {.name = "perf",
     .type = kind::flag,
     .help = "print timings on standard error",
     .group = "Output",
     .commands = computing},
    {.name = "color",
     .type = kind::choice,
     .initial = "auto",
     .metavar = "auto|always|never",
     .help = "colours on standard error",
     .group = "Output",
     .commands = everywhere,
     .choices = "auto|always|never"},
    {.name = "quiet",
     .aliases = "-q",
     .type = kind::flag,
     .help = "print nothing but errors",
     .group = "Output",
     .commands = everywhere},
    {.name = "verbose",
     .aliases = "-v",
     .type = kind::flag,
     .help = "the same as -lv 5",
     .group = "Output",
     .commands = everywhere},
    {.name = "verbosity",
     .aliases = "-lv --log-verbosity",
     .type = kind::integer,
     .initial = "3",
     .metavar = "N",
     .help = "1 errors, 2 warnings, 3 what was selected, 4 what the library does, 5 debugging",
     .group = "Output",
     .commands = everywhere,
     .lowest = 0,
     .highest = 5},

    {.name = "config",
     .type = kind::text,
     .metavar = "FILE",
     .help = "YAML settings that override the usual files",
     .group = "Help",
     .commands = everywhere,
     .command_line_only = true},
    {.name = "help",
     .aliases = "-h",
     .type = kind::flag,
     .help = "print this text",
     .group = "Help",
     .commands = everywhere,
     .command_line_only = true},
});

constexpr auto commands = std::to_array<command>({
    {"run", "[MODEL] [PROMPT] [options]", "continue a prompt",
     "Prints the prompt and its continuation. With -m every argument is the prompt; without, the\n"
     "first one is the model. The prompt may also come from -f, or from standard input when that\n"
     "is no terminal; on a terminal without a prompt this is `bitnet chat`.\n",
     to::run},
    {"chat", "[MODEL] [options]", "talk with a model",
     "Reads messages line by line, or between \"\"\" lines, and answers each. /help lists the\n"
     "commands that work inside. With -p the first message is given.\n",
     to::chat},
    {"backends", "[list | info [NAME] | why | dir] [options]", "what can compute here, and why",
     "list  backends and devices, one per line (the default)\n"
     "info  everything known about each, or about NAME\n"
     "why   the selection for --device, and why each other candidate lost\n"
     "dir   the folders that were searched for manifests\n",
     to::backends},
    {"inspect", "[MODEL] [options]", "what is inside a model file",
     "Reads any GGUF file, needs no backend, and says whether the model would run.\n", to::inspect},
    {"tokenize", "[TEXT | -f FILE] [options]", "text to token ids",
     "Prints the ids on one line, separated by blanks. Works on files with a vocabulary only.\n"
     "Reads standard input when neither TEXT nor -f is given.\n",
     to::tokenize},
    {"detokenize", "[ID... | -f FILE] [options]", "token ids to text",
     "The inverse of tokenize. Ids are separated by blanks or commas; they are read from standard\n"
     "input when neither ID nor -f is given.\n",
     to::detokenize},
    {"logits", "(-p TEXT | -f FILE | --ids \"1 2 3\") -o FILE [options]", "logits as a NumPy array",
     "Writes float32 logits: shape (n_vocab) for the last position, (n_tokens, n_vocab) with "
     "--all.\n"
     "A text gets the begin-of-sequence token if the model asks for it; ids are taken as they "
     "are.\n",
     to::logits},
    {"version", "[--json]", "version and build", "", to::version},
    {"help", "[COMMAND]", "this text, or that of a command", "", to::help},
});

// Calls f with each word of "a b c".
template <class F>
void each_word(std::string_view words, F f) {
  while (!words.empty()) {
    const auto end = std::min(words.find(' '), words.size());
    f(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

bool has_alias(const option& row, std::string_view flag) {
  bool found = false;
  each_word(row.aliases, [&](std::string_view alias) { found = found || alias == flag; });
  return found;
}

// "ctx-size" -> "BITNET_CTX_SIZE"
std::string variable_of(std::string_view flag) {
  std::string name = "BITNET_";
  for (const char c : flag) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace

std::span<const option> all_options() {
  return rows;
}

const option* find_option(std::string_view name) {
  const auto* found = std::ranges::find(rows, name, &option::name);
  if (found != rows.end()) return found;
  const std::string flag = "--" + std::string(name);
  for (const option& row : rows) {
    if (has_alias(row, flag)) return &row;
  }
  return nullptr;
}

const option* find_flag(std::string_view flag) {
  if (flag.starts_with("--")) return find_option(flag.substr(2));
  for (const option& row : rows) {
    if (has_alias(row, flag)) return &row;
  }
  return nullptr;
}

std::vector<std::string> variables_of(const option& row) {
  std::vector<std::string> names = {variable_of(row.name)};
  each_word(row.aliases, [&](std::string_view alias) {
    if (alias.starts_with("--")) names.push_back(variable_of(alias.substr(2)));
  });
  return names;
}

std::span<const command> all_commands() {
  return commands;
}

const command* find_command(std::string_view name) {
  const auto* found = std::ranges::find(commands, name, &command::name);
  return found == commands.end() ? nullptr : found;
}

}  // namespace bitnet::host
