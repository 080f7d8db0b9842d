/* Opens a model twice through bitnet.h in a process of another locale, and prints what comes out:
 *
 *   program LOCALE MODEL CACHE
 *
 * Each opening measures the backend's settings and keeps them in the folder CACHE; the second one
 * reads what the first one kept. Each line of standard output is a word and a text. Exits 77
 * without that locale. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include <bitnet/abi/host.h>
#include <bitnet/bitnet.h>

enum { room = 1 << 20, n_words = 12 };
static char text[room];

static int failed(const char* doing, const bitnet_error* why) {
  fprintf(stderr, "%s: %s (status %d)\n", doing, why->message, (int)why->code);
  return 1;
}

static void on_log(void* user, uint32_t level, const char* message) {
  (void)user;
  printf("log %u %s\n", level, message);
}

static int generate(bitnet_model* model, bitnet_error* why) {
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  bitnet_session* session = NULL;
  if (bitnet_session_open(model, &options, &session, why) != BITNET_OK)
    return failed("opening a session", why);
  const bitnet_str prompt = {"Once upon a time", 16};
  bitnet_token ids[64], made[n_words];
  uint64_t count = 0, needed = 0;
  bitnet_sampling greedy;
  bitnet_sampling_defaults(&greedy, sizeof greedy);
  greedy.temperature = 0;
  bitnet_generation how = {.struct_size = sizeof how};
  how.max_tokens = n_words;
  how.sampling = &greedy;
  how.out_tokens = made;
  how.out_capacity = n_words;
  bitnet_generation_result done = {.struct_size = sizeof done};
  int status = 0;
  if (bitnet_tokenize(model, prompt, BITNET_TOKENIZE_MODEL_BOS, ids, 64, &count, why) != BITNET_OK)
    status = failed("reading the prompt", why);
  else if (bitnet_generate(session, ids, count, &how, &done, why) != BITNET_OK)
    status = failed("generating", why);
  else if (bitnet_session_report(session, text, room, &needed, why) != BITNET_OK)
    status = failed("the session's report", why);
  if (status == 0) {
    printf("tokens");
    for (uint64_t i = 0; i < done.n_generated; ++i) printf(" %d", made[i]);
    printf("\nsession %.*s\n", (int)needed, text);
  }
  bitnet_session_close(session);
  return status;
}

static int open_once(const char* file, const char* cache, bitnet_error* why) {
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  options.log = on_log;
  options.log_level = BITNET_LOG_INFO;
  bitnet_runtime* runtime = NULL;
  if (bitnet_runtime_open(&options, &runtime, why) != BITNET_OK) return failed("starting", why);
  bitnet_model_options how;
  bitnet_model_defaults(&how, sizeof how);
  how.pack_cache = cache;
  how.tune = 1; /* measured now, whatever is kept: which is read first */
  bitnet_model* model = NULL;
  uint64_t needed = 0;
  int status = 0;
  if (bitnet_model_open(runtime, file, &how, &model, why) != BITNET_OK) {
    status = failed("opening the model", why);
  } else if (bitnet_runtime_report(runtime, text, room, &needed, why) != BITNET_OK) {
    status = failed("the runtime's report", why);
  } else {
    printf("runtime %.*s\n", (int)needed, text);
    status = generate(model, why);
  }
  bitnet_model_close(model);
  bitnet_runtime_close(runtime);
  return status;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  if (setlocale(LC_ALL, argv[1]) == NULL) {
    fprintf(stderr, "skip: there is no locale %s\n", argv[1]);
    return 77;
  }
  printf("point %s\n", localeconv()->decimal_point);
  bitnet_error why = {.struct_size = sizeof why};
  uint64_t needed = 0;
  if (bitnet_inspect(argv[2], NULL, text, room, &needed, &why) != BITNET_OK)
    return failed("inspecting", &why);
  printf("inspect %.*s\n", (int)needed, text);
  for (int i = 0; i < 2; ++i) {
    const int status = open_once(argv[2], argv[3], &why);
    if (status != 0) return status;
  }
  return 0;
}
