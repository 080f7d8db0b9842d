/* Continues a prompt with a model, through libbitnet's C API.
 *
 *   cc example.c $(pkg-config --cflags --libs bitnet) -o example
 *   ./example MODEL.gguf "Once upon a time"
 */
#include <stdio.h>
#include <string.h>

#include <bitnet/bitnet.h>

enum { max_prompt = 512, max_new = 48 };

static int failed(const char* doing, const bitnet_error* why) {
  fprintf(stderr, "%s: %s (status %d)\n", doing, why->message, (int)why->code);
  return 1;
}

/* Called with whole UTF-8 characters as they become certain. */
static int32_t print_text(void* user, bitnet_str text) {
  fwrite(text.data, 1, text.size, (FILE*)user);
  fflush((FILE*)user);
  return 0; /* anything else would stop the generation */
}

static int generate(bitnet_model* model, const char* prompt, bitnet_error* why) {
  bitnet_session_options options;
  bitnet_session_defaults(&options, sizeof options);
  bitnet_session* session = NULL;
  if (bitnet_session_open(model, &options, &session, why) != BITNET_OK)
    return failed("opening a session", why);

  bitnet_token ids[max_prompt];
  uint64_t count = 0;
  const bitnet_str text = {prompt, strlen(prompt)};
  int status = 0;
  if (bitnet_tokenize(model, text, BITNET_TOKENIZE_MODEL_BOS, ids, max_prompt, &count, why) !=
      BITNET_OK) {
    status = failed("reading the prompt", why);
  } else {
    bitnet_sampling greedy;
    bitnet_sampling_defaults(&greedy, sizeof greedy);
    greedy.temperature = 0;

    bitnet_generation generation = {.struct_size = sizeof generation};
    generation.max_tokens = max_new;
    generation.sampling = &greedy;
    generation.text = print_text;
    generation.text_user = stdout;

    bitnet_generation_result result = {.struct_size = sizeof result};
    printf("%s", prompt);
    if (bitnet_generate(session, ids, count, &generation, &result, why) != BITNET_OK)
      status = failed("generating", why);
    else
      printf("\n[%llu tokens]\n", (unsigned long long)result.n_generated);
  }
  bitnet_session_close(session);
  return status;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.gguf PROMPT\n", argv[0]);
    return 2;
  }
  bitnet_error why = {.struct_size = sizeof why};

  /* Which backend computes: BITNET_DEVICE, or the best there is. */
  bitnet_runtime_options options;
  bitnet_runtime_defaults(&options, sizeof options);
  bitnet_runtime* runtime = NULL;
  if (bitnet_runtime_open(&options, &runtime, &why) != BITNET_OK) return failed("starting", &why);

  bitnet_model_options model_options;
  bitnet_model_defaults(&model_options, sizeof model_options);
  bitnet_model* model = NULL;
  int status;
  if (bitnet_model_open(runtime, argv[1], &model_options, &model, &why) != BITNET_OK) {
    status = failed("opening the model", &why);
  } else {
    status = generate(model, argv[2], &why);
    bitnet_model_close(model);
  }

  char line[256];
  uint64_t needed = 0;
  if (bitnet_runtime_selection_line(runtime, line, sizeof line, &needed, NULL) == BITNET_OK)
    fprintf(stderr, "%.*s\n", (int)needed, line);
  bitnet_runtime_close(runtime);
  return status;
}
