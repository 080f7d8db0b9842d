/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program of bitnet.h that uses each part of it once and prints what comes back. Kept as a binary
 * of each release: what a library of later prints for it must be the same.
 *
 * Usage: program MODEL PROMPT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bitnet/abi/host.h"
#include "bitnet/bitnet.h"

enum { most_tokens = 256, n_new = 24 };

static bitnet_error err = {.struct_size = sizeof err};

static void must(bitnet_status status, const char* what) {
  if (status == BITNET_OK) return;
  fprintf(stderr, "%s: %d: %s\n", what, (int)status, err.message);
  exit(1);
}

static void on_log(void* user, uint32_t level, const char* message) {
  (void)level;
  if (message[0] != '\0') ++*(int*)user;
}

static int32_t on_progress(void* user, uint64_t done, uint64_t total) {
  if (done <= total) *(uint64_t*)user = total;
  return 0;
}

static int32_t on_text(void* user, bitnet_str text) {
  (void)user;
  fwrite(text.data, 1, text.size, stdout);
  return 0;
}

static int32_t stop_at_once(void* user, bitnet_str text) {
  (void)user;
  (void)text;
  return 1;
}

static void print_result(const bitnet_generation_result* r) {
  printf("\nstop %u, index %u, prompt %llu, generated %llu\n", r->stop_reason, r->stop_index,
         (unsigned long long)r->n_prompt, (unsigned long long)r->n_generated);
}

/* Members of the report that every version has. */
static void print_report(bitnet_session* session) {
  char text[65536];
  uint64_t needed = 0;
  must(bitnet_session_report(session, text, sizeof text, &needed, &err), "session_report");
  const char* const members[] = {"\"backend\"", "\"device\"", "\"threads\"", "\"kernels\"",
                                 "\"steps\"",   "\"tokens\"", "\"kv\""};
  for (size_t i = 0; i < sizeof members / sizeof members[0]; ++i) {
    size_t at = 0;
    const size_t n = strlen(members[i]);
    while (at + n <= needed && memcmp(text + at, members[i], n) != 0) ++at;
    printf("%s %s\n", members[i], at + n <= needed ? "told" : "missing");
  }
}

static void describe(const bitnet_model* model) {
  bitnet_model_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  must(bitnet_model_describe(model, &info, &err), "describe");
  printf("%s: %s, %u layers of %u, %u heads, vocabulary of %u, context of %u\n", info.name,
         info.architecture, info.n_layers, info.n_embedding, info.n_heads, info.n_vocab,
         info.n_context);
}

static void compute(bitnet_model* model, bitnet_session* session, const bitnet_token* ids,
                    uint64_t n) {
  bitnet_model_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  must(bitnet_model_describe(model, &info, &err), "describe");
  float* logits = malloc(info.n_vocab * sizeof *logits);
  if (logits == NULL) exit(1);
  must(bitnet_session_eval(session, ids, n, 0, logits, info.n_vocab, &err), "eval");
  uint32_t best = 0;
  for (uint32_t i = 1; i < info.n_vocab; ++i)
    if (logits[i] > logits[best]) best = i;
  printf("after %llu tokens: %u\n", (unsigned long long)bitnet_session_length(session), best);
  free(logits);
  must(bitnet_session_truncate(session, 0, &err), "truncate");
}

