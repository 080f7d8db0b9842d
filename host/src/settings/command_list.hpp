#pragma once
// Every command of the program, once, in the order of the help. From its row follow its bit in
// option rows, its function <name>_command, which commands/ must define, its help, its manual page
// and its completions. Names are words of a to z; the program writes '-' for '_'.
//
// X(name, what follows it, words that may stand where no flag does ("a|b", COMMAND being
//   all commands), summary: one line, paragraphs of its --help)
// clang-format off: the texts' own lines.
#define BITNET_COMMANDS(X) \
  X(run, "[MODEL] [PROMPT] [options]", "", "continue a prompt", \
    "Prints the prompt and its continuation. With -m every argument is the prompt; without, the\n" \
    "first one is the model. The prompt may also come from -f, or from standard input when that\n" \
    "is no terminal; on a terminal without a prompt this is `bitnet chat`.\n") \
  X(chat, "[MODEL] [options]", "", "talk with a model", \
    "Reads messages line by line, or between \"\"\" lines, and answers each. /help lists the\n" \
    "commands that work inside. With -p the first message is given.\n") \
  X(backends, "[list | info [NAME] | why | probe | dir | sign FILE | verify FILE] [options]", \
    "list|info|why|probe|dir|sign|verify", "what can compute here, and why", \
    "list  backends and devices, one per line (the default)\n" \
    "info  everything known about each, or about NAME\n" \
    "why   the selection for --device, and why each other candidate lost\n" \
    "probe asks those of --device, or --all, waits for the slow ones, and remembers the answers\n" \
    "dir   the folders that were searched for manifests\n" \
    "sign  writes FILE.sig with the private key of --key\n" \
    "verify  shows whose signature FILE has, by the keys of --trusted-keys\n") \
  X(doctor, "[options]", "", "what this machine has, and what to do first", \
    "Lists processor, memory, limits, large pages, GPUs and accelerators with their drivers and\n" \
    "nodes, what each backend answered, and what is remembered. What is not as it should be comes\n" \
    "with advice; the last line has what to do first.\n") \
  X(preflight, "[--backend NAME] [--require] [options]", "", "whether a backend can be used", \
    "Ends with 0 where the request can be met, with 1 where it cannot or where something else\n" \
    "would compute in its place, and with 2 for a mistake in the command. The request is\n" \
    "--backend, else --device.\n") \
  X(parity, "[--backend NAME] [options]", "", "how near each backend is to the reference", \
    "Compares every op and weight format of every installed backend with its definition: " \
    "whether\n" \
    "the bits are the same, the largest error, the mean squared one, and units in the " \
    "last place.\n" \
    "Needs bitnet-backend-conformance, which comes with the SDK.\n") \
  X(crossval, "[find | MODEL] [options]", "find", "tokens and logits beside llama.cpp's", \
    "Compares this engine's tokens and logits, position by position, with those of a build of\n" \
    "llama.cpp or bitnet.cpp, which runs in a process of its own: the least cosine, the largest\n" \
    "distance, the first divergence. Exits with 11 where they differ, with 13 where they cannot\n" \
    "be compared. find shows which build would be used, and whether it can be.\n") \
  X(plan, "[MODEL] [options]", "", "which kernels run a model here, and why", \
    "Runs one step of a token and one of a prompt, and prints for each op the device, the kernel\n" \
    "that was counted, its level and the bytes of its weights. --save writes it to a file, and\n" \
    "--plan FILE, here and of run, chat, bench, batch and serve, keeps to it. Exits with 14 where\n" \
    "that cannot be, and names the places.\n") \
  X(inspect, "[MODEL] [options]", "", "what is inside a model file", \
    "Reads any GGUF file, needs no backend, and says whether the model would run. With --stats " \
    "also\n" \
    "what its weights are like; in strict mode suspicious ones are exit code 8.\n") \
  X(compat_check, "MODEL [options]", "", "whether this program reads a model file", \
    "A short answer, for scripts: format, version, counts, and each reason why the model would " \
    "not run.\n" \
    "With --strict its weights are checked, too, and suspicious ones are exit code 8.\n") \
  X(analyze_library, "LIBRARY [options]", "", "what a shared object is, without running it", \
    "Counts the symbols of four groups, names formats, and shows whose backend it is, what it " \
    "needs\n" \
    "and whether it could be loaded here: of our plugins, libllama.so, libggml.so and others, also " \
    "of\n" \
    "other machines. Exits with 2 for what is no shared object, with 3 for one that cannot be " \
    "loaded.\n") \
  X(verify_receipt, "FILE [options]", "", "whether a receipt says the truth", \
    "Offline: the signature, the form, whether counters and conclusions agree, and whether plugins\n" \
    "and --model are the files that were used. Exits with 1 where a rule is broken, and names the\n" \
    "field; with 3 where it is kept and --require-... or a gate is not met; with 2 for what is no\n" \
    "receipt. --replay computes the answer again: with 13 where it cannot be compared. A file of\n" \
    "batch --receipts has a receipt on each line: all are judged, and the first bad one is named.\n") \
  X(tokenize, "[TEXT | -f FILE] [options]", "", "text to token ids", \
    "Prints the ids on one line, separated by blanks. Works on files with a vocabulary only.\n" \
    "Reads standard input when neither TEXT nor -f is given.\n") \
  X(detokenize, "[ID... | -f FILE] [options]", "", "token ids to text", \
    "The inverse of tokenize. Ids are separated by blanks or commas; they are read from " \
    "standard\n" \
    "input when neither ID nor -f is given.\n") \
  X(logits, "(-p TEXT | -f FILE | --ids \"1 2 3\") -o FILE [options]", \
    "", "logits as a NumPy array", \
    "Writes float32 logits: shape (n_vocab) for the last position, (n_tokens, n_vocab) " \
    "with --all.\n" \
    "A text gets the begin-of-sequence token if the model asks for it; ids are taken as " \
    "they are.\n") \
  X(embed, "[-p TEXT | -f FILE | --ids \"1 2 3\"] [options]", "", "texts as vectors", \
    "Prints the embedding of a text: the hidden states behind the last norm, pooled, at length 1.\n" \
    "Without a text each line of standard input is one. Texts get the tokens for begin and end " \
    "that the\n" \
    "model asks for; ids are taken as they are. JSON has a line for each text, NumPy's array a " \
    "row.\n") \
  X(batch, "IN OUT [options]", "", "a file of requests, answered offline", \
    "Reads requests in the format of OpenAI's batches, one JSON object on each line, and appends an\n" \
    "answer or an error for each to OUT, in the order in which they end. The same command goes on\n" \
    "where it was interrupted. IN may be -: standard input.\n") \
  X(serve, "[MODEL] [options]", "", "a server of OpenAI's API", \
    "Answers requests over HTTP: completions, chats with tools, embeddings, as streams or whole, many\n" \
    "at once. Sampling options are the defaults of requests. SIGTERM and Ctrl-C end it once what\n" \
    "runs is answered; a second one ends it at once. SIGHUP reads files of keys and\n" \
    "certificates again.\n") \
  X(bench, "[MODEL | compare A B | serve URL] [options]", "compare|serve", \
    "how fast the model runs here", \
    "Times prompts (pp) and greedy generation (tg) with random tokens, under " \
    "llama-bench's names,\n" \
    "beside what this machine's memory gives in the same minute. With --parallel, many requests\n" \
    "at once; with --kernel, one op alone. compare shows whether B is faster than A: two files of\n" \
    "-o json or jsonl, by the samples in them. serve sends requests to a server of OpenAI's API and\n" \
    "reports how long its clients wait.\n") \
  X(eval, "ppl | kld | choice [MODEL] [options]", "ppl|kld|choice", "how good a model is", \
    "ppl     perplexity and bits per byte of the text -f, by llama-perplexity's rule\n" \
    "kld     how far its probabilities are from a base's: --save-logits of the base, then --compare\n" \
    "choice  how many questions of the JSONL file -f it answers rightly; HellaSwag's form, or ARC's\n") \
  X(quantize, "IN OUT TYPE [options]", "", "a model with other types of weights", \
    "Reads any model and writes a GGUF file whose linear layers are of TYPE: i2_s, tl1, " \
    "tl2, tq1_0,\n" \
    "tq2_0, iq2_bn, q1_0, q2_0, pq2_0 or ptq1_0, or back to f32, f16, bf16, q8_0, q4_0, " \
    "q6_k.\n" \
    "Ternary weights keep their values exactly; floating-point ones are made ternary. OUT " \
    "appears whole\n" \
    "or not at all.\n") \
  X(convert, "DIR OUT [options]", "", "a Hugging Face checkpoint as a GGUF file", \
    "Reads config.json, tokenizer.json and the safetensors files of a folder.\n") \
  X(version, "[--json]", "", "version and build", \
    "") \
  X(completion, "bash | zsh | fish", \
    "bash|zsh|fish", "a shell's completion of commands and flags", \
    "Prints a script; packages install it. For one shell: eval \"$(bitnet completion " \
    "bash)\", or\n" \
    "bitnet completion fish | source.\n") \
  X(man, "[COMMAND | bitnet.yaml]", "COMMAND|bitnet.yaml", \
    "the manual page of the program, of a command or of the config files", \
    "Prints the page's source; packages install it. To read it: bitnet man run | man -l -\n") \
  X(help, "[COMMAND]", "COMMAND", "this text, or that of a command", \
    "")
// clang-format on
