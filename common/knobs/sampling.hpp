#pragma once
// Every number that sampling is set by, once, in the order of the help. A row is a member of
// bitnet_sampling (bitnet.h) and of sampling::parameters: its default, what the library accepts,
// and the option of the program. The seed and the logit biases are no plain numbers and not here.
//
// X(type, name, default, what is accepted of a value v, how a message says so,
//   option, its aliases, its metavar, lowest and highest on the command line, llama.cpp's variable,
//   help)
// clang-format off: the rows' own lines.
#define BITNET_SAMPLING_KNOBS(X) \
  X(float, temperature, 0.8, std::isfinite(v), "a number; 0 = always the most likely token", \
    "temp", "-temp --temperature", "N", 0, 1000, "LLAMA_ARG_TEMPERATURE", \
    "0: always the most likely token") \
  X(int32_t, top_k, 40, v >= 0, "0 (off) or more", \
    "top-k", "", "N", 0, 2147483647, "", "only the N most likely tokens; 0: off") \
  X(float, top_p, 0.95, v >= 0 && v <= 1, "0 to 1 (off)", \
    "top-p", "", "P", 0, 1, "", "only the most likely tokens that sum up to P; 1: off") \
  X(float, min_p, 0.05, v >= 0 && v <= 1, "0 (off) to 1", \
    "min-p", "", "P", 0, 1, "", \
    "only tokens with at least P times the best probability; 0: off") \
  X(int32_t, repeat_last_n, 64, v >= -1, "-1 (all tokens), 0 (off) or more", \
    "repeat-last-n", "", "N", -1, 2147483647, "", "tokens that the penalties look at; -1: all") \
  X(float, repeat_penalty, 1, v > 0 && std::isfinite(v), "more than 0; 1 = off", \
    "repeat-penalty", "", "N", 0.001, 1000, "", \
    "divides the logits of repeated tokens; 1: off") \
  X(float, presence_penalty, 0, std::isfinite(v), "a number; 0 = off", \
    "presence-penalty", "", "N", -1000, 1000, "", "subtracted once from tokens that occurred") \
  X(float, frequency_penalty, 0, std::isfinite(v), "a number; 0 = off", \
    "frequency-penalty", "", "N", -1000, 1000, "", \
    "subtracted for each time a token occurred")
// clang-format on
