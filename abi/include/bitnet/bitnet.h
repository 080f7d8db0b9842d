/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/bitnet.h - the C API of libbitnet: load a ternary language model, generate text, and find
 * out what computed it.
 *
 * Contents   by the headings below:
 *            library                      version, build, words of messages
 *            runtime                      backends, devices and the choice between them; traces
 *            plugin files                 check, sign and describe the files of backends
 *            model                        open and describe; inspect and convert model files
 *            text                         tokens, and prompts of chats
 *            chats in JSON                messages, tools and tool calls in OpenAI's form
 *            session                      one sequence of tokens: logits, embeddings, cancel
 *            generation                   sampling, drafts, grammars, and what ran
 *            receipts                     signed files that state what computed an answer
 *            reload and change of device  replace a backend, or move to another device
 *            shadow runs                  compute live rows again on a second device
 *            one op alone                 measure a kernel
 *            many requests at once        a scheduler for servers
 *
 * Errors     A call that can fail returns a bitnet_status and fills `err`, which may be NULL. The
 *            comment of a call lists its own statuses. Every call can also return
 *            BITNET_INVALID_ARGUMENT (a NULL that is not allowed, a wrong struct_size, a call from
 *            a log callback), BITNET_UNSUPPORTED (a member is set that only a newer library knows),
 *            BITNET_OUT_OF_MEMORY and BITNET_INTERNAL. A call that computes can also return a
 *            status of the backend, such as BITNET_DEVICE_LOST.
 * Ownership  The caller owns handles and frees each with its _close call: sessions before their
 *            model, a model before its runtime. Strings are UTF-8. A `const char*` is NUL
 *            terminated; the library uses it during the call only.
 * Growth     Structs start with struct_size, the size with which the program was compiled, so that
 *            programs and libraries of different versions work together. Options: fill them with
 *            the _defaults call, then change members; an unknown member that is not 0, and a
 *            reserved_N that is not 0, are BITNET_UNSUPPORTED. Results: set struct_size; the
 *            library writes at most so many bytes, and 0 to members that it does not know. Arrays
 *            have the size of an element beside them, where 0 is that of the first version;
 *            bitnet_str never grows.
 * Text out   Calls with (out, capacity, needed) write at most `capacity` bytes without a terminator
 *            and set *needed to the full size. With capacity 0 and `out` NULL they return the size
 *            only; the next call of the same thread with exactly that capacity returns the text
 *            that was measured. BITNET_INVALID_ARGUMENT: the text does not fit.
 * Documents  Calls that return JSON name the page that lists its members. A document only gains
 *            members. docs/reference/documents.md has the rules and a list of all documents.
 * Threads    Each function has one of these tags:
 *            [any thread] several threads may make such calls at once, also on one handle, and
 *            while a call of the third kind uses it;
 *            [any thread, signal handlers too] the same, and it is async-signal-safe;
 *            [one thread at a time for its X] one call of this kind at a time on one X. For a
 *            session or a trial, a second call returns BITNET_BUSY. A _close call with this tag
 *            requires that no other call uses the X at all.
 *            A handle is valid until its _close call. A thread that calls the library needs 128 KB
 *            of stack; threads of the library have the default size of the process.
 * Callbacks  A log or trace callback must not call the library. A progress callback must not reload
 *            a backend or close its runtime. In the text callback of bitnet_generate, its own
 *            session may be asked for its length, report and program, may get a preference and a
 *            shadow, and may be cancelled or closed; it is freed when bitnet_generate returns.
 *
 * Example    cc example.c $(pkg-config --cflags --libs bitnet); ./a.out MODEL.gguf
 *
 *   #include <bitnet/bitnet.h>
 *   #include <stdio.h>
 *
 *   static int32_t print(void* file, bitnet_str text) {
 *     return fwrite(text.data, 1, text.size, file) != text.size;
 *   }
 *
 *   int main(int argc, char** argv) {
 *     bitnet_error err = {.struct_size = sizeof err};
 *     bitnet_runtime* runtime = NULL;
 *     bitnet_model* model = NULL;
 *     bitnet_session* session = NULL;
 *     bitnet_token prompt[64];
 *     uint64_t n = 0;
 *     const bitnet_str text = {"Once upon a time", 16};
 *     bitnet_generation how;
 *     bitnet_generation_defaults(&how, sizeof how);
 *     how.max_tokens = 32;
 *     how.text = print;
 *     how.text_user = stdout;
 *     bitnet_generation_result result = {.struct_size = sizeof result};
 *     if (bitnet_runtime_open(NULL, &runtime, &err) ||
 *         bitnet_model_open(runtime, argc > 1 ? argv[1] : "", NULL, &model, &err) ||
 *         bitnet_session_open(model, NULL, &session, &err) ||
 *         bitnet_tokenize(model, text, BITNET_TOKENIZE_MODEL_BOS, prompt, 64, &n, &err) ||
 *         bitnet_generate(session, prompt, n, &how, &result, &err))
 *       fprintf(stderr, "%s\n", err.message);
 *     bitnet_session_close(session);
 *     bitnet_model_close(model);
 *     bitnet_runtime_close(runtime);
 *     return err.code;
 *   }
 */
#ifndef BITNET_H
#define BITNET_H

#include "bitnet/abi/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BITNET_API __attribute__((visibility("default")))

typedef struct bitnet_runtime bitnet_runtime; /* the backends, and the choice        */
typedef struct bitnet_model bitnet_model;     /* one model, read-only                */
typedef struct bitnet_session bitnet_session; /* one sequence: tokens and KV cache   */

typedef int32_t bitnet_token;

/* ---- library ------------------------------------------------------------------------------- */

/* Returns the library's version: "0.1.0". The text belongs to the library and is always valid.
 * [any thread] */
BITNET_API const char* bitnet_version(void);
/* Returns how the library was built.
 * Document: docs/reference/documents.md, "The build". [any thread] */
BITNET_API bitnet_status bitnet_build_info(char* out, uint64_t capacity, uint64_t* needed,
                                           bitnet_error* err);

/* Sets the name that messages, hints and log lines use for an option or call of this header.
 * With ("n_context", "--ctx-size"), a message says "use a larger --ctx-size" in place of "use a
 * larger n_context". docs/reference/wording.md lists the ids. `words` has at most 100 bytes on one
 * line and is copied; NULL restores the library's own name.
 * The name applies to the whole process, so only the program should call this function, no
 * library, and before its other calls. Existing texts do not change.
 * BITNET_NOT_FOUND: this library does not know the id; a program may ignore that. [any thread] */
BITNET_API bitnet_status bitnet_wording_set(const char* id, const char* words, bitnet_error* err);

/* ---- runtime ------------------------------------------------------------------------------- */

/* `level` is BITNET_LOG_* of bitnet/abi/host.h. `message` is valid during the call. */
typedef void (*bitnet_log_callback)(void* user, uint32_t level, const char* message);

/* Events of a trace: docs/reference/trace.md. The host measures a span from begin_ns to end_ns, in
 * nanoseconds of CLOCK_MONOTONIC. */
#define BITNET_TRACE_STEP 1u   /* a step, until its rows are there                             */
#define BITNET_TRACE_SUBMIT 2u /* the call that submits the step to a device; it may compute   */
#define BITNET_TRACE_WAIT 3u   /* from then on until the device is done                        */
#define BITNET_TRACE_DEVICE 4u /* SUBMIT and WAIT together: the step on this device            */
#define BITNET_TRACE_SAMPLE 5u /* tokens are sampled from the rows of the step before          */
/* What one kernel did in a step: differences of the backend's counters over the step, read at
 * begin_ns = end_ns. They are sums, so the begin of a single call is not known. */
#define BITNET_TRACE_KERNEL 6u

/* Valid during the callback, with its texts. Members that do not apply to a kind are 0. */
typedef struct bitnet_trace_event {
  uint32_t struct_size;
  uint32_t kind;   /* BITNET_TRACE_*; newer libraries may have others */
  uint64_t runner; /* number of the session or scheduler, from 1; it gets another number when it
                      moves to another device */
  uint64_t step;   /* number of the runner's step, from 1 */
  uint64_t begin_ns;
  uint64_t end_ns;
  uint32_t n_sequences; /* of the step */
  uint32_t n_tokens;
  uint32_t n_outputs;   /* rows that it computes */
  bitnet_status status; /* not of SAMPLE and KERNEL */
  bitnet_str device;    /* not of STEP and SAMPLE: "cpu:0" */
  bitnet_str kernel;    /* of KERNEL: its id */
  bitnet_str op;
  uint64_t calls;
  uint64_t time_ns; /* of the calls, measured by the backend; 0: not measured */
  uint64_t bytes;   /* of weights that the calls read; 0: none, or not counted */
} bitnet_trace_event;

typedef void (*bitnet_trace_callback)(void* user, const bitnet_trace_event* event);