static void generate(bitnet_session* session, const bitnet_token* ids, uint64_t n) {
  bitnet_sampling sampling;
  bitnet_sampling_defaults(&sampling, sizeof sampling);
  sampling.temperature = 0;
  bitnet_generation options;
  bitnet_generation_defaults(&options, sizeof options);
  options.max_tokens = n_new;
  options.sampling = &sampling;
  options.text = on_text;
  bitnet_token out[n_new];
  options.out_tokens = out;
  options.out_capacity = n_new;
  bitnet_generation_result result;
  memset(&result, 0, sizeof result);
  result.struct_size = sizeof result;
  must(bitnet_generate(session, ids, n, &options, &result, &err), "generate");
  print_result(&result);

  /* The same again, but for the third token and up to a text. */
  const bitnet_logit_bias bias = {out[2], -100.0F};
  sampling.logit_bias = &bias;
  sampling.n_logit_bias = 1;
  const bitnet_str stop = {".", 1};
  options.stop_strings = &stop;
  options.n_stop_strings = 1;
  must(bitnet_session_truncate(session, 0, &err), "truncate");
  must(bitnet_generate(session, ids, n, &options, &result, &err), "generate");
  print_result(&result);

  options.text = stop_at_once;
  must(bitnet_session_truncate(session, 0, &err), "truncate");
  must(bitnet_generate(session, ids, n, &options, &result, &err), "generate");
  print_result(&result);

  options.text = NULL;
  bitnet_session_cancel(session);
  must(bitnet_session_truncate(session, 0, &err), "truncate");
  must(bitnet_generate(session, ids, n, &options, &result, &err), "generate");
  print_result(&result);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL PROMPT\n", argv[0]);
    return 2;
  }
  bitnet_runtime_options ro;
  bitnet_runtime_defaults(&ro, sizeof ro);
  int n_logged = 0;
  ro.device = "cpu";
  ro.requested_by = "the fossil";
  ro.n_threads = 1;
  ro.log_level = BITNET_LOG_DEBUG;
  ro.log = on_log;
  ro.log_user = &n_logged;
  bitnet_runtime* runtime = NULL;
  must(bitnet_runtime_open(&ro, &runtime, &err), "runtime_open");
  must(bitnet_runtime_select(runtime, &err), "select");
  char text[4096];
  uint64_t needed = 0;
  must(bitnet_runtime_selection_line(runtime, text, sizeof text, &needed, &err), "selection_line");
  printf("%.*s\n", (int)needed, text);

  bitnet_model_options mo;
  bitnet_model_defaults(&mo, sizeof mo);
  uint64_t bytes = 0;
  mo.progress = on_progress;
  mo.progress_user = &bytes;
  bitnet_model* model = NULL;
  const bitnet_status none = bitnet_model_open(runtime, "/no/such/model", &mo, &model, &err);
  printf("no file: %d, %s\n", (int)none,
         strstr(err.message, "/no/such/model") ? "named" : "not named");
  must(bitnet_model_open(runtime, argv[1], &mo, &model, &err), "model_open");
  describe(model);

  bitnet_message said = {{"user", 4}, {argv[2], strlen(argv[2])}};
  must(bitnet_chat_format(model, NULL, &said, sizeof said, 1, text, sizeof text, &needed, &err),
       "chat_format");
  printf("chat: %.*s\n", (int)needed, text);
  bitnet_token ids[most_tokens];
  uint64_t n = 0;
  const bitnet_str whole = {text, needed};
  must(bitnet_tokenize(model, whole, BITNET_TOKENIZE_PARSE_SPECIAL, ids, most_tokens, &n, &err),
       "tokenize");
  must(
      bitnet_detokenize(model, ids, n, BITNET_DETOKENIZE_SPECIAL, text, sizeof text, &needed, &err),
      "detokenize");
  printf("%llu tokens: %.*s\n", (unsigned long long)n, (int)needed, text);

  bitnet_session_options so;
  bitnet_session_defaults(&so, sizeof so);
  so.n_context = most_tokens;
  bitnet_session* session = NULL;
  must(bitnet_session_open(model, &so, &session, &err), "session_open");
  printf("room for %llu\n", (unsigned long long)bitnet_session_capacity(session));
  compute(model, session, ids, n);
  generate(session, ids, n);
  print_report(session);
  bitnet_session_close(session);
  bitnet_model_close(model);
  bitnet_runtime_close(runtime);
  printf("weights %s, log %s\n", bytes != 0 ? "told" : "not told",
         n_logged != 0 ? "heard" : "silent");
  return 0;
}
