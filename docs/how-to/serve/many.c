/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Answers several prompts at once, and prints each token as it comes with the number of its prompt.
 * Usage: many MODEL.gguf PROMPT... */
#include <bitnet/bitnet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bitnet_error error = {.struct_size = sizeof error};

static int failed(const char* doing) {
  fprintf(stderr, "%s: %s\n", doing, error.message);
  return 1;
}

/* The tokens of `text`, *n of them; NULL after a failure. */
static bitnet_token* tokens_of(const bitnet_model* model, const char* text, uint64_t* n) {
  const bitnet_str all = {text, strlen(text)};
  if (bitnet_tokenize(model, all, BITNET_TOKENIZE_MODEL_BOS, NULL, 0, n, &error)) return NULL;
  bitnet_token* ids = malloc((*n + 1) * sizeof *ids);
  if (ids != NULL && bitnet_tokenize(model, all, BITNET_TOKENIZE_MODEL_BOS, ids, *n, n, &error)) {
    free(ids);
    ids = NULL;
  }
  return ids;
}

static bitnet_request* submit(bitnet_scheduler* to, const bitnet_model* model, const char* text) {
  bitnet_generation generation;
  bitnet_generation_defaults(&generation, sizeof generation);
  generation.max_tokens = 24;
  bitnet_request_options options;
  bitnet_request_defaults(&options, sizeof options);
  bitnet_token* prompt = tokens_of(model, text, &options.n_prompt);
  options.prompt = prompt;
  options.generation = &generation;
  bitnet_request* out = NULL;
  if (prompt != NULL) bitnet_request_submit(to, &options, &out, &error);
  free(prompt);
  return out;
}

/* Prints the events that `r` has now; 1 when the last of them was there, -1 after a failure. */
static int print_events(bitnet_request* r, int number) {
  bitnet_event event = {.struct_size = sizeof event};
  bitnet_status status;
  while ((status = bitnet_request_next(r, 0, &event, &error)) == BITNET_OK) {
    if (event.kind == BITNET_EVENT_TEXT && event.text.size != 0)
      printf("%d: %.*s\n", number, (int)event.text.size, event.text.data);
    if (event.kind == BITNET_EVENT_FAILED)
      printf("%d failed: %.*s\n", number, (int)event.message.size, event.message.data);
    if (event.kind == BITNET_EVENT_END)
      printf("%d has ended: %llu tokens\n", number, (unsigned long long)event.n_generated);
    if (event.kind != BITNET_EVENT_TEXT) return 1;
  }
  return status == BITNET_TIMEOUT ? 0 : -1;
}

static int serve(bitnet_scheduler* scheduler, const bitnet_model* model, int n, char** prompts) {
  bitnet_request** requests = calloc((size_t)n, sizeof(bitnet_request*));
  int running = 0, result = requests == NULL;
  for (int i = 0; i < n && !result; ++i, ++running)
    if ((requests[i] = submit(scheduler, model, prompts[i])) == NULL)
      result = failed("submitting a request");
  while (running > 0 && !result) {
    /* An event loop would watch its sockets here, too. */
    struct pollfd watched = {.fd = bitnet_scheduler_descriptor(scheduler), .events = POLLIN};
    bitnet_request* ready = NULL;
    if (poll(&watched, 1, 1000) <= 0) continue;
    if (bitnet_scheduler_wait(scheduler, 0, &ready, NULL)) continue;
    for (int i = 0; i < n; ++i)
      if (requests[i] == ready) {
        const int over = print_events(ready, i);
        if (over < 0) result = failed("reading a request");
        if (over > 0) --running;
      }
  }
  for (int i = 0; requests != NULL && i < n; ++i) bitnet_request_close(requests[i]);
  free(requests);
  return result;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: many MODEL.gguf PROMPT...\n");
    return 2;
  }
  bitnet_runtime* runtime = NULL;
  bitnet_model* model = NULL;
  bitnet_scheduler* scheduler = NULL;
  int result = 1;
  if (bitnet_runtime_open(NULL, &runtime, &error))
    failed("opening the runtime");
  else if (bitnet_model_open(runtime, argv[1], NULL, &model, &error))
    failed("opening the model");
  else if (bitnet_scheduler_open(model, NULL, &scheduler, &error))
    failed("opening a scheduler");
  else
    result = serve(scheduler, model, argc - 2, argv + 2);
  bitnet_scheduler_close(scheduler);
  bitnet_model_close(model);
  bitnet_runtime_close(runtime);
  return result;
}