typedef struct bitnet_runtime_options {
  uint32_t struct_size;
  /* 0: one for each physical core that CPU affinity and cgroup quota allow, or as many of these as
   * the system can make. With another number, missing threads are BITNET_OUT_OF_MEMORY. */
  uint32_t n_threads;
  /* The request: auto, cpu, gpu, NAME, NAME:INDEX, or a list of them with commas. NULL: the
   * environment's BITNET_DEVICE, else auto. */
  const char* device;
  const char* requested_by; /* where the request comes from, for the report; NULL: "program"    */
  uint32_t require_first;   /* non-zero: only the first name of the request is accepted         */
  uint32_t allow_fallback;  /* non-zero: if no requested device works, choose as auto does      */
  const char* const* manifest_dirs; /* replaces the search path of manifests                    */
  uint32_t n_manifest_dirs;         /* 0 = the built-in search path                             */
  uint32_t log_level;               /* BITNET_LOG_*; messages above it are dropped; default WARN */
  /* NULL: no log. Called by every thread of the library, one call at a time. Its calls of the
   * library are rejected. */
  bitnet_log_callback log;
  void* log_user;
  /* How long an idle worker polls for work before it sleeps: from 0, not at all, to 100, without a
   * unit; default 50. If there are more workers than CPUs, they do not poll. */
  uint32_t poll;
  uint32_t reserved_0;
  /* Hexadecimal, bit i is CPU i: the CPUs of workers, and of a calling thread from its first
   * computing call on. NULL: the system chooses. */
  const char* cpu_mask;
  /* Settings of one backend, "cpu.isa=avx2", or of all, "*.head=fast". They override those of the
   * environment; a backend ignores settings that it does not know. */
  const char* const* backend_params;
  uint32_t n_backend_params;
  uint32_t reserved_1;
  /* List, with commas, of NAME, or of NAME@ID for one file only: 64 hexadecimal digits are its
   * SHA-256, others its build id. NULL or "": all backends are allowed. */
  const char* allowed_backends;
  const char* trusted_keys;   /* folder of public keys; NULL: /etc/bitnet/trusted.d             */
  uint32_t require_signature; /* non-zero: only backends that one of those keys has signed      */
  /* Non-zero: root also searches the user's folder of manifests and those of BITNET_BACKEND_PATH.
   * A process with raised privileges never does. */
  uint32_t user_backends;
  /* Folder for answers of backends; "": none. NULL: ~/.cache/bitnet/probe, or for root
   * /var/cache/bitnet/probe. */
  const char* probe_cache;
  uint32_t probe_wait_ms; /* how long a choice waits for slow backends if others can be used;
                             default 3000 */
  uint32_t probe_fresh;   /* non-zero: probe every backend, and ignore stored answers           */
  uint32_t allow_fake;    /* non-zero: BITNET_GPU_FAKE has an effect                            */
  uint32_t strict_mode;   /* non-zero, or BITNET_STRICT_MODE=1: no fakes, no fallback, and an
                             ambiguous request is an error */
  /* Non-zero: each worker has one CPU of cpu_mask, or of the allowed ones: first one hardware
   * thread of each core, CPUs with a common cache together; a calling thread is bound to its CPU
   * during a computing call. 0: the system moves workers; if there are several NUMA nodes, each
   * worker stays within one. */
  uint32_t cpu_strict;
  uint32_t reserved_2;
  /* NULL: none. Called by the threads that compute, several at a time. It must not call the
   * library. */
  bitnet_trace_callback trace;
  void* trace_user;
  uint32_t trace_times; /* non-zero: kernels are timed, too, which slows steps down; some backends
                           then compute within SUBMIT */
  uint32_t reserved_3;
} bitnet_runtime_options;

/* Fills the first `size` bytes of *options with defaults: log_level is BITNET_LOG_WARN, poll 50,
 * probe_wait_ms 3000, and the rest 0. [any thread] */
BITNET_API void bitnet_runtime_defaults(bitnet_runtime_options* options, uint32_t size);

/* Opens a runtime and finds backends by their manifests; succeeds also if there is none.
 * A backend is opened, checked and loaded only if the request can mean it, and not before a model
 * is opened or bitnet_runtime_select is called.
 * BITNET_INVALID_ARGUMENT: an option has no meaning. BITNET_FORBIDDEN: the environment forbids
 * what an option requests. BITNET_OUT_OF_MEMORY: the system cannot make so many threads.
 * [any thread] */
BITNET_API bitnet_status bitnet_runtime_open(const bitnet_runtime_options* options,
                                             bitnet_runtime** out, bitnet_error* err);
/* Frees the runtime. Close its models and the other objects that were opened on it first. NULL is
 * allowed. [one thread at a time for its runtime] */
BITNET_API void bitnet_runtime_close(bitnet_runtime* runtime);

/* Probes the requested backends and chooses one. A later call does not change the choice.
 * BITNET_UNAVAILABLE: no requested backend can be used. BITNET_REJECTED: the only candidate is a
 * plugin that broke a rule. [any thread] */
BITNET_API bitnet_status bitnet_runtime_select(bitnet_runtime* runtime, bitnet_error* err);

/* Probes every backend that was found, each in its own process; the report then lists them all.
 * A backend that fails is no error: the report has the reason. [any thread] */
BITNET_API bitnet_status bitnet_runtime_probe(bitnet_runtime* runtime, bitnet_error* err);

/* Waits until all backends that are being probed have answered; never changes the choice.
 * A backend that is slower than probe_wait_ms is added when it answers. Until then its stage in
 * the report is "probing" and its code BN-P-PENDING.
 * BITNET_TIMEOUT: some have not answered after timeout_ms. [any thread] */
BITNET_API bitnet_status bitnet_runtime_wait_probes(bitnet_runtime* runtime, uint32_t timeout_ms,
                                                    bitnet_error* err);

/* Returns the line "requested=auto detected=[cpu] selected=cpu". Before a choice, and after one
 * that failed, it ends in selected=none. [any thread] */
BITNET_API bitnet_status bitnet_runtime_selection_line(bitnet_runtime* runtime, char* out,
                                                       uint64_t capacity, uint64_t* needed,
                                                       bitnet_error* err);
/* Returns what is known of backends, devices, the choice and the threads.
 * Opens nothing, but asks the devices of open models for their status.
 * Document: docs/reference/documents.md, "A runtime". [any thread] */
BITNET_API bitnet_status bitnet_runtime_report(bitnet_runtime* runtime, char* out,
                                               uint64_t capacity, uint64_t* needed,
                                               bitnet_error* err);

/* ---- plugin files --------------------------------------------------------------------------- */

/* Checks a plugin file by the rules of the loader, without running it, and reports all findings.
 * `manifest` may be NULL; it has the file's hash and the packages of missing libraries. The
 * calling thread calls `report` once.
 * Document: docs/reference/lint.md.
 * BITNET_OK also if there are errors among the findings. BITNET_NOT_FOUND: the file cannot be
 * read. [any thread] */
BITNET_API bitnet_status bitnet_backend_lint(const char* file, const char* manifest,
                                             void (*report)(void* user, bitnet_str text),
                                             void* report_user, bitnet_error* err);

/* Writes FILE.sig beside a plugin: a detached ed25519 signature.
 * `key_file` is a private key in PEM without a password, readable by its owner only.
 * BITNET_REJECTED: the plugin cannot be trusted, other users can read the key, or FILE.sig cannot
 * be written. [any thread] */
BITNET_API bitnet_status bitnet_backend_sign(const char* file, const char* key_file,
                                             bitnet_error* err);
/* Checks that a key in the folder `trusted_keys` has signed the file, by FILE.sig.
 * NULL is /etc/bitnet/trusted.d. The calling thread calls `report` once if the signature is valid.
 * Document: docs/reference/documents.md, "A signature".
 * BITNET_REJECTED: the file has no such signature. [any thread] */
BITNET_API bitnet_status bitnet_backend_verify(const char* file, const char* trusted_keys,
                                               void (*report)(void* user, bitnet_str text),
                                               void* report_user, bitnet_error* err);

/* Describes a shared object of any kind and for any machine, without running it.
 * Symbols are counted in groups; at most `n_names` names of each group are listed.
 * Document: docs/reference/analyze-library.md.
 * BITNET_OK also if the file cannot be loaded here; the document has the reasons. BITNET_BAD_DATA:
 * the file is no shared object. BITNET_NOT_FOUND: it cannot be read. [any thread] */
BITNET_API bitnet_status bitnet_analyze_library(const char* path, uint64_t n_names, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);

/* ---- model --------------------------------------------------------------------------------- */

/* Orders of the weights in I2_S tensors: docs/reference/weights.md. */
#define BITNET_I2S_LAYOUT_A 0u
#define BITNET_I2S_LAYOUT_B 1u
#define BITNET_I2S_LAYOUT_C 2u
#define BITNET_I2S_LAYOUT_QK256 3u /* of BitNet-rs: neither zeros nor a scale */

/* Tile sizes of TL1 files: two sets were published for the shapes of Llama3-8B. */
#define BITNET_TL1_TILES_GENERATED 0u
#define BITNET_TL1_TILES_PRETUNED 1u

/* The gate of the feed-forward part. AUTO: the rule of the architecture. */
#define BITNET_ACTIVATION_AUTO 0u
#define BITNET_ACTIVATION_RELU2 1u
#define BITNET_ACTIVATION_SILU 2u

/* How many activations share a scale when ternary weights are multiplied. AUTO: all of a row, as
 * BitNet models are trained; groups of 32 (128 if weights are rotated) if the weights have a scale
 * for each group, because such models computed with floats. If a group does not fit a matrix, a
 * smaller one is used, or a row. FLOAT: activations are not rounded; ternary weights become dense
 * weights of the same values, which are at least four times as large. */
#define BITNET_ACTIVATIONS_AUTO 0u
#define BITNET_ACTIVATIONS_ROW 1u
#define BITNET_ACTIVATIONS_GROUP_32 2u
#define BITNET_ACTIVATIONS_GROUP_64 3u
#define BITNET_ACTIVATIONS_GROUP_128 4u
#define BITNET_ACTIVATIONS_FLOAT 5u

/* Which session loses its blocks of keys and values, if kv_budget_bytes is spent. */
#define BITNET_EVICT_LRU 0u  /* the least recently used one              */
#define BITNET_EVICT_FIFO 1u /* the one that has held blocks the longest */
#define BITNET_EVICT_LFU 2u  /* the one that was used the fewest times   */

/* `done` of `total` bytes of weights are processed. A return value that is not 0 stops the call:
 * BITNET_CANCELLED. */
typedef int32_t (*bitnet_progress_callback)(void* user, uint64_t done, uint64_t total);

/* Where a backend on the host reads ternary weights that it can use in the file's form. MAPPED: in
 * the pages of the file, without memory and time for loading. COPIED: in the backend's memory, in
 * large pages if the system has them; some machines, mostly virtual ones, read these faster. */
#define BITNET_LOAD_AUTO 0u /* MAPPED */
#define BITNET_LOAD_MAPPED 1u
#define BITNET_LOAD_COPIED 2u

/* Which layers are on the requested devices. Layers are counted from the last one; the output head
 * is on the device of the last layer. The other layers and the embedding are on the best CPU. AUTO:
 * all layers, or as many as fit. COUNT: n_gpu_layers; with the number of layers all but the
 * embedding, with more everything. If a device has no room: BITNET_OUT_OF_DEVICE_MEMORY before a
 * weight is read, with the missing bytes. Memory that a device does not report is not checked. */
#define BITNET_GPU_LAYERS_AUTO 0u
#define BITNET_GPU_LAYERS_ALL 1u
#define BITNET_GPU_LAYERS_COUNT 2u

#define BITNET_SPLIT_LAYER 0u /* a model may be cut between layers             */
#define BITNET_SPLIT_NONE 1u  /* the whole model is on one device, or an error */

