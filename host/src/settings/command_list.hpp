#pragma once
// The one list of the program's commands, in the order of the help. A row gives the command's bit
// in option rows, its function <name>_command, which commands/ must define, its help, its manual
// page and its completions. Names have letters a to z and '_', which the program writes as '-'.
//
// X(name, what follows it, words that may stand where no flag does ("a|b", COMMAND being
//   all commands), summary: one line, paragraphs of its --help)
// clang-format off: the texts' own lines.
#define BITNET_COMMANDS(X) \
  X(run, "[MODEL] [PROMPT] [options]", "", "continues a prompt", \
    "Prints the prompt and its continuation. With -m, the argument is the prompt; without\n" \
    "-m, the first argument is the model. The prompt may also come from -f, or from standard\n" \
    "input if that is no terminal. On a terminal and without a prompt, this command is the\n" \
    "same as bitnet chat.\n") \
  X(chat, "[MODEL] [options]", "", "holds a conversation with a model", \
    "Reads messages, each a line or the lines between \"\"\", and answers each. /help lists the\n" \
    "commands of the chat. -p is the first message.\n") \
  X(backends, "[list | info [NAME] | why | probe | dir | sign FILE | verify FILE] [options]", \
    "list|info|why|probe|dir|sign|verify", \
    "shows which backends and devices can compute here, and why", \
    "list    lists backends and devices, one on each line (the default)\n" \
    "info    shows everything that is known about each backend, or about NAME\n" \
    "why     shows what is selected for --device, and why each other candidate is not\n" \
    "probe   probes the backends of --device, or with --all every one; waits for slow ones,\n" \
    "        and keeps the answers\n" \
    "dir     lists the folders that are searched for manifests\n" \
    "sign    writes FILE.sig with the private key of --key\n" \
    "verify  shows whose signature FILE has, by the keys of --trusted-keys\n") \
  X(doctor, "[options]", "", \
    "shows what this machine has, what computes on it, and what to do first", \
    "Lists processor, memory, limits, large pages, GPUs and accelerators with their drivers\n" \
    "and device nodes, what each backend answered, and caches. Each problem comes with\n" \
    "advice; the last line says what to do first.\n") \
  X(preflight, "[--backend NAME] [--require] [options]", "", \
    "reports by its exit code whether a backend can be used", \
    "Ends with exit code 0 if the request can be met, with 1 if it cannot or if something\n" \
    "else would compute in its place, and with 2 for a mistake in the command. The request\n" \
    "is --backend, or --device if --backend is not given.\n") \
  X(parity, "[--backend NAME] [options]", "", \
    "compares the results of each backend with the reference", \
    "Compares every op and weight format of every installed backend with its definition:\n" \
    "whether the bits are the same, the largest error, the mean squared error, and units in\n" \
    "the last place. Needs the program bitnet-backend-conformance, which comes with the SDK.\n") \
  X(crossval, "[find | MODEL] [options]", "find", \
    "compares tokens and logits with those of llama.cpp or bitnet.cpp", \
    "Compares this engine's tokens and logits, position by position, with those of a build\n" \
    "of llama.cpp or bitnet.cpp, which runs in a process of its own. Prints the lowest\n" \
    "cosine, the largest difference and the first position that differs. Ends with exit code\n" \
    "11 if they differ, and with 13 if they cannot be compared. crossval find shows which\n" \
    "build would be used, and whether it can be.\n") \
  X(plan, "[MODEL] [options]", "", "shows which kernels run a model here, op by op, and why", \
    "Runs one step of a token and one of a prompt, and prints for each op the device, the\n" \
    "kernel that ran, its level and the bytes of its weights. --save writes this plan to a\n" \
    "file. With --plan FILE this command, run, chat, bench, batch and serve compute by such\n" \
    "a plan, or end with exit code 14 and name the places that differ.\n") \
  X(inspect, "[MODEL] [options]", "", \
    "shows what a GGUF file contains, and whether the model would run", \
    "Reads any GGUF file; needs no backend. --stats also checks the weights; in strict mode,\n" \
    "suspicious ones are exit code 8.\n") \
  X(compat_check, "MODEL [options]", "", "reports whether this program reads a model file", \
    "A short answer, for scripts: format, version, counts, and each reason for which the\n" \
    "model would not run. --strict also checks the weights; suspicious ones are exit code 8.\n") \
  X(analyze_library, "LIBRARY [options]", "", \
    "shows what a shared object contains, without running its code", \
    "Counts the symbols of four groups, names weight formats, and shows which backend it is,\n" \
    "what it needs and whether it could be loaded here. It reads our plugins, libllama.so,\n" \
    "libggml.so and others, also of other machines. Ends with exit code 2 for a file that is\n" \
    "no shared object, and with 3 for one that could not be loaded.\n") \
  X(verify_receipt, "FILE [options]", "", "verifies, offline, what a receipt says", \
    "Verifies the signature and the form, that counters and conclusions agree, and that\n" \
    "plugins and --model are the files that were used. Ends with exit code 1 if a rule is\n" \
    "broken, and names the field; with 3 if a gate or a --require-... is not met; with 2 for\n" \
    "a file that is no receipt. --replay computes the answer again, and ends with 13 if it\n" \
    "cannot be compared. A file of batch --receipts has a receipt on each line: all are\n" \
    "verified, and the first bad one is named.\n") \
  X(tokenize, "[TEXT | -f FILE] [options]", "", "converts text to token ids", \
    "Prints the ids on one line, separated by blanks. A file that has only a vocabulary is\n" \
    "enough. Reads standard input if neither TEXT nor -f is given.\n") \
  X(detokenize, "[ID... | -f FILE] [options]", "", "converts token ids to text", \
    "The inverse of tokenize. Blanks or commas separate the ids. Reads standard input if\n" \
    "neither ID nor -f is given.\n") \
  X(logits, "(-p TEXT | -f FILE | --ids \"1 2 3\") -o FILE [options]", "", \
    "writes logits as a NumPy array", \
    "Writes float32 logits: shape (n_vocab) for the last position, or with --all (n_tokens,\n" \
    "n_vocab). A text gets the begin-of-sequence token if the model asks for it; ids are\n" \
    "taken as they are.\n") \
  X(embed, "[-p TEXT | -f FILE | --ids \"1 2 3\"] [options]", "", \
    "converts a text, or each line of standard input, to a vector", \
    "Prints the embedding of a text: its hidden states after the last norm, pooled and\n" \
    "scaled to length 1. Without a text, each line of standard input is one. A text gets the\n" \
    "tokens for its begin and end that the model asks for; ids are taken as they are. JSON\n" \
    "has a line for each text, the NumPy array a row.\n") \
  X(batch, "IN OUT [options]", "", "answers a file of requests in OpenAI's format", \
    "Reads requests in the format of OpenAI's batches, one JSON object on each line, and\n" \
    "appends an answer or an error for each to OUT, in the order in which they end. After an\n" \
    "interruption the same command continues. IN may be -: standard input.\n") \
  X(serve, "[MODEL] [options]", "", "answers requests of OpenAI's API over HTTP", \
    "Answers completions, chats with tools, and embeddings, streamed or whole, many at once.\n" \
    "Sampling options are the defaults of requests. After SIGTERM or Ctrl-C the server\n" \
    "answers the requests that it has, and ends; a second signal ends it at once. SIGHUP\n" \
    "makes it read files of keys and certificates again.\n") \
  X(bench, "[MODEL | compare A B | serve URL] [options]", "compare|serve", \
    "measures how fast a model runs here", \
    "Measures prompts (pp) and greedy generation (tg) with random tokens, by the names of\n" \
    "llama-bench, and the memory bandwidth of this machine in the same minute. With\n" \
    "--parallel it measures many requests at once, with --kernel one op alone. bench compare\n" \
    "shows whether B is faster than A, by the samples in two files of -o json or jsonl.\n" \
    "bench serve sends requests to a server of OpenAI's API, and reports how long its\n" \
    "clients wait.\n") \
  X(eval, "ppl | kld | choice [MODEL] [options]", "ppl|kld|choice", \
    "measures how good a model is", \
    "ppl     perplexity and bits per byte of the text -f, by the rule of llama-perplexity\n" \
    "kld     how far its probabilities are from those of a base model: first\n" \
    "        --save-logits of the base model, then --compare\n" \
    "choice  how many questions of the JSONL file -f it answers correctly, in the form of\n" \
    "        HellaSwag or ARC\n") \
  X(quantize, "IN OUT TYPE [options]", "", \
    "writes a model with other types of weights to a new GGUF file", \
    "Reads any model and writes a GGUF file whose linear layers are of TYPE: i2_s, tl1, tl2,\n" \
    "tq1_0, tq2_0, iq2_bn, q1_0, q2_0, pq2_0 or ptq1_0, or back to f32, f16, bf16, q8_0,\n" \
    "q4_0 or q6_k. Ternary weights keep their values exactly; floating-point weights are\n" \
    "made ternary. OUT appears whole or not at all.\n") \
  X(convert, "DIR OUT [options]", "", "writes a Hugging Face checkpoint as a GGUF file", \
    "Reads config.json, tokenizer.json and the safetensors files of a folder.\n") \
  X(version, "[--json]", "", "prints version and build", \
    "") \
  X(completion, "bash | zsh | fish", "bash|zsh|fish", \
    "prints the script by which a shell completes commands and flags", \
    "Packages install the script. For one shell: eval \"$(bitnet completion bash)\", or\n" \
    "bitnet completion fish | source.\n") \
  X(man, "[COMMAND | bitnet.yaml]", "COMMAND|bitnet.yaml", \
    "prints the manual page of the program, of a command or of the config files", \
    "Prints the source of the page; packages install it. To read it:\n" \
    "bitnet man run | man -l -\n") \
  X(help, "[COMMAND]", "COMMAND", "prints the help of the program or of a command", \
    "")
// clang-format on
