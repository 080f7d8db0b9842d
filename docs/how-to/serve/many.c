/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Answers several prompts at once, and prints each token as it comes with the number of its prompt.
 * A prompt that fails does not keep the others from their answers.
 *
 *   cc many.c $(pkg-config --cflags --libs bitnet) -o many
 *   ./many MODEL.gguf "Once upon a time" "The fox said" */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bitnet/bitnet.h>

static bitnet_error error = {.struct_size = sizeof error};

static int failed(const char* doing) {
  fprintf(stderr, "%s: %s\n", doing, error.message);
  return 1;
}

/* The tokens of `text`, *n of them; NULL after a failure, with its message in `error`. */
static bitnet_token* tokens_of(const bitnet_model* model, const char* text, uint64_t* n) {
  const bitnet_str all = {text, strlen(text)};
  const uint32_t flags = BITNET_TOKENIZE_MODEL_BOS;
  if (bitnet_tokenize(model, all, flags, NULL, 0, n, &error) != BITNET_OK) return NULL;
  bitnet_token* ids = malloc((*n + 1) * sizeof *ids);
  if (ids == NULL) {
    snprintf(error.message, sizeof error.message, "there is no memory for %llu tokens",
             (unsigned long long)*n);
  } else if (bitnet_tokenize(model, all, flags, ids, *n, n, &error) != BITNET_OK) {
    free(ids);
    ids = NULL;
  }
  return ids;
}

/* The request is the caller's; NULL after a failure. The prompt is copied. */
static bitnet_request* submit(bitnet_scheduler* to, const bitnet_model* model, const char* text) {
  bitnet_sampling greedy;
  bitnet_sampling_defaults(&greedy, sizeof greedy);
  greedy.temperature = 0;
  bitnet_generation generation;
  bitnet_generation_defaults(&generation, sizeof generation);
  generation.max_tokens = 24;
  generation.sampling = &greedy;
  bitnet_request_options options;
  bitnet_request_defaults(&options, sizeof options);
  options.generation = &generation;
  bitnet_token* prompt = tokens_of(model, text, &options.n_prompt);
  if (prompt == NULL) return NULL;
  options.prompt = prompt;
  bitnet_request* out = NULL;
  bitnet_request_submit(to, &options, &out, &error);
  free(prompt);
  return out;
}

/* Prints the events that request `number` has now. Whether the last of them was there; *result
 * becomes 1 where it failed. */
static int print_events(bitnet_request* request, int number, int* result) {
  bitnet_event event = {.struct_size = sizeof event};
  bitnet_status status;
  while ((status = bitnet_request_next(request, 0, &event, &error)) == BITNET_OK) {
    if (event.kind == BITNET_EVENT_TEXT) {
      printf("%d: %.*s\n", number, (int)event.text.size, event.text.data);
      continue;
    }
    if (event.kind == BITNET_EVENT_FAILED) {
      fprintf(stderr, "%d failed: %.*s\n", number, (int)event.message.size, event.message.data);
      *result = 1;
    } else {
      printf("%d has ended: %llu tokens\n", number, (unsigned long long)event.n_generated);
    }
    return 1; /* there is one choice */
  }
  if (status == BITNET_TIMEOUT) return 0;
  *result = failed("reading a request");
  return 1;
}

/* Until all `n` have ended. An event loop would watch its sockets here, too. */
static int read_all(bitnet_scheduler* scheduler, bitnet_request** requests, int n, int running) {
  int result = 0;
  struct pollfd watched = {.fd = bitnet_scheduler_descriptor(scheduler), .events = POLLIN};
  while (running > 0) {
    if (poll(&watched, 1, -1) < 0 && errno != EINTR) {
      perror("poll");
      return 1;
    }
    bitnet_request* ready = NULL;
    if (bitnet_scheduler_wait(scheduler, 0, &ready, NULL) != BITNET_OK) continue;
    for (int i = 0; i < n; ++i)
      if (requests[i] == ready) running -= print_events(ready, i, &result);
  }
  return result;
}

static int serve(bitnet_scheduler* scheduler, const bitnet_model* model, int n, char** prompts) {
  bitnet_request** requests = calloc((size_t)n, sizeof(bitnet_request*));
  if (requests == NULL) {
    perror("calloc");
    return 1;
  }
  int running = 0, result = 0;
  for (int i = 0; i < n; ++i) {
    requests[i] = submit(scheduler, model, prompts[i]);
    if (requests[i] != NULL) {
      ++running;
    } else {
      fprintf(stderr, "%d was rejected: %s\n", i, error.message);
      result = 1;
    }
  }
  if (read_all(scheduler, requests, n, running) != 0) result = 1;
  for (int i = 0; i < n; ++i) bitnet_request_close(requests[i]);
  free(requests);
  return result;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s MODEL.gguf PROMPT...\n", argv[0]);
    return 2;
  }
  bitnet_runtime* runtime = NULL;
  bitnet_model* model = NULL;
  bitnet_scheduler* scheduler = NULL;
  int result = 1;
  if (bitnet_runtime_open(NULL, &runtime, &error) != BITNET_OK)
    failed("opening the runtime");
  else if (bitnet_model_open(runtime, argv[1], NULL, &model, &error) != BITNET_OK)
    failed("opening the model");
  else if (bitnet_scheduler_open(model, NULL, &scheduler, &error) != BITNET_OK)
    failed("opening a scheduler");
  else
    result = serve(scheduler, model, argc - 2, argv + 2);
  bitnet_scheduler_close(scheduler);
  bitnet_model_close(model);
  bitnet_runtime_close(runtime);
  return result;
}