typedef struct bitnet_model_options {
  uint32_t struct_size;
  uint32_t vocabulary_only; /* non-zero: tokenizer and metadata, no weights and no backend */
  uint32_t i2s_layout;      /* BITNET_I2S_LAYOUT_*; no file states its own                  */
  uint32_t activation;      /* BITNET_ACTIVATION_*                                          */
  uint32_t tl1_tiles;       /* BITNET_TL1_TILES_*; no file states its own                   */
  uint32_t reserved_0;
  const char* pack_cache;        /* folder for weights in the form of a backend; NULL: none     */
  uint64_t pack_cache_max_bytes; /* of all files in it; 0 = 8 GiB                               */
  bitnet_progress_callback progress;
  void* progress_user;
  /* 0: each session has room for its own context. n: the sessions of this model share n bytes for
   * keys and values, in blocks of 64 tokens. When these are spent, an idle session loses its blocks
   * by kv_eviction (BITNET_EVICT_*); it evaluates its tokens again at its next call, with the same
   * results. A call waits as long as no other session is idle. */
  uint64_t kv_budget_bytes;
  uint32_t kv_eviction;
  uint32_t reserved_1;
  /* Non-zero: settings of the backend that are found by measuring are measured now, even if the
   * cache has them. bitnet_session_report has the results. */
  uint32_t tune;
  uint32_t activations; /* BITNET_ACTIVATIONS_* */
  uint32_t load_mode;   /* BITNET_LOAD_* */
  uint32_t reserved_2;
  uint32_t gpu_layers;   /* BITNET_GPU_LAYERS_* */
  uint32_t n_gpu_layers; /* with COUNT          */
  uint32_t split_mode;   /* BITNET_SPLIT_*      */
  uint32_t n_tensor_split;
  /* How the layers are divided among the devices of the selected backend: a share for each device,
   * by its index; 0: it has none. The request must not have an index then. NULL: the selected
   * device has all of them. */
  const float* tensor_split;
  /* Room is reserved for a session with these options; NULL: with the defaults. */
  const struct bitnet_session_options* planned;
  /* PEM files: an ECDSA public key, or the certificates of the authorities that the signer's
   * certificate leads to. With one of them the model must have a signature by OpenSSF Model Signing
   * 1.0 (docs/reference/model-signatures.md). The files are hashed before they are read; meanwhile
   * `progress` has 0 bytes done, and can cancel. BITNET_REJECTED names the wrong field. */
  const char* signature_key;
  const char* signature_ca;
  /* File of the signature. NULL: of a GGUF file FILE.sig, or model.sig in its folder; of a
   * checkpoint model.sig in its folder, or FOLDER.sig beside it. */
  const char* signature;
} bitnet_model_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_model_defaults(bitnet_model_options* options, uint32_t size);

/* Reads and checks a model, and gives its weights to the selected backend.
 * `path` is a GGUF file, the first shard of a split one, or the folder of a Hugging Face
 * checkpoint. `runtime` may be NULL with vocabulary_only. Selects a backend if none is selected,
 * and then fails as bitnet_runtime_select does.
 * BITNET_BAD_DATA, BITNET_UNSUPPORTED, BITNET_NOT_FOUND: the cause is the file.
 * BITNET_OUT_OF_MEMORY, BITNET_OUT_OF_DEVICE_MEMORY: the weights do not fit. BITNET_REJECTED: the
 * signature is wrong. BITNET_CANCELLED: `progress` stopped the call. [any thread] */
BITNET_API bitnet_status bitnet_model_open(bitnet_runtime* runtime, const char* path,
                                           const bitnet_model_options* options, bitnet_model** out,
                                           bitnet_error* err);
/* Frees the model. Close its sessions, schedulers and shadows first. NULL is allowed.
 * [one thread at a time for its model] */
BITNET_API void bitnet_model_close(bitnet_model* model);

/* Describes a model file, without a backend.
 * `path` is as in bitnet_model_open. The document has metadata and tensors, how they are read, and
 * why the model would not run.
 * Document: docs/reference/formats.md.
 * BITNET_NOT_FOUND, BITNET_BAD_DATA: the file cannot be read, or is no model. [any thread] */
BITNET_API bitnet_status bitnet_inspect(const char* path, const bitnet_model_options* options,
                                        char* out, uint64_t capacity, uint64_t* needed,
                                        bitnet_error* err);

/* Reads the norms and linear layers of a model file and reports which of them look wrong.
 * `rules` is the set of rules: "none", "f16", "i2_s", "generic"; NULL or "auto" takes the set of
 * the model's architecture.
 * Document: docs/reference/weight-checks.md.
 * BITNET_OK whatever it finds. BITNET_INVALID_ARGUMENT: there is no such set of rules. Otherwise
 * fails as bitnet_inspect does. [any thread] */
BITNET_API bitnet_status bitnet_inspect_weights(const char* path,
                                                const bitnet_model_options* options,
                                                const char* rules, char* out, uint64_t capacity,
                                                uint64_t* needed, bitnet_error* err);

typedef struct bitnet_convert_options {
  uint32_t struct_size;
  uint32_t overwrite; /* non-zero: `out` may replace a file                           */
  uint32_t verify;    /* non-zero: read the result back and compare                   */
  uint32_t reserved_0;
  /* Of linear layers: "i2_s", "tl1", "tl2", "tq1_0", "tq2_0", "iq2_bn", "q1_0", "q2_0", "pq2_0",
   * "ptq1_0", or "f32", "f16", "bf16", "q8_0", "q4_0", "q6_k". NULL: "i2_s", or, if groups of 128
   * or 64 weights have scales, "pq2_0" or "q2_0". */
  const char* type;
  /* "q1_0", "q2_0", "pq2_0", "ptq1_0", "f32", "f16", "bf16", "q8_0", "q4_0" or "q6_k". NULL:
   * f32 and bf16 become "f16" if it can hold them, a ternary type becomes that of the linear layers
   * or "f16", and other types stay. */
  const char* embedding_type;
  const char* output_type; /* the same for the output head, unless it is the embedding    */
  const bitnet_model_options* model; /* how `in` is read; NULL = defaults                     */
  bitnet_progress_callback progress; /* bytes of weights                                      */
  void* progress_user;
  uint32_t n_threads; /* 0: as many as are useful on this machine */
  uint32_t reserved_1;
  /* Non-zero: floats that are ternary in groups may get a type with fewer scales, by their mean
   * magnitude; 0: they are rejected. */
  uint32_t lossy;
  uint32_t reserved_2;
} bitnet_convert_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_convert_defaults(bitnet_convert_options* options, uint32_t size);

/* Writes a model as a GGUF file, which appears whole or not at all.
 * `in` is as `path` of bitnet_model_open. The calling thread calls `report` once, at the end; it
 * may be NULL.
 * Document: docs/reference/documents.md, "A conversion".
 * BITNET_BAD_DATA: a weight is no finite number. BITNET_UNSUPPORTED: the requested type cannot
 * hold a weight. Both messages name tensor and element. BITNET_IO: `out` cannot be written.
 * BITNET_CANCELLED: `progress` stopped the call. [any thread] */
BITNET_API bitnet_status bitnet_convert(const char* in, const char* out,
                                        const bitnet_convert_options* options,
                                        void (*report)(void* user, bitnet_str text),
                                        void* report_user, bitnet_error* err);

/* Sizes that a model does not have are 0, and token ids BITNET_NONE. */
typedef struct bitnet_model_info {
  uint32_t struct_size;
  uint32_t n_vocab;
  uint32_t n_context; /* tokens that the model was trained for */
  uint32_t n_layers;
  uint32_t n_embedding;
  uint32_t n_heads;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t n_feed_forward;
  uint32_t add_bos;
  uint32_t bos, eos, eot, unknown, padding; /* token ids */
  uint32_t reserved_0;
  uint64_t n_parameters;
  uint64_t weight_bytes;
  char architecture[64];
  char name[128];
  /* Tokens of infilling, which come before: the text before the gap, the text after it, the text in
   * it; then padding, and the tokens before a repository and before each of its files. */
  uint32_t fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep; /* token ids */
} bitnet_model_info;

/* Returns the sizes, token ids and names of the model. [any thread] */
BITNET_API bitnet_status bitnet_model_describe(const bitnet_model* model, bitnet_model_info* out,
                                               bitnet_error* err);

/* ---- text ---------------------------------------------------------------------------------- */

#define BITNET_TOKENIZE_ADD_BOS 1u       /* begin with bos                          */
#define BITNET_TOKENIZE_MODEL_BOS 2u     /* begin with bos if the model demands it  */
#define BITNET_TOKENIZE_PARSE_SPECIAL 4u /* "<|eot_id|>" in the text becomes its id */
#define BITNET_TOKENIZE_MODEL_EOS 8u     /* end with eos if the model demands it    */

/* Splits a text into tokens. Writes at most `capacity` ids; *count is how many there are.
 * `flags` are BITNET_TOKENIZE_*. Bytes that are not UTF-8 become byte tokens if the vocabulary is
 * SPM, and are an error otherwise.
 * BITNET_INVALID_ARGUMENT: such bytes, more than 256 MiB of text, or ADD_BOS if the vocabulary has
 * no bos. [any thread] */
BITNET_API bitnet_status bitnet_tokenize(const bitnet_model* model, bitnet_str text, uint32_t flags,
                                         bitnet_token* out, uint64_t capacity, uint64_t* count,
                                         bitnet_error* err);

#define BITNET_DETOKENIZE_SPECIAL 1u /* render control tokens as their text */

/* Returns the text of n ids. It may begin or end within a UTF-8 character.
 * `flags` are BITNET_DETOKENIZE_*.
 * BITNET_INVALID_ARGUMENT: the vocabulary lacks an id, or the text does not fit. [any thread] */
BITNET_API bitnet_status bitnet_detokenize(const bitnet_model* model, const bitnet_token* ids,
                                           uint64_t n, uint32_t flags, char* out, uint64_t capacity,
                                           uint64_t* needed, bitnet_error* err);
/* Returns 1 if generation ends with this token, else 0. [any thread] */
BITNET_API int32_t bitnet_token_ends_generation(const bitnet_model* model, bitnet_token id);

typedef struct bitnet_message {
  bitnet_str role; /* "system", "user" or "assistant" */
  bitnet_str content;
} bitnet_message;

