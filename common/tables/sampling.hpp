#pragma once
// Table of all numeric sampling settings, in the order of the help. A row is a member of
// bitnet_sampling (bitnet.h) and of sampling::parameters: its default, the accepted values, and the
// program's option. The seed and the logit biases are not plain numbers and have no row.
//
// X(type, name, default, condition that a value v must meet, the condition in words,
//   option, its aliases, its metavar, lowest and highest on the command line, llama.cpp's variable,
//   help)
// clang-format off: the rows' own lines.
#define BITNET_SAMPLING_PARAMETERS(X) \
  X(float, temperature, 0.8, std::isfinite(v), "a number; 0 = always the most likely token", \
    "temp", "-temp --temperature", "N", 0, 1000, "LLAMA_ARG_TEMPERATURE", \
    "temperature; 0: always the most likely token") \
  X(int32_t, top_k, 40, v >= 0, "0 (off) or more", \
    "top-k", "", "N", 0, 2147483647, "", "keeps only the N most likely tokens; 0: off") \
  X(float, top_p, 0.95, v >= 0 && v <= 1, "0 to 1 (off)", \
    "top-p", "", "P", 0, 1, "", \
    "keeps only the most likely tokens, until their probabilities sum up to P; 1: off") \
  X(float, min_p, 0.05, v >= 0 && v <= 1, "0 (off) to 1", \
    "min-p", "", "P", 0, 1, "", \
    "keeps only tokens with at least P times the highest probability; 0: off") \
  X(int32_t, repeat_last_n, 64, v >= -1, "-1 (all tokens), 0 (off) or more", \
    "repeat-last-n", "", "N", -1, 2147483647, "", \
    "number of last tokens to which the penalties apply; 0: none, -1: all") \
  X(float, repeat_penalty, 1, v > 0 && std::isfinite(v), "more than 0; 1 = off", \
    "repeat-penalty", "", "N", 0.001, 1000, "", \
    "divides positive logits of repeated tokens, and multiplies negative ones; 1: off") \
  X(float, presence_penalty, 0, std::isfinite(v), "a number; 0 = off", \
    "presence-penalty", "", "N", -1000, 1000, "", \
    "subtracted once from the logit of a token that occurred; 0: off") \
  X(float, frequency_penalty, 0, std::isfinite(v), "a number; 0 = off", \
    "frequency-penalty", "", "N", -1000, 1000, "", \
    "subtracted from the logit of a token for each time that it occurred; 0: off") \
  X(float, top_n_sigma, -1, std::isfinite(v), "a number; 0 or less = off", \
    "top-nsigma", "--top-n-sigma", "N", -1, 1000, "", \
    "keeps only logits within N standard deviations of the highest; 0 or less: off") \
  X(float, typical_p, 1, v >= 0 && v <= 1, "0 to 1 (off)", \
    "typical", "--typical-p", "P", 0, 1, "", \
    "keeps only the tokens whose information is most typical, until their probabilities sum " \
    "up to P; 1: off") \
  X(float, xtc_probability, 0, v >= 0 && v <= 1, "0 (off) to 1", \
    "xtc-probability", "", "P", 0, 1, "", \
    "how often all likely tokens but the least likely one are removed (XTC); 0: off") \
  X(float, xtc_threshold, 0.1, v >= 0 && v <= 1, "0 to 1; more than 0.5 = off", \
    "xtc-threshold", "", "P", 0, 1, "", \
    "lowest probability of a token that counts as likely for XTC; above 0.5: off") \
  X(float, dynatemp_range, 0, v >= 0 && std::isfinite(v), "0 (off) or more", \
    "dynatemp-range", "", "N", 0, 1000, "", \
    "how far the entropy moves the temperature below and above its value; 0: off") \
  X(float, dynatemp_exponent, 1, v >= 0 && std::isfinite(v), "0 or more", \
    "dynatemp-exp", "", "N", 0, 1000, "", "exponent of the entropy in this computation") \
  X(int32_t, mirostat, 0, v >= 0 && v <= 2, "0 (off), 1 or 2", \
    "mirostat", "", "N", 0, 2, "", \
    "Mirostat version 1 or 2, in place of the stages from top-nsigma to xtc; 0: off") \
  X(float, mirostat_tau, 5, v >= 0 && std::isfinite(v), "0 or more, in bits", \
    "mirostat-ent", "", "N", 0, 1000, "", "target surprise of Mirostat, in bits") \
  X(float, mirostat_eta, 0.1, v >= 0 && std::isfinite(v), "0 or more", \
    "mirostat-lr", "", "N", 0, 1000, "", "learning rate of Mirostat") \
  X(float, dry_multiplier, 0, v >= 0 && std::isfinite(v), "0 (off) or more", \
    "dry-multiplier", "", "N", 0, 1000, "", \
    "penalty of a token that would continue a repetition (DRY); 0: off") \
  X(float, dry_base, 1.75, v >= 1 && std::isfinite(v), "1 or more", \
    "dry-base", "", "N", 1, 1000, "", \
    "factor of the DRY penalty for each further token of the repetition") \
  X(int32_t, dry_allowed_length, 2, v >= 1, "1 or more", \
    "dry-allowed-length", "", "N", 1, 2147483647, "", \
    "tokens that may be repeated without the DRY penalty") \
  X(int32_t, dry_penalty_last_n, 64, v >= -1, "-1 (all tokens), 0 (off) or more", \
    "dry-penalty-last-n", "", "N", -1, 2147483647, "", \
    "number of last tokens in which DRY looks for repetitions; 0: none, -1: all")
// clang-format on
