/* A stand-in for libllama.so: its functions by either set of names, logits by a formula.
 *
 * It looks at everything that it is given and aborts where a struct that is passed by value is not
 * what its own function returned, but for n_ctx: so a wrong way of passing them is a crash.
 *
 * Built with   STAND_IN_2024: names up to 2024; STAND_IN_SEED: with a seed in front of n_ctx, as up
 *              to August 2024; STAND_IN_HUGE: a struct longer than any of llama.h; STAND_IN_CUT:
 *              without llama_decode.
 * Variables    STAND_IN_VOCABULARY  tokens of the vocabulary
 *              STAND_IN_TOKENS      file with lines "1 2 3|text": how it tokenizes
 *              STAND_IN_LOGITS      file of float32 rows, which it gives one after the other
 *              STAND_IN_SHIFT       "2:7:0.5": adds 0.5 to logit 7 of the third row of all
 *              STAND_IN_DEFECT      crash-load, crash-decode, hang, refuse, fail-decode, short,
 *                                   nan, print, close
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef STAND_IN_2024
#define LOAD llama_load_model_from_file
#define NEW_CONTEXT llama_new_context_with_model
#define N_VOCAB llama_n_vocab
#else
#define LOAD llama_model_load_from_file
#define NEW_CONTEXT llama_init_from_model
#define N_VOCAB llama_vocab_n_tokens
#endif

#ifdef STAND_IN_CUT
#define llama_decode llama_decode_by_another_name
#endif

#define EXPORT __attribute__((visibility("default")))
#define LONGEST_LINE 65536

struct llama_model_params {
  void* devices;
  const void* overrides;
  int32_t n_gpu_layers;
  int32_t split_mode;
  int32_t main_gpu;
  const float* tensor_split;
  void* progress;
  void* progress_data;
  const void* kv_overrides;
  bool vocab_only, use_mmap, use_mlock, check_tensors;
};

struct llama_context_params {
#ifdef STAND_IN_SEED
  uint32_t seed;
#endif
  uint32_t n_ctx, n_batch, n_ubatch, n_seq_max;
  int32_t n_threads, n_threads_batch;
  int32_t rope_scaling, pooling, attention;
  float numbers[6];
  uint32_t yarn;
  float defrag;
  void* callback;
  void* callback_data;
  int32_t type_k, type_v;
  bool flags[8];
#ifdef STAND_IN_HUGE
  char more[800];
#endif
};

struct llama_batch {
  int32_t n_tokens;
  int32_t* token;
  float* embd;
  int32_t* pos;
  int32_t* n_seq_id;
  int32_t** seq_id;
  int8_t* logits;
#ifdef STAND_IN_2024
  int32_t all_pos_0, all_pos_1, all_seq_id;
#endif
};

struct model {
  int32_t n_vocab;
};
struct context {
  const struct model* model;
  uint32_t n_ctx;
  int32_t n_used;
  uint32_t hash; /* of the tokens so far */
  float* row;
};

static int rows_given; /* of all prompts */

static const char* variable(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? "" : text;
}
static bool has_defect(const char* name) {
  return strcmp(variable("STAND_IN_DEFECT"), name) == 0;
}
static void must(bool fine, const char* what) {
  if (fine) return;
  fprintf(stderr, "stand-in: %s\n", what);
  abort();
}

static struct llama_model_params model_defaults(void) {
  struct llama_model_params out;
  memset(&out, 0, sizeof out);
  out.n_gpu_layers = 999;
  out.use_mmap = true;
  return out;
}

static struct llama_context_params context_defaults(void) {
  struct llama_context_params out;
  memset(&out, 0, sizeof out);
#ifdef STAND_IN_SEED
  out.seed = 0xffffffffU;
#endif
  out.n_ctx = 512;
  out.n_batch = 2048;
  out.n_ubatch = 512;
  out.n_seq_max = 1;
  out.n_threads = out.n_threads_batch = 4;
  out.numbers[2] = -1.0F;
  out.type_k = out.type_v = 1;
  out.flags[1] = true;
#ifdef STAND_IN_HUGE
  memset(out.more, 1, sizeof out.more);
#endif
  return out;
}

EXPORT struct llama_model_params llama_model_default_params(void) {
  return model_defaults();
}
EXPORT struct llama_context_params llama_context_default_params(void) {
  return context_defaults();
}
EXPORT void llama_backend_init(void) {}
EXPORT void llama_numa_init(int32_t how) {
  (void)how;
}

EXPORT void* LOAD(const char* file, struct llama_model_params params) {
  const struct llama_model_params expected = model_defaults();
  must(params.devices == NULL && params.n_gpu_layers == expected.n_gpu_layers && params.use_mmap &&
           !params.vocab_only && params.kv_overrides == NULL,
       "other model parameters than it gave");
  must(access(file, R_OK) == 0, "no model file");
  if (has_defect("crash-load")) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would catch it */
    raise(SIGSEGV);
  }
  while (has_defect("hang")) pause();
  if (has_defect("print")) printf("a library that prints\n");
  fprintf(stderr, "stand-in: loading\n");
  if (has_defect("refuse")) {
    fprintf(stderr, "stand-in: unknown architecture 'x'\n");
    return NULL;
  }
  struct model* out = calloc(1, sizeof *out);
  must(out != NULL, "no memory");
  out->n_vocab = atoi(variable("STAND_IN_VOCABULARY"));
  return out;
}