/* Returns the messages in the model's chat form, as text for people to read.
 * It ends where the assistant's answer begins. Only bitnet_chat_tokenize gives the right tokens,
 * because a message can contain the text of a control token.
 * `template_name` is "bitnet", "llama3", "chatml", "falcon3", "instruct" or "raw", or "model" for
 * the Jinja template of the file. NULL or "auto" takes the file's template if it renders and fits
 * the vocabulary, otherwise the built-in one that fits best; the log has the choice and the
 * reason. `message_size` is sizeof(bitnet_message).
 * BITNET_INVALID_ARGUMENT: there is no template of that name, or it does not know a role.
 * BITNET_UNSUPPORTED: the template cannot render these messages. [any thread] */
BITNET_API bitnet_status bitnet_chat_format(const bitnet_model* model, const char* template_name,
                                            const bitnet_message* messages, uint32_t message_size,
                                            uint64_t n, char* out, uint64_t capacity,
                                            uint64_t* needed, bitnet_error* err);

typedef struct bitnet_chat_options {
  uint32_t struct_size;
  /* Non-zero: "<|eot_id|>" in a message becomes its id, so messages can end and begin turns. */
  uint32_t parse_special;
  const char* template_name; /* as in bitnet_chat_format */
  /* 0: no bound. Otherwise the tokens of prompt and answer together. The oldest turns are left out
   * until 64 tokens, or an eighth of n_context if that is less, are free for the answer. The system
   * prompt, if it is the first message, and the last message always stay: BITNET_CONTEXT_FULL if
   * they are too long. */
  uint64_t n_context;
} bitnet_chat_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_chat_defaults(bitnet_chat_options* options, uint32_t size);

/* Returns the tokens of the messages in the model's chat form, with the form's own bos.
 * Only the template makes control tokens: their spelling in a message is plain text, so a message
 * cannot begin or end a turn. `options` may be NULL. Writes at most `capacity` ids; *count is how
 * many there are. *left_out, which may be NULL, is how many messages n_context left out.
 * Fails as bitnet_chat_format does. BITNET_CONTEXT_FULL: see n_context. [any thread] */
BITNET_API bitnet_status bitnet_chat_tokenize(const bitnet_model* model,
                                              const bitnet_chat_options* options,
                                              const bitnet_message* messages, uint32_t message_size,
                                              uint64_t n, bitnet_token* out, uint64_t capacity,
                                              uint64_t* count, uint64_t* left_out,
                                              bitnet_error* err);

/* ---- chats in JSON --------------------------------------------------------------------------
 *
 * Messages, tools and answers have OpenAI's form: docs/reference/chat-json.md. */

typedef struct bitnet_chat bitnet_chat;     /* a prompt, and the form of its answer      */
typedef struct bitnet_answer bitnet_answer; /* an answer, while the model generates it   */

typedef struct bitnet_chat_request {
  uint32_t struct_size;
  uint32_t parse_special; /* as in bitnet_chat_options */
  /* JSON texts: docs/reference/chat-json.md, "Messages". */
  bitnet_str messages;           /* a list of at least one message                             */
  bitnet_str tools;              /* a list of tools; size 0: none                              */
  bitnet_str tool_choice;        /* a text or an object; size 0: "auto"                        */
  bitnet_str template_arguments; /* an object: variables for the template; size 0: none        */
  const char* template_name;     /* as in bitnet_chat_format                                   */
  /* The form of calls: docs/reference/chat-json.md, "Dialects". NULL or "auto": that of the
   * template. */
  const char* dialect;
  uint64_t n_context;     /* as in bitnet_chat_options                                         */
  uint32_t no_answer;     /* non-zero: the prompt ends after the last message, not where an answer
                             begins */
  uint32_t continue_last; /* non-zero: the answer continues the last message, the assistant's  */
  uint32_t one_call;      /* non-zero: tool_choice demands one call; 0: one or more            */
  uint32_t reserved_0;
} bitnet_chat_request;

typedef struct bitnet_chat_info {
  uint32_t struct_size;
  uint32_t in_reasoning; /* non-zero: the prompt ends within thinking, and the answer begins so */
  const bitnet_token* tokens;
  uint64_t n_tokens;
  uint64_t n_left_out; /* messages that n_context left out */
  bitnet_str text;     /* of the prompt, for people to read */
  bitnet_str dialect;
  /* GBNF, for bitnet_generation, if tool_choice demands a call; otherwise of size 0. It limits the
   * answer to calls, after thinking if the model may think. The arguments are valid by the tool's
   * schema, except for tools in `unbound`. */
  bitnet_str grammar;
  bitnet_str reasoning_ends; /* the text that ends thinking: "</think>" */
  /* A line "NAME: PATH: why" for each tool with a schema that `grammar` does not follow; its
   * arguments may be any object. Size 0: there is none. */
  bitnet_str unbound;
  bitnet_str reasoning_begins; /* the text that begins thinking: "<think>" */
} bitnet_chat_info;

/* Fills the first `size` bytes of *request with defaults: everything is 0, NULL or of size 0.
 * [any thread] */
BITNET_API void bitnet_chat_request_defaults(bitnet_chat_request* request, uint32_t size);
/* Makes the prompt of a chat.
 * Control tokens are those of the template, as in bitnet_chat_tokenize. If the model's template
 * does not know tools, the library describes them in the system prompt. The template is parsed
 * once for each model.
 * BITNET_INVALID_ARGUMENT: a JSON text is wrong; the message has the place: "messages[2].content:
 * expected ..., found ...". BITNET_UNSUPPORTED: a call is demanded and the dialect has none, the
 * template cannot render this chat, or the schema of a tool with "strict": true is not supported:
 * "tools[1].function.parameters#/properties/a: ...". BITNET_CONTEXT_FULL: see n_context.
 * [any thread] */
BITNET_API bitnet_status bitnet_chat_open(const bitnet_model* model,
                                          const bitnet_chat_request* request, bitnet_chat** out,
                                          bitnet_error* err);
/* Frees the chat; its answers stay valid. NULL is allowed. [one thread at a time for its chat] */
BITNET_API void bitnet_chat_close(bitnet_chat* chat);
/* Returns the prompt, and the form of its answer. The chat owns the texts and tokens; they are
 * valid until it is closed. [any thread] */
BITNET_API bitnet_status bitnet_chat_describe(const bitnet_chat* chat, bitnet_chat_info* out,
                                              bitnet_error* err);

typedef struct bitnet_answer_options {
  uint32_t struct_size;
  uint32_t in_reasoning; /* as in bitnet_chat_info */
  /* JSON, as in bitnet_chat_request. Values of a call get the types, and values without a name the
   * names, of the tool's parameters. Size 0: there are no tools. */
  bitnet_str tools;
  const char* dialect;  /* as in bitnet_chat_request; NULL: hermes */
  const char* call_ids; /* begin of ids, before the index of the call; NULL: "call_" and a random
                           text */
} bitnet_answer_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0, NULL or of size 0.
 * [any thread] */
BITNET_API void bitnet_answer_defaults(bitnet_answer_options* options, uint32_t size);
/* Begins an answer without a chat.
 * BITNET_INVALID_ARGUMENT: there is no dialect of that name, or `tools` is wrong; the message has
 * the place. [any thread] */
BITNET_API bitnet_status bitnet_answer_open(const bitnet_answer_options* options,
                                            bitnet_answer** out, bitnet_error* err);
/* Begins the answer to the chat's prompt, with its dialect and tools. `call_ids` as in
 * bitnet_answer_options. [any thread] */
BITNET_API bitnet_status bitnet_chat_answer(const bitnet_chat* chat, const char* call_ids,
                                            bitnet_answer** out, bitnet_error* err);
/* Frees the answer. NULL is allowed. [one thread at a time for its answer] */
BITNET_API void bitnet_answer_close(bitnet_answer* answer);

/* Kinds of events, each with its members: docs/reference/chat-json.md, "Events of an answer". */
#define BITNET_ANSWER_REASONING_BEGIN 1u
#define BITNET_ANSWER_REASONING 2u /* text */
#define BITNET_ANSWER_REASONING_END 3u
#define BITNET_ANSWER_CONTENT 4u        /* text */
#define BITNET_ANSWER_CALL_BEGIN 5u     /* call, id, name */
#define BITNET_ANSWER_CALL_ARGUMENTS 6u /* call, text: a piece of a JSON text of an object */
#define BITNET_ANSWER_CALL_END 7u       /* call, text: the block as the model wrote it, or "" */
#define BITNET_ANSWER_MALFORMED 8u      /* text, message: it began as a call and is none      */

typedef struct bitnet_answer_event {
  uint32_t struct_size;
  uint32_t kind; /* BITNET_ANSWER_* */
  uint32_t call; /* 0, 1, ... in the order of the calls */
  uint32_t reserved_0;
  bitnet_str text; /* the texts are valid until the next call on the answer */
  bitnet_str id;
  bitnet_str name;
  bitnet_str message;
} bitnet_answer_event;

/* Takes the next piece of the answer's text, which may be cut anywhere.
 * Events do not depend on the cuts, except for the pieces of reasoning and content. Nothing that a
 * model writes is an error.
 * BITNET_INVALID_ARGUMENT: the answer is finished. [one thread at a time for its answer] */
BITNET_API bitnet_status bitnet_answer_push(bitnet_answer* answer, bitnet_str text,
                                            bitnet_error* err);
/* Ends the answer, and with it thinking and calls that are still open. A second call does nothing.
 * [one thread at a time for its answer] */
BITNET_API bitnet_status bitnet_answer_finish(bitnet_answer* answer, bitnet_error* err);
/* Returns the next event, in order.
 * BITNET_NOT_FOUND: there is none until the next push, or none at all after the end.
 * [one thread at a time for its answer] */
BITNET_API bitnet_status bitnet_answer_next(bitnet_answer* answer, bitnet_answer_event* out,
                                            bitnet_error* err);
/* Returns 1 if the next text would be thinking, else 0. A program can count the tokens of thinking
 * by it. [one thread at a time for its answer] */
BITNET_API int32_t bitnet_answer_in_reasoning(const bitnet_answer* answer);
/* Returns the answer so far as a message, which can be part of the next request.
 * Document: docs/reference/chat-json.md, "The message of an answer".
 * [one thread at a time for its answer] */
BITNET_API bitnet_status bitnet_answer_message(const bitnet_answer* answer, char* out,
                                               uint64_t capacity, uint64_t* needed,
                                               bitnet_error* err);

/* ---- session ------------------------------------------------------------------------------- */

