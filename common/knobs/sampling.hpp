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
    "subtracted for each time a token occurred") \
  X(float, top_n_sigma, -1, std::isfinite(v), "a number; 0 or less = off", \
    "top-nsigma", "--top-n-sigma", "N", -1, 1000, "", \
    "only logits within N standard deviations of the highest; -1: off") \
  X(float, typical_p, 1, v >= 0 && v <= 1, "0 to 1 (off)", \
    "typical", "--typical-p", "P", 0, 1, "", \
    "only the tokens of the most typical information that sum up to P; 1: off") \
  X(float, xtc_probability, 0, v >= 0 && v <= 1, "0 (off) to 1", \
    "xtc-probability", "", "P", 0, 1, "", \
    "how often all but the least of the likely tokens are left out; 0: off") \
  X(float, xtc_threshold, 0.1, v >= 0 && v <= 1, "0 to 1; more than 0.5 = off", \
    "xtc-threshold", "", "P", 0, 1, "", \
    "probability of a token that is likely for that; above 0.5: off") \
  X(float, dynatemp_range, 0, v >= 0 && std::isfinite(v), "0 (off) or more", \
    "dynatemp-range", "", "N", 0, 1000, "", \
    "how far --temp goes down and up with the entropy; 0: off") \
  X(float, dynatemp_exponent, 1, v >= 0 && std::isfinite(v), "0 or more", \
    "dynatemp-exp", "", "N", 0, 1000, "", "exponent of the entropy in that") \
  X(int32_t, mirostat, 0, v >= 0 && v <= 2, "0 (off), 1 or 2", \
    "mirostat", "", "N", 0, 2, "", \
    "Mirostat version 1 or 2 in place of the stages from top-nsigma to xtc; 0: off") \
  X(float, mirostat_tau, 5, v >= 0 && std::isfinite(v), "0 or more, in bits", \
    "mirostat-ent", "", "N", 0, 1000, "", "the surprise that it keeps, in bits") \
  X(float, mirostat_eta, 0.1, v >= 0 && std::isfinite(v), "0 or more", \
    "mirostat-lr", "", "N", 0, 1000, "", "how fast it learns") \
  X(float, dry_multiplier, 0, v >= 0 && std::isfinite(v), "0 (off) or more", \
    "dry-multiplier", "", "N", 0, 1000, "", \
    "makes a token that would go on with a repetition less likely (DRY); 0: off") \
  X(float, dry_base, 1.75, v >= 1 && std::isfinite(v), "1 or more", \
    "dry-base", "", "N", 1, 1000, "", \
    "what each further token of a repetition multiplies that penalty by") \
  X(int32_t, dry_allowed_length, 2, v >= 1, "1 or more", \
    "dry-allowed-length", "", "N", 1, 2147483647, "", \
    "tokens that may be repeated without it") \
  X(int32_t, dry_penalty_last_n, 64, v >= -1, "-1 (all tokens), 0 (off) or more", \
    "dry-penalty-last-n", "", "N", -1, 2147483647, "", \
    "tokens that it looks for repetitions in; -1: all")
// clang-format on