EXPORT int32_t N_VOCAB(const struct model* of) {
  return of->n_vocab;
}
#ifndef STAND_IN_2024
EXPORT const void* llama_model_get_vocab(const struct model* of) {
  return of;
}
#endif
EXPORT int32_t llama_model_desc(const struct model* of, char* to, size_t size) {
  return snprintf(to, size, "stand-in of %d tokens", (int)of->n_vocab);
}

/* The ids in front of the bar. */
static int32_t read_ids(char* text, int32_t* to, int32_t most) {
  int32_t n = 0;
  for (char* one = strtok(text, " "); one != NULL; one = strtok(NULL, " ")) {
    if (n < most) to[n] = atoi(one);
    ++n;
  }
  return n <= most ? n : -n;
}

EXPORT int32_t llama_tokenize(const struct model* of, const char* text, int32_t bytes, int32_t* to,
                              int32_t most, bool add_special, bool parse_special) {
  must(of->n_vocab > 0 && add_special && !parse_special, "other words for llama_tokenize");
  FILE* file = fopen(variable("STAND_IN_TOKENS"), "r");
  must(file != NULL, "no STAND_IN_TOKENS");
  static char line[LONGEST_LINE];
  int32_t n = INT32_MIN;
  while (n == INT32_MIN && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char* bar = strchr(line, '|');
    must(bar != NULL, "a line without a bar");
    *bar = '\0';
    if (strlen(bar + 1) == (size_t)bytes && memcmp(bar + 1, text, (size_t)bytes) == 0)
      n = read_ids(line, to, most);
  }
  fclose(file);
  must(n != INT32_MIN, "a text that STAND_IN_TOKENS does not have");
  return n;
}

EXPORT void* NEW_CONTEXT(const struct model* of, struct llama_context_params params) {
  struct llama_context_params expected = context_defaults();
  must(params.n_ctx > 0 && params.n_ctx != expected.n_ctx, "n_ctx was not set");
  expected.n_ctx = params.n_ctx;
  must(params.n_batch == expected.n_batch && params.n_seq_max == 1 && params.type_v == 1 &&
           params.numbers[2] == -1.0F && params.flags[1] && !params.flags[7],
       "other context parameters than it gave");
  struct context* out = calloc(1, sizeof *out);
  must(out != NULL, "no memory");
  out->model = of;
  out->n_ctx = params.n_ctx;
  out->hash = 1;
  out->row = calloc((size_t)of->n_vocab, sizeof *out->row);
  must(out->row != NULL, "no memory");
  return out;
}

EXPORT void llama_free(struct context* one) {
  free(one->row);
  free(one);
}
EXPORT uint32_t llama_n_ctx(const struct context* of) {
  return of->n_ctx;
}
EXPORT float* llama_get_logits(struct context* of) {
  return of->row;
}

#ifdef STAND_IN_2024
EXPORT struct llama_batch llama_batch_get_one(int32_t* tokens, int32_t n, int32_t pos,
                                              int32_t seq) {
  struct llama_batch out = {n, tokens, NULL, NULL, NULL, NULL, NULL, pos, 1, seq};
  return out;
}
#else
EXPORT struct llama_batch llama_batch_get_one(int32_t* tokens, int32_t n) {
  struct llama_batch out = {n, tokens, NULL, NULL, NULL, NULL, NULL};
  return out;
}
#endif

/* tests/cli/test_crossval.py has the same formula. */
static void fill_row(struct context* of) {
  for (int32_t v = 0; v < of->model->n_vocab; ++v) {
    const uint32_t mixed = of->hash ^ ((uint32_t)v * 2654435761U);
    of->row[v] = (float)((mixed >> 16) & 0xfffU) / 256.0F - 8.0F;
  }
}

static void read_row(const struct context* of) {
  FILE* file = fopen(variable("STAND_IN_LOGITS"), "rb");
  must(file != NULL, "no STAND_IN_LOGITS");
  const size_t n = (size_t)of->model->n_vocab;
  must(fseek(file, (long)((size_t)rows_given * n * sizeof(float)), SEEK_SET) == 0, "no such row");
  must(fread(of->row, sizeof(float), n, file) == n, "STAND_IN_LOGITS has no more rows");
  fclose(file);
}

static void shift_row(const struct context* of) {
  int row = 0;
  int token = 0;
  float by = 0;
  if (sscanf(variable("STAND_IN_SHIFT"), "%d:%d:%f", &row, &token, &by) != 3) return;
  if (row == rows_given && token < of->model->n_vocab) of->row[token] += by;
}

EXPORT int32_t llama_decode(struct context* of, struct llama_batch batch) {
  must(batch.n_tokens == 1 && batch.token != NULL && batch.embd == NULL && batch.pos == NULL &&
           batch.logits == NULL,
       "another batch than it gave");
#ifdef STAND_IN_2024
  must(batch.all_pos_0 == of->n_used && batch.all_pos_1 == 1 && batch.all_seq_id == 0,
       "another position");
#endif
  must((uint32_t)of->n_used < of->n_ctx, "more tokens than n_ctx");
  if (has_defect("crash-decode")) abort();
  if (has_defect("fail-decode")) return 1;
  if (has_defect("short")) _exit(0);
  if (has_defect("close")) {
    for (int fd = 3; fd < 64; ++fd) close(fd);
    while (true) pause();
  }
  ++of->n_used;
  of->hash = of->hash * 31U + (uint32_t)batch.token[0] + 1U;
  if (*variable("STAND_IN_LOGITS") != '\0')
    read_row(of);
  else
    fill_row(of);
  shift_row(of);
  if (has_defect("nan") && rows_given == 1)
    of->row[3] = (float)(0.0 / (double)(of->n_used - of->n_used));
  ++rows_given;
  return 0;
}