/* Types of keys and values. */
#define BITNET_KV_F16 0u
#define BITNET_KV_F32 1u
/* int8 with a scale for each 32 elements: 17/32 of the bytes of f16. The head size must be a
 * multiple of 32, and the backend must have the type; otherwise BITNET_UNSUPPORTED. */
#define BITNET_KV_Q8_0 2u
/* 4 bits with a scale for each 32 elements: 9/32 of the bytes of f16. The same limits; the loss of
 * quality is larger: docs/reference/models.md. */
#define BITNET_KV_Q4_0 3u

/* The precision to which a backend may round the factors of float products, if it has such kernels;
 * sums stay f32. F16: f16. BF16: f16, or bf16 if the weights are. bitnet/abi/ops.h has the bounds.
 * The session's report lists the kernels that rounded. Only steps of several tokens round, so
 * sessions with `deterministic` never do. */
#define BITNET_PRODUCTS_F32 0u
#define BITNET_PRODUCTS_F16 1u
#define BITNET_PRODUCTS_BF16 2u

/* How an embedding is made of hidden states. MODEL: by the file's <architecture>.pooling_type, or
 * LAST if it has none. CLS is the state of the first token, which sees no other token. */
#define BITNET_POOLING_MODEL 0u
#define BITNET_POOLING_MEAN 1u
#define BITNET_POOLING_CLS 2u
#define BITNET_POOLING_LAST 3u

typedef struct bitnet_session_options {
  uint32_t struct_size;
  /* Tokens that it has room for; 0 = what the model was trained for, but at most 4096. */
  uint32_t n_context;
  uint32_t n_batch;       /* tokens of one step; 0 = 512                             */
  uint32_t kv_k;          /* BITNET_KV_*                                             */
  uint32_t kv_v;          /* BITNET_KV_*                                             */
  uint32_t deterministic; /* non-zero: the logits do not depend on the batch     */
  uint32_t profile;       /* non-zero: bitnet_session_report has times           */
  uint32_t low_memory;    /* non-zero: less memory, and slower: no second form of the output head */
  /* 0: a token sees all tokens before it. n: it sees the last n, itself included, and the first
   * window_keep tokens of the session. KV needs room only for the window and one step, and
   * n_context is by default what the model was trained for. If the session is truncated to tokens
   * that the window no longer has, the next call evaluates all of them again. BITNET_UNSUPPORTED:
   * the backend has no windows. */
  uint32_t window;
  uint32_t window_keep;
  uint32_t embeddings; /* non-zero: for bitnet_embed, and not for logits. n_batch does not change
                          the bits */
  uint32_t pooling;    /* BITNET_POOLING_*, with embeddings                                   */
  uint32_t precision;  /* BITNET_PRODUCTS_*                                                   */
} bitnet_session_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0. [any thread] */
BITNET_API void bitnet_session_defaults(bitnet_session_options* options, uint32_t size);
/* Opens an empty session.
 * BITNET_INVALID_ARGUMENT: an option has no meaning, or the model was opened with vocabulary_only.
 * BITNET_UNSUPPORTED: the backend does not support an option. BITNET_OUT_OF_MEMORY,
 * BITNET_OUT_OF_DEVICE_MEMORY: keys and values do not fit. [any thread] */
BITNET_API bitnet_status bitnet_session_open(bitnet_model* model,
                                             const bitnet_session_options* options,
                                             bitnet_session** out, bitnet_error* err);
/* Frees the session. NULL is allowed.
 * If another thread is in a call on it, that call is cancelled, and the session is freed at its
 * end. [any thread] */
BITNET_API void bitnet_session_close(bitnet_session* session);

/* Appends n tokens and computes their logits.
 * `logits` receives rows of n_vocab float32: with all_rows one row for each token, otherwise the
 * row of the last token, also if n is 0 and the session is not empty. It may be NULL. `capacity`
 * is in floats.
 * BITNET_CONTEXT_FULL: the tokens do not fit; the session is unchanged. BITNET_CANCELLED:
 * bitnet_session_cancel was called. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_eval(bitnet_session* session, const bitnet_token* ids,
                                             uint64_t n, uint32_t all_rows, float* logits,
                                             uint64_t capacity, bitnet_error* err);
/* Returns the embedding of n tokens: the pooled hidden states behind the last norm, of length 1.
 * `out` receives n_embedding floats (see bitnet_model_info); *needed, which may be NULL, is that
 * number. With capacity 0 and `out` NULL it only returns the number; otherwise `capacity` is at
 * least that number. The result depends on these tokens only: the session has no tokens before or
 * after the call.
 * BITNET_INVALID_ARGUMENT: n is 0, or the session was not opened for embeddings.
 * BITNET_CONTEXT_FULL: more tokens than the context has. BITNET_BAD_DATA: because of the weights
 * the result is no number. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_embed(bitnet_session* session, const bitnet_token* ids, uint64_t n,
                                      float* out, uint64_t capacity, uint64_t* needed,
                                      bitnet_error* err);
/* Returns the number of tokens in the session; 0 for NULL. [any thread] */
BITNET_API uint64_t bitnet_session_length(const bitnet_session* session);
/* Returns the number of tokens that the session has room for; 0 for NULL. [any thread] */
BITNET_API uint64_t bitnet_session_capacity(const bitnet_session* session);
/* Removes all tokens but the first n.
 * BITNET_INVALID_ARGUMENT: the session has fewer tokens. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_truncate(bitnet_session* session, uint64_t n,
                                                 bitnet_error* err);
/* Cancels the running bitnet_generate, bitnet_session_eval or bitnet_embed, or the next one, soon
 * after its begin, if none runs. It affects exactly one call. [any thread, signal handlers too] */
BITNET_API void bitnet_session_cancel(bitnet_session* session);
/* Undoes a cancel that has not stopped a call yet. [any thread] */
BITNET_API void bitnet_session_clear_cancel(bitnet_session* session);

/* ---- generation ---------------------------------------------------------------------------- */

typedef struct bitnet_logit_bias {
  bitnet_token token;
  float bias;
} bitnet_logit_bias;

/* The stages run in this order: grammar, logit bias, penalties, DRY, top-n-sigma, top-k, typical,
 * top-p, min-p, XTC, temperature, draw (docs/reference/sampling.md). The members from top_n_sigma
 * on were added after the first version. Their stages are off by default, and then do not change
 * the text of a seed. */
typedef struct bitnet_sampling {
  uint32_t struct_size;
  uint32_t seed;           /* the same seed gives the same text on all platforms; default 0  */
  float temperature;       /* default 0.8; 0 = greedy                                        */
  int32_t top_k;           /* default 40; 0 = off                                            */
  float top_p;             /* default 0.95; 1 = off                                          */
  float min_p;             /* default 0.05; 0 = off                                          */
  float repeat_penalty;    /* default 1 = off                                                */
  float presence_penalty;  /* default 0 = off                                                */
  float frequency_penalty; /* default 0 = off                                                */
  int32_t repeat_last_n;   /* tokens that the penalties look at; default 64; -1 = all        */
  uint32_t ignore_eos;     /* non-zero: tokens that end a generation are never sampled       */
  uint32_t n_logit_bias;
  const bitnet_logit_bias* logit_bias;
  uint32_t logit_bias_size; /* sizeof(bitnet_logit_bias)                                      */
  uint32_t reserved_0;
  float top_n_sigma;       /* standard deviations of the logits; default -1; 0 or less = off */
  float typical_p;         /* default 1 = off                                                */
  float xtc_probability;   /* default 0 = off                                                */
  float xtc_threshold;     /* default 0.1; above 0.5 = off                                   */
  float dynatemp_range;    /* temperature changes by so much, down or up; default 0 = off    */
  float dynatemp_exponent; /* exponent of the entropy; default 1                             */
  /* 1 or 2: replaces top-n-sigma to XTC, and dynatemp is off; default 0 = off. */
  int32_t mirostat;
  float mirostat_tau;             /* target surprise, in bits; default 5                        */
  float mirostat_eta;             /* learning rate; default 0.1                                 */
  float dry_multiplier;           /* default 0 = off                                            */
  float dry_base;                 /* 1 or more; default 1.75                                    */
  int32_t dry_allowed_length;     /* tokens that may be repeated; 1 or more; default 2          */
  int32_t dry_penalty_last_n;     /* tokens that DRY looks at; default 64; -1 = all             */
  uint32_t n_dry_breakers;        /* at most 32; 0 = none; default 4                            */
  const bitnet_str* dry_breakers; /* texts of 1 to 40 bytes that end a repetition; default
                                     "\n", ":", "\"" and "*", which are the library's           */
} bitnet_sampling;

/* Fills the first `size` bytes of *sampling with the defaults of llama.cpp, which the members'
 * comments state. [any thread] */
BITNET_API void bitnet_sampling_defaults(bitnet_sampling* sampling, uint32_t size);

/* Why a generation ended. */
#define BITNET_STOP_LENGTH 1u    /* max_tokens reached          */
#define BITNET_STOP_EOS 2u       /* an end-of-generation token  */
#define BITNET_STOP_STRING 3u    /* a stop string               */
#define BITNET_STOP_TOKEN 4u     /* a stop id                   */
#define BITNET_STOP_CONTEXT 5u   /* the context is full         */
#define BITNET_STOP_CANCELLED 6u /* cancel or the callback     */
#define BITNET_STOP_GRAMMAR 7u   /* the grammar allows no further token */

/* Receives a piece of the text: whole UTF-8 characters, never a part of a stop string. A return
 * value that is not 0 stops the generation. */
typedef int32_t (*bitnet_text_callback)(void* user, bitnet_str text);

/* Speculation: a step computes the last token and a draft of the next ones, and keeps the tokens
 * that the model would have generated. Tokens and log probabilities are those without speculation,
 * bit by bit, if the sums of the backend do not depend on the other tokens of a step, as is the
 * case with cpu. Drafting pauses while measured steps show that it costs time.
 * docs/how-to/speculate.md. */
#define BITNET_SPECULATION_NONE 0u
#define BITNET_SPECULATION_NGRAM 1u /* the draft is what followed the same tokens earlier */
#define BITNET_SPECULATION_DRAFT 2u /* a smaller model generates the draft                */
#define BITNET_SPECULATION_AUTO 3u  /* DRAFT if there is a draft model, else NGRAM        */

typedef struct bitnet_speculation {
  uint32_t struct_size;
  uint32_t type;          /* BITNET_SPECULATION_* */
  uint32_t n_max;         /* tokens of a draft, at most 256; 0 = 16 */
  uint32_t n_min;         /* shorter drafts are not computed; 0 = 1 */
  uint32_t ngram_size;    /* tokens that must have occurred earlier, at most 64; 0 = 3 */
  uint32_t draft_context; /* tokens of the draft model; 0 = as the session or scheduler */
  /* Its vocabulary must be the same, token by token, otherwise BITNET_INVALID_ARGUMENT. The session
   * or scheduler uses it from now on; close them first. If the draft model fails, only the drafts
   * end; the report has the reason. */
  bitnet_model* draft;
} bitnet_speculation;

/* Fills the first `size` bytes of *options with defaults: type is BITNET_SPECULATION_NONE, and the
 * rest 0 or NULL. [any thread] */
BITNET_API void bitnet_speculation_defaults(bitnet_speculation* options, uint32_t size);

typedef struct bitnet_generation {
  uint32_t struct_size;
  int32_t max_tokens;              /* -1 (default): until the model ends or the context is full */
  const bitnet_sampling* sampling; /* NULL = defaults */
  const bitnet_str* stop_strings;
  uint32_t n_stop_strings;
  uint32_t n_stop_tokens;
  const bitnet_token* stop_tokens;
  bitnet_text_callback text;
  void* text_user;
  bitnet_token* out_tokens; /* receives the new ids, with the one that ended it; may be NULL */
  uint64_t out_capacity;    /* in ids */
  /* GBNF (docs/reference/grammars.md); size 0: none. The text is always the begin of a text of the
   * rule "root". Control tokens are never sampled, and a token that ends a generation only if the
   * text is complete. BITNET_INVALID_ARGUMENT, with line and column: the grammar is wrong.
   * BITNET_UNSUPPORTED: it exceeds a bound, or the vocabulary cannot continue the text. A session
   * keeps the masks of its last grammar. */
  bitnet_str grammar;
  const bitnet_speculation* speculation; /* NULL: none */
  /* A JSON Schema (docs/reference/json-schema.md) in place of a grammar; size 0: none. The text is
   * always the begin of a JSON text that is valid by it. Both: BITNET_INVALID_ARGUMENT. Messages
   * have the place in the schema as a JSON pointer. Otherwise as `grammar`. */
  bitnet_str json_schema;
  /* The bound of thinking, in tokens; -1, or reasoning_ends of size 0: none. Thinking begins with
   * the text if in_reasoning is not 0, otherwise if the first word of the text is reasoning_begins;
   * it ends with reasoning_ends. After reasoning_budget tokens of thinking the tokens of
   * reasoning_ends follow, at once or as soon as a grammar or schema allows them; they are part of
   * the text. The other three members are as in bitnet_chat_info, of at most 64 bytes each.
   * BITNET_UNSUPPORTED: the vocabulary cannot write reasoning_ends. */
  int32_t reasoning_budget;
  uint32_t in_reasoning;
  bitnet_str reasoning_begins;
  bitnet_str reasoning_ends;
} bitnet_generation;

typedef struct bitnet_generation_result {
  uint32_t struct_size;
  uint32_t stop_reason; /* BITNET_STOP_* */
  uint64_t n_prompt;    /* tokens evaluated before the first new one */
  uint64_t n_generated;
  uint64_t prompt_ns;
  uint64_t generate_ns;
  uint32_t stop_index; /* index of the stop string or token, else BITNET_NONE */
  uint32_t reserved_0;
  uint64_t n_drafted;  /* tokens of drafts that were computed  */
  uint64_t n_accepted; /* those of them that are in the text   */
} bitnet_generation_result;

/* Fills the first `size` bytes of *options with defaults: max_tokens and reasoning_budget are -1,
 * and the rest 0, NULL or of size 0. [any thread] */
BITNET_API void bitnet_generation_defaults(bitnet_generation* options, uint32_t size);

/* Checks that bitnet_generate accepts the grammar; fails as it does. [any thread] */
BITNET_API bitnet_status bitnet_grammar_check(bitnet_str grammar, bitnet_error* err);

/* Checks that bitnet_generate accepts the JSON Schema.
 * BITNET_UNSUPPORTED: a keyword cannot be followed exactly, or a bound is exceeded. [any thread] */
BITNET_API bitnet_status bitnet_json_schema_check(bitnet_str json_schema, bitnet_error* err);

/* Appends the prompt, then samples tokens until one of BITNET_STOP_* applies.
 * The prompt may be empty if the session is not. The new tokens stay in the session; the last one
 * may not be evaluated yet. `text` is called on this thread. A cancel is no failure.
 * BITNET_INVALID_ARGUMENT: an option has no meaning, an id is not in the vocabulary, or prompt and
 * session are both empty. BITNET_CONTEXT_FULL: the prompt does not fit.
 * [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_generate(bitnet_session* session, const bitnet_token* prompt,
                                         uint64_t n_prompt, const bitnet_generation* options,
                                         bitnet_generation_result* out, bitnet_error* err);

/* Returns what ran in this session: kernels, steps, memory, drafts and moves.
 * The text callback may call it.
 * Document: docs/reference/documents.md, "A session". [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_report(bitnet_session* session, char* out,
                                               uint64_t capacity, uint64_t* needed,
                                               bitnet_error* err);

/* Returns the ops of the session's program on each device, in order, before any of them runs.
 * The text callback may call it. Which kernels ran is in bitnet_session_report.
 * Document: docs/reference/documents.md, "The ops of a session".
 * [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_program(bitnet_session* session, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);

/* ---- receipts -------------------------------------------------------------------------------
 *
 * A receipt is a file that states what computed an answer, and that can be verified: an in-toto
 * Statement v1 in a DSSE envelope, signed with ed25519. Backends count while their kernels run, and
 * the other members are derived from these counters. docs/reference/receipts.md. */

typedef struct bitnet_receipt_options {
  uint32_t struct_size;
  uint32_t with_tokens; /* non-zero: also the ids of prompt and answer; 0: their salted sums only */
  /* A private key in PEM without a password, readable by its owner only. NULL: the user's own key,
   * which is made at its first use. "": the receipt is not signed. */
  const char* key_file;
  /* JSON: an object; its members, such as `gates` and `program`, are added to the predicate
   * (docs/reference/receipts.md). Size 0: none. */
  bitnet_str facts;
  uint32_t statement_only; /* non-zero: the statement, without envelope and signature */
  uint32_t reserved_0;
} bitnet_receipt_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0, NULL or of size 0.
 * [any thread] */
BITNET_API void bitnet_receipt_defaults(bitnet_receipt_options* options, uint32_t size);
/* Returns the receipt of the last answer of bitnet_generate, also of one that failed.
 * Its counters are those of the session. Reads the files of the model, once until they change, and
 * those of the backends that computed.
 * Document: docs/reference/receipts.md.
 * BITNET_INVALID_ARGUMENT: the session has generated nothing, `facts` is no object, or it has a
 * member that the library writes. BITNET_REJECTED, BITNET_NOT_FOUND, BITNET_IO: the key cannot be
 * used. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_receipt(bitnet_session* session,
                                                const bitnet_receipt_options* options, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);
/* Returns the receipt of a run that failed before there was a session.
 * `status` and `message` are those of the failure.
 * Document: docs/reference/receipts.md.
 * BITNET_INVALID_ARGUMENT: `status` is BITNET_OK. Otherwise fails as bitnet_session_receipt does.
 * [any thread] */
BITNET_API bitnet_status bitnet_runtime_receipt(bitnet_runtime* runtime, bitnet_status status,
                                                const char* message,
                                                const bitnet_receipt_options* options, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);

typedef struct bitnet_receipt_check {
  uint32_t struct_size;
  uint32_t allow_unsigned; /* non-zero: a receipt without a signature is accepted                 */
  const char* key_file; /* a trusted key in PEM, public or private; NULL: the user's own        */
  const char* trusted_keys; /* folder of further trusted public keys; NULL: none                */
  const char* model;        /* file or folder that the receipt must be about; NULL: any         */
  uint32_t skip_plugins;    /* non-zero: the files of its backends are not checked              */
  uint32_t require_gpu_kernels; /* non-zero: a kernel must have run on a device of class gpu    */
  float require_fused; /* least share of calls of fused kernels, in per cent; 0 = any           */
  uint32_t reserved_0;
} bitnet_receipt_check;

/* Fills the first `size` bytes of *check with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_receipt_check_defaults(bitnet_receipt_check* check, uint32_t size);
/* Verifies a receipt, offline.
 * Document: docs/reference/receipts.md, "The verdict".
 * BITNET_OK whatever it finds. BITNET_BAD_DATA: the text is no envelope, or too large.
 * BITNET_INVALID_ARGUMENT: an option has no meaning. [any thread] */
BITNET_API bitnet_status bitnet_receipt_verify(bitnet_str receipt,
                                               const bitnet_receipt_check* check, char* out,
                                               uint64_t capacity, uint64_t* needed,
                                               bitnet_error* err);

/* ---- reload and change of device ------------------------------------------------------------ */

#define BITNET_RELOAD_FINISH 0u    /* open sessions stay on the old copy until they are closed */
#define BITNET_RELOAD_MIGRATE 1u   /* they move to the new copy with their keys and values     */
#define BITNET_RELOAD_RECOMPUTE 2u /* they evaluate their tokens again on the new copy         */

typedef struct bitnet_reload_options {
  uint32_t struct_size;
  uint32_t policy;          /* BITNET_RELOAD_*, for open sessions                                 */
  uint32_t force;           /* non-zero: also if the file is loaded already                       */
  uint32_t accept_stale;    /* non-zero: also if libraries that the new copy needs were replaced on
                               disk, while the process has the old ones in memory */
  uint32_t most_old_copies; /* replaced copies that may still be in memory; 0 = 4                 */
  uint32_t prompt_tokens;   /* tokens whose logits of both copies are compared; 0 = 16            */
  float tolerance;          /* their largest difference, as a share of the row's largest logit;
                               0 = 1/1024 */
  uint32_t reserved_0;
  void (*report)(void* user, bitnet_str text); /* may be NULL                                     */
  void* report_user;
  /* Rows of live texts in which the new copy must agree with the old one, by `tolerance`, before
   * sessions use it; 0 = none. See bitnet_backend_reload. */
  uint32_t canary_rows;
  uint32_t canary_wait_ms; /* milliseconds until these rows must be compared; 0 = 60 000          */
} bitnet_reload_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_reload_defaults(bitnet_reload_options* options, uint32_t size);

/* Loads the file of a backend again, beside the loaded copy.
 * New sessions use the new copy once it has passed all checks: docs/reference/reload.md has the
 * steps. `backend` is its name or, with a '/' in it, the path of its manifest or of the library
 * that a manifest names. Open sessions follow by `policy` before their next token. On failure
 * nothing has changed. The new copy needs room for a second set of weights, except for those that
 * the backend uses in the pages of the model file. Sessions may generate meanwhile; calls that
 * open or close models wait. A log or progress callback may not call it. The calling thread calls
 * `report` once.
 * Canary: with canary_rows, the new copy first is the shadow (see "shadow runs") of the sessions
 * and schedulers on the old copy that have none. Everything that waits for a reload also waits for
 * this, and so does a text whose device is lost. A text callback that reloads generates no row
 * meanwhile.
 * Document: docs/reference/reload.md, "The report".
 * BITNET_REJECTED, BITNET_UNAVAILABLE: a check failed; the message has code, reason and advice. Of
 * the canary: REJECTED if a row differs by more than `tolerance` or is no number, UNAVAILABLE if
 * no session or scheduler can have it as shadow. BITNET_TIMEOUT: the probe has not answered after
 * 60 seconds, and a later reload uses its answer; or canary_wait_ms passed before enough rows were
 * compared. [any thread] */
BITNET_API bitnet_status bitnet_backend_reload(bitnet_runtime* runtime, const char* backend,
                                               const bitnet_reload_options* options,
                                               bitnet_error* err);

/* Moves the session to the first device of a list that can be used.
 * The list is as `device` of bitnet_runtime_options. Keys and values are copied if both sides can
 * do that, otherwise the tokens are evaluated again. If the device is lost later, the session
 * moves to the next one of the list and its call continues; a session without a list uses the
 * runtime's request. Waits for probes at most probe_wait_ms if another device of the list can be
 * used, and at most 60 seconds if none can. The text callback may call it.
 * On failure the session stays on its device. BITNET_TIMEOUT: a device that comes first has not
 * answered. If the session moved to a later one of the list, the log says so.
 * [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_set_preference(bitnet_session* session,
                                                       const char* preference, bitnet_error* err);

/* ---- shadow runs ----------------------------------------------------------------------------
 *
 * A shadow computes a share of the rows of logits a second time, with the same model on another
 * device or copy of a backend, and counts how they differ from the rows that texts are sampled
 * from. It changes no text: an error in the shadow ends only the shadow. docs/reference/shadow.md
 * has the rows that are compared, and what a shadow costs. */

typedef struct bitnet_shadow bitnet_shadow;

typedef struct bitnet_shadow_options {
  uint32_t struct_size;
  uint32_t waiting;   /* rows that wait to be compared, at most 4096; 0 = 16 */
  const char* device; /* as bitnet_runtime_options.device; NULL is an error */
  /* As the options of the sessions, or of the scheduler's sequences. Rows have the same bytes only
   * with `deterministic`. NULL = defaults. */
  const bitnet_session_options* sequences;
  float share; /* share of the rows, at most 1; with 0.1 every tenth row is offered; 0 = 0.1 */
  /* Of bitnet_shadow_find_op: largest distance of two elements of an op's output. */
  float op_tolerance;
} bitnet_shadow_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_shadow_defaults(bitnet_shadow_options* options, uint32_t size);
/* Opens a shadow; close it before its model.
 * A reload does not move it to the new copy of its backend.
 * BITNET_TIMEOUT: a backend that comes first in `device` has not answered yet. BITNET_UNAVAILABLE:
 * no device of the list can be used. [any thread] */
BITNET_API bitnet_status bitnet_shadow_open(bitnet_model* model,
                                            const bitnet_shadow_options* options,
                                            bitnet_shadow** out, bitnet_error* err);
/* Cancels the shadow's step, waits for its thread, and frees it. Sessions and schedulers that have
 * it continue without. NULL is allowed. [one thread at a time for its shadow] */
BITNET_API void bitnet_shadow_close(bitnet_shadow* shadow);
/* Returns how the shadow's rows differ from those of the texts.
 * Document: docs/reference/shadow.md, "The report". [any thread] */
BITNET_API bitnet_status bitnet_shadow_report(bitnet_shadow* shadow, char* out, uint64_t capacity,
                                              uint64_t* needed, bitnet_error* err);
/* Finds the first op whose output differs by more than op_tolerance.
 * `first_op` of the report has the result. The call bisects the model's list of ops over the
 * tokens of the worst row, at most 512, with f16 keys and without a window, whatever `sequences`
 * has. It also computes on the device of new sessions and compiles about ten programs on each of
 * the two devices, so texts are slower meanwhile.
 * BITNET_NOT_FOUND: no row differs so far. BITNET_INVALID_ARGUMENT: the model is on several
 * devices on one of the two sides, or the lists of ops are not the same. [any thread] */
BITNET_API bitnet_status bitnet_shadow_find_op(bitnet_shadow* shadow, bitnet_error* err);
/* Gives the session a shadow, or takes it away with NULL.
 * Rows are offered from the next evaluation on, also those of bitnet_session_eval. Several
 * sessions and schedulers may have the same shadow. The text callback may call it.
 * BITNET_INVALID_ARGUMENT: the shadow is of another model, or its `sequences` differ in n_context,
 * KV types, precision, window or window_keep. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_set_shadow(bitnet_session* session, bitnet_shadow* shadow,
                                                   bitnet_error* err);

/* ---- one op alone -------------------------------------------------------------------------- */

typedef struct bitnet_trial bitnet_trial; /* one op with random weights, to be measured */

/* The ops LINEAR_TERNARY and LINEAR_DENSE can be tried. */
typedef struct bitnet_trial_options {
  uint32_t struct_size;
  uint32_t op;         /* BITNET_OP_* of bitnet/abi/ops.h                                      */
  uint32_t format;     /* of the weights, BITNET_FORMAT_* of bitnet/abi/tensor.h               */
  uint32_t n_tokens;   /* tokens that one run multiplies; 0 = 1                                */
  uint64_t n_rows;     /* M: a matrix is (n_rows, n_inputs)                                    */
  uint64_t n_inputs;   /* K                                                                    */
  uint32_t n_matrices; /* multiplied in turn, so that none stays in a cache; 0 = 1             */
  uint32_t reserved_0;
  uint64_t scale_group; /* inputs that share a scale of ternary weights; 0 = all of a matrix  */
} bitnet_trial_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0. [any thread] */
BITNET_API void bitnet_trial_defaults(bitnet_trial_options* options, uint32_t size);

typedef struct bitnet_trial_result {
  uint32_t struct_size;
  uint32_t n_threads; /* threads of the runtime that the backend may use                    */
  uint64_t calls;     /* calls of the kernel, counted by the backend                        */
  uint64_t time_ns;   /* of the calls, measured by the backend; 0: not measured             */
  uint64_t bytes;     /* of weights that the calls read; 0: not counted                     */
  uint64_t step_ns;   /* of the whole run, measured outside of the backend                  */
  char kernel[64];    /* the id of the kernel that ran                                      */
} bitnet_trial_result;

/* Gives the backend a program of one op. Selects a backend if none is selected. Close the trial
 * before the runtime.
 * BITNET_UNSUPPORTED: the op cannot be tried, or the backend cannot run it.
 * BITNET_INVALID_ARGUMENT: format or shape do not fit the op. [any thread] */
BITNET_API bitnet_status bitnet_trial_open(bitnet_runtime* runtime,
                                           const bitnet_trial_options* options, bitnet_trial** out,
                                           bitnet_error* err);
/* Frees the trial. If another thread is in a call on it, the trial is freed at the end of the
 * call. NULL is allowed. [any thread] */
BITNET_API void bitnet_trial_close(bitnet_trial* trial);
/* Multiplies the tokens with every matrix once. Fails as the backend's step does.
 * [one thread at a time for its trial] */
BITNET_API bitnet_status bitnet_trial_run(bitnet_trial* trial, bitnet_trial_result* out,
                                          bitnet_error* err);

/* ---- many requests at once ------------------------------------------------------------------
 *
 * A scheduler computes the requests of many clients together: each step reads the weights once for
 * all of them. A request is one prompt with one or several answers (choices). Its tokens do not
 * depend on other requests. A scheduler whose sequences have `embeddings` set generates no text:
 * the END event of a request has the embedding of its prompt, with the bits of bitnet_embed. Close
 * a scheduler before its model; a request may be closed later. docs/how-to/serve-many.md. */

typedef struct bitnet_scheduler bitnet_scheduler;
typedef struct bitnet_request bitnet_request;

typedef struct bitnet_scheduler_options {
  uint32_t struct_size;
  uint32_t max_sequences; /* sequences of a step; 0 = 32 */
  /* Options of each sequence, without profile; n_batch is the tokens of a step, of all sequences
   * together. NULL = defaults. */
  const bitnet_session_options* sequences;
  /* Bytes for keys, values and states of all sequences; 0 = for max_sequences contexts, but at most
   * half of the free memory. */
  uint64_t kv_bytes;
  uint64_t max_waiting_tokens; /* tokens of waiting prompts; 0 = 4 194 304 */
  uint32_t max_waiting;        /* waiting requests; 0 = 1024               */
  uint32_t event_capacity;     /* events that a request stores for its reader; 0 = 256. When they
                                  are full, the request is paused until the reader takes some */
  uint32_t reader_timeout_ms;  /* a request that is paused for so long fails with BITNET_TIMEOUT;
                                  0 = 60 000 */
  uint32_t reserved_0;
} bitnet_scheduler_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_scheduler_defaults(bitnet_scheduler_options* options, uint32_t size);
/* Opens a scheduler, with keys, values and a thread of its own. Fails as bitnet_session_open does.
 * BITNET_UNSUPPORTED: `sequences` has `profile` set. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_open(bitnet_model* model,
                                               const bitnet_scheduler_options* options,
                                               bitnet_scheduler** out, bitnet_error* err);
/* Cancels all requests, waits for the running step, and frees the scheduler. NULL is allowed.
 * [one thread at a time for its scheduler] */
BITNET_API void bitnet_scheduler_close(bitnet_scheduler* scheduler);
/* Returns the state of the scheduler, and what it has counted since it was opened.
 * Document: docs/reference/documents.md, "A scheduler". [any thread] */
BITNET_API bitnet_status bitnet_scheduler_report(bitnet_scheduler* scheduler, char* out,
                                                 uint64_t capacity, uint64_t* needed,
                                                 bitnet_error* err);
/* Moves the scheduler, after the running step, to the first device of a list that can be used.
 * The list is as `device` of bitnet_runtime_options. Requests continue there: their tokens so far
 * are computed again, and their texts go on. Prompts that were known on the former device are not
 * known on the new one. It needs a second set of blocks until the step has ended; the weights stay
 * on the former device, for a way back. If the device is lost later, the requests move to the next
 * one of the list. Waits for probes as bitnet_session_set_preference does.
 * On failure nothing has changed. BITNET_UNAVAILABLE: no device of the list can be used.
 * BITNET_UNSUPPORTED: the context would be smaller there. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_set_preference(bitnet_scheduler* scheduler,
                                                         const char* preference, bitnet_error* err);
/* Gives the scheduler a shadow after the running step, as bitnet_session_set_shadow does.
 * Rows of embeddings, and of prompts whose log probabilities are requested, are not offered.
 * [any thread] */
BITNET_API bitnet_status bitnet_scheduler_set_shadow(bitnet_scheduler* scheduler,
                                                     bitnet_shadow* shadow, bitnet_error* err);
/* Writes to a file what the scheduler has computed of a prompt, for a later scheduler.
 * After bitnet_scheduler_restore the prompt is known, as if a request had just had it, and
 * n_cached of the next request has it. The bits of the texts stay the same. The file has the known
 * tokens of the n, from the first on: whole blocks of 64 tokens and, if the model has one, the
 * recurrent state after them. *n_saved, which may be NULL, is their number. The path is replaced
 * whole or not at all. A new file is readable by the user alone, because it contains the text.
 * The call waits while the scheduler continues with requests, and moves at most 8 MiB, or one
 * block, after each step. The first call of save or restore reads the model's files once, to
 * identify the model.
 * BITNET_NOT_FOUND: no whole block is known. BITNET_INVALID_ARGUMENT, BITNET_IO: the file cannot
 * be written. BITNET_BUSY: requests have reserved all room. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_save(bitnet_scheduler* scheduler, const bitnet_token* ids,
                                               uint64_t n, const char* path, uint64_t* n_saved,
                                               bitnet_error* err);
/* Makes as many saved tokens known as there is room for.
 * Blocks of prompts that were used longest ago are given up. *n_restored, which may be NULL, is
 * the number of tokens. Waits as bitnet_scheduler_save does. Restore only files that no other user
 * can write: the checksum detects damage, not forgery.
 * BITNET_NOT_FOUND: the file cannot be opened. BITNET_BAD_DATA: it is damaged, or no saved
 * sequence. BITNET_INCOMPATIBLE: its format has another version. BITNET_UNSUPPORTED: it is of
 * another model or backend, or of sequences with other options. BITNET_OUT_OF_DEVICE_MEMORY: it
 * has more blocks than the scheduler. BITNET_BUSY: requests have reserved all room. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_restore(bitnet_scheduler* scheduler, const char* path,
                                                  uint64_t* n_restored, bitnet_error* err);
/* Returns a file descriptor for event loops; -1 if there is none.
 * It is readable while a request has events that were not taken. With EPOLLET it is reported once
 * for all requests that got events since the last bitnet_scheduler_wait; otherwise a loop that
 * leaves events with their request would get it again each time. The scheduler owns it; do not
 * read from it. [any thread] */
BITNET_API int32_t bitnet_scheduler_descriptor(const bitnet_scheduler* scheduler);
/* Returns a request with events that were not taken, in the order in which they became ready.
 * Waits at most timeout_ms milliseconds.
 * BITNET_TIMEOUT: there is none. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_wait(bitnet_scheduler* scheduler, uint32_t timeout_ms,
                                               bitnet_request** out, bitnet_error* err);

typedef struct bitnet_request_options {
  uint32_t struct_size;
  uint32_t n_choices; /* answers to the prompt, which is computed once; 0 = 1. Choice i has the seed
                         of `sampling` + i */
  const bitnet_token* prompt; /* at least one */
  uint64_t n_prompt;
  /* Options of each choice; NULL = defaults. `text` and `out_tokens` must be NULL, because both
   * come as events. For embeddings it must be NULL, and n_choices, best_of and all logprobs 0. */
  const bitnet_generation* generation;
  uint64_t client;         /* any number; the clients share the scheduler fairly */
  int32_t priority;        /* a higher one goes first; 2 s of waiting count as one more */
  uint32_t deadline_ms;    /* from now; then the request fails with BITNET_TIMEOUT. 0 = none */
  uint32_t logprobs;       /* non-zero: events have the log probability of their token */
  uint32_t n_top_logprobs; /* and those of so many most probable tokens, at most 20 */
  /* Number of answers that are generated, at least n_choices; 0: n_choices, whose events come at
   * once. When all have ended, the n_choices answers with the highest mean log probability of their
   * tokens are delivered, the best first. Answer i has the seed of `sampling` + i. If the request
   * is cancelled, or its deadline passes, before that, its choices end without text. */
  uint32_t best_of;
  /* Non-zero: before the first new token, a PROMPT event with log probabilities comes for each
   * token of the prompt. The whole prompt is computed, also known tokens. 0 for embeddings. */
  uint32_t prompt_logprobs;
  uint32_t n_top_prompt_logprobs; /* and those of so many most probable tokens, at most 20 */
  uint32_t receipt; /* non-zero: keep what bitnet_request_receipt needs. 0 for embeddings */
} bitnet_request_options;

typedef struct bitnet_logprob {
  bitnet_token token;
  float logprob; /* natural logarithm, of the model's logits before sampling changes them */
} bitnet_logprob;

#define BITNET_EVENT_TEXT 1u   /* a token, and the text that is certain with it  */
#define BITNET_EVENT_END 2u    /* the choice has ended, with stop_reason         */
#define BITNET_EVENT_FAILED 3u /* the choice has failed, with status and message */
/* A token of the prompt, with its text; choice is 0. The first token has no probability, because no
 * token comes before it: its logprob is 0, and it has no `top`. */
#define BITNET_EVENT_PROMPT 4u

typedef struct bitnet_event {
  uint32_t struct_size;
  uint32_t kind; /* BITNET_EVENT_* */
  uint32_t choice;
  bitnet_token token; /* of TEXT and PROMPT; -1: text of earlier tokens, which was held back */
  /* Whole UTF-8 characters, never a part of a stop string; may be empty. This and the next two
   * members are valid until the next call on the request. */
  bitnet_str text;
  const bitnet_logprob* top; /* n_top rows */
  bitnet_str message;        /* of FAILED  */
  uint32_t n_top;
  float logprob;        /* of `token`, if logprobs were requested */
  uint32_t stop_reason; /* BITNET_STOP_*, of END */
  uint32_t stop_index;  /* index of the stop string or token, else BITNET_NONE */
  bitnet_status status; /* of FAILED */
  uint32_t preemptions; /* how often the choice gave up its place in the steps */
  /* Of END and FAILED. */
  uint64_t n_prompt;
  uint64_t n_cached; /* tokens of the prompt that were known, and not computed */
  uint64_t n_generated;
  uint64_t n_recomputed; /* tokens that were computed again, after a preemption or a move */
  uint64_t queue_ns;     /* time of waiting */
  uint64_t prompt_ns;    /* from then on, until the first token */
  uint64_t generate_ns;  /* from then on, until the end */
  /* Of END of a scheduler of embeddings, with length 1, valid as `text` is; stop_reason is
   * BITNET_STOP_LENGTH. NULL: the request was cancelled, or this is another event. */
  const float* embedding;
  uint64_t n_embedding; /* floats */
  float mean_logprob;   /* of all tokens, of END; if logprobs or best_of was requested */
  uint32_t candidate;   /* index of the answer among best_of; without best_of it is `choice` */
  /* Of END and FAILED. */
  uint64_t n_drafted;  /* tokens of drafts that were computed */
  uint64_t n_accepted; /* those of them that are in the text  */
} bitnet_event;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_request_defaults(bitnet_request_options* options, uint32_t size);
/* Adds a request to the queue.
 * BITNET_BUSY: too many requests or tokens wait. BITNET_CONTEXT_FULL: the prompt leaves no room
 * for an answer, or a prompt to embed is too long. BITNET_OUT_OF_DEVICE_MEMORY: it needs more KV
 * blocks than there are. BITNET_INVALID_ARGUMENT: there is no prompt, or an option has no meaning.
 * If the device is lost and there is no other: the status of that loss. [any thread] */
BITNET_API bitnet_status bitnet_request_submit(bitnet_scheduler* scheduler,
                                               const bitnet_request_options* options,
                                               bitnet_request** out, bitnet_error* err);
/* Returns the next event. Waits for it at most timeout_ms milliseconds.
 * BITNET_TIMEOUT: there is none yet. BITNET_NOT_FOUND: all choices have ended, and no event
 * follows. [one thread at a time for its request] */
BITNET_API bitnet_status bitnet_request_next(bitnet_request* request, uint32_t timeout_ms,
                                             bitnet_event* out, bitnet_error* err);
/* Ends the request's choices with BITNET_STOP_CANCELLED, within one step.
 * If no other request needs the step, and the device can do that, the step ends early. The same
 * happens when the deadlines of all requests of a step pass. [any thread] */
BITNET_API void bitnet_request_cancel(bitnet_request* request);
/* Returns the receipt of a choice, also of one that was cancelled.
 * Submit the request with `receipt`, and take the END or FAILED event of the choice first. Its
 * counters are those of the steps in which the request had tokens. Other requests may have had
 * tokens in them; `batch` has the request's own share. Reads files as bitnet_session_receipt does.
 * Document: docs/reference/receipts.md.
 * BITNET_INVALID_ARGUMENT: `receipt` was 0, the choice has not ended, the scheduler is closed, or
 * `facts` is wrong as in bitnet_session_receipt. BITNET_REJECTED, BITNET_NOT_FOUND, BITNET_IO: the
 * key cannot be used. [one thread at a time for its request] */
BITNET_API bitnet_status bitnet_request_receipt(bitnet_request* request, uint32_t choice,
                                                const bitnet_receipt_options* options, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);
/* Cancels the choices that have not ended, drops their events, and frees the request. NULL is
 * allowed. [one thread at a time for its request] */
BITNET_API void bitnet_request_close(bitnet_request* request);

#ifdef __cplusplus
}
#endif

#endif /* BITNET_H */
