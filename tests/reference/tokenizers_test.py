#!/usr/bin/env python3
"""Every pre-tokenizer, and WordPiece, against Hugging Face's tokenizers.

    tokenizers_test.py --bitnet PATH [--only NAME] [-v]

Each rule is written a second time here, in the components of that library, as the models publish it.
Two vocabularies are trained for each: one on words cut by the rule, as such models are made, and one
on uncut text. The merges of the second one cross every border, so a cut that is missing, or one too
many, shows in the ids. Texts are listed below, or mixed at random from the same pieces (fixed seed).
Exit code 77 if the library is not installed.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata
import unittest

try:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    import gguf_file
except ImportError as missing:
    print(f"skip: {missing}; scripts/setup --for test installs it")
    sys.exit(77)

NORMAL, UNKNOWN, CONTROL = 1, 2, 3
SEPARATOR = "<|next text|>"  # texts are asked for all at once
BITNET = "bitnet"

# ---- the rules, as published

SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (f"{UPPER}*{LOWER}+{SUFFIX}?|{UPPER}+{LOWER}*{SUFFIX}?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL)
KIMI = (r"[\p{Han}]+|" + O200K.replace(r"[\r\n/]*", r"[\r\n]*")
        .replace(r"\p{Lo}\p{M}]", r"\p{Lo}\p{M}&&[^\p{Han}]]"))
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
             r"| ?[\p{P}\p{S}]+[\r\n]*" + TAIL)
HAN = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
DEEPSEEK_HAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DEEPSEEK_SIGNS = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
DEEPSEEK_LETTERS = (
    "\\s?["
    "\u0041-\u005A\u0061-\u007A\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF"
    "\u01C4-\u0293\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386"
    "\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556"
    "\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B"
    "\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D"
    "\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE"
    "\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4"
    "\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128"
    "\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184"
    "\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B"
    "\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17"
    "\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3"
    "\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF"
    "\U0001E900-\U0001E943"
    "]+")
YOUTU = ("[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
         "\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+")
AFMOE = ("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf"
         "\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"
         "\u1100-\u11ff]+")
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"


def split(regex, behavior="isolated"):
    return pre_tokenizers.Split(Regex(regex), behavior)


def digits(individual):
    return pre_tokenizers.Digits(individual_digits=individual)


def punctuation(behavior):
    return pre_tokenizers.Punctuation(behavior)


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
JAIS = "".join(rf"|\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"|\s{1,2}(?!\S)|\s{1}"

# tokenizer.ggml.pre: its parts. A part that is a text is a Split of its own.
RULES = {
    "llama-bpe": [CL100K, BYTES],
    "dbrx": [CL100K, BYTES],
    "jais-2": [CL100K.replace(r"|\s+(?!\S)|\s+", JAIS), BYTES],
    "qwen2": [QWEN2, BYTES],
    "qwen35": [QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+")
               .replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]"), BYTES],
    "ufakzeka": [QWEN2.replace(SUFFIX + "|", ""), BYTES],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
                   r"|\s*[\r\n]|\s+(?!\S)|\s+", BYTES],
    "seed-coder": [SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+" + TAIL, BYTES],
    "exaone-moe": [SUFFIX + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
                   r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+", BYTES],
    "minicpm5": [r"\p{N}{1,3}", CL100K.replace("{1,3}", "+"), BYTES],
    "laguna": [split(r"(?:\r?\n)+(?!\r?\n)", "merged_with_next"), QWEN2, BYTES],
    "gpt-4o": [O200K, BYTES],
    "granite-embed-multi-97m": [O200K, BYTES],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", O200K, BYTES],
    "youtu": [YOUTU, O200K.replace("{1,3}", ""), BYTES],
    "tekken": [O200K.replace("{1,3}", "").replace(SUFFIX + "?", ""), BYTES],
    "kimi-k2": [KIMI, BYTES],
    "gpt-2": [GPT2],
    "starcoder": [digits(True), GPT2],
    "bloom": [BLOOM, BYTES],
    "viking": [BLOOM, digits(True), BYTES],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))", BYTES],
    "deepseek-llm": [r"[\r\n]", DEEPSEEK_LETTERS, DEEPSEEK_SIGNS, r"\s+$", DEEPSEEK_HAN, digits(True),
                     BYTES],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_HAN, digits(True), BYTES],
    "deepseek-v3": [r"\p{N}{1,3}", HAN, DEEPSEEK3, BYTES],
    "spark2_5": [r"\p{N}{1,3}", HAN, DEEPSEEK3.replace(r"]+[\r\n]*|\s*[\r\n]+", r"]+|[\r\n]"),
                 digits(True), BYTES],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", AFMOE, DEEPSEEK3, BYTES],
    "chameleon": [r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )",
                  digits(True), punctuation("isolated"), GPT2],
    "falcon": [punctuation("contiguous"), GPT2, digits(False), r"[0-9][0-9][0-9]"],
    # The rule of readers for files that name none; no model publishes it.
    "default": [r"[\p{P}\$\+<=>\^~\|]+",
                r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
                r"\p{N}+", r"[0-9][0-9][0-9]", BYTES],
}
# Falcon's third step sees the letters that stand for bytes, and cuts within characters. No merge of a
# vocabulary made that way joins them again, so only such a vocabulary can be compared.
ONLY_OWN_VOCABULARY = {"falcon"}
TAKES_WHOLE_WORDS = {"llama-bpe", "minicpm5", "granite-embed-multi-97m", "youtu", "tekken"}


def pre_tokenizer(name):
    return pre_tokenizers.Sequence([split(p) if isinstance(p, str) else p for p in RULES[name]])


# ---- texts

PIECES = (
    # words: capital, small and mixed; with marks; of scripts with and without case
    "hello World HELLO iPhone McDonald's camelCaseWord straße ÉCOLE é e\u0301 E\u0301 a\u0323\u0307b "
    "\u01c5ungla ʰx xʰ ªº ſharp naïve Việt нещо на Български МОСКВА Ωμέγα ᾳ \u1f7d \u1fdb \u1fd3 \u2126 "
    "שָׁלוֹם العَرَبِيَّة हिन्दी বাংলা தமிழ் ไทยนี้ ลาว ລາວ កាន់តែពិសេស မြန်မာ ქართული "
    "日本語 ひらがな カタカナ ｶﾀｶﾅ 中文字 𠀀𠮷 々〇 한국어 ㄱㄴ 가 \u1100 ㄅㄆ \u2f00\u2f06 \uf900 \uaa60 "
    "\ua9e0 𐐀𐐨 Ⓐⓑ ⅣⅫ ǈ "
    # numbers of every kind
    "0 7 12 345 6789 12345 123456 1234567 000 3.14 1,234,567 1234567² x2 2x 12²345 12345abc ½ ³ ٣٤٥ ٣٤٥٦ "
    "२०२६ ⅠⅡ 12Ⅻ ①② 1_000 007 12345\u0301 "
    # contractions
    "I'm we'll I'VE can't CAN'T y'all he'd 'Tis 'ſ 'ſharp l'été ’s n't 'RE 'lL 're''ve "
    # signs and symbols
    "! ? ... !!! ?! , ;: () [] {} <> \\ / // /* */ # @user $5 €10 £ + += == => -> <= ~ ^ ` ``` | || & % "
    "\" \u201cquoted\u201d «x» — – … ‘a’ 。 、 ， ！ ？ ： ； （） ～ \uff3f । ۔ ، 《》 ︰ ﹏ ・ ° © ™ № ∑ ≠ ¬ "
    "¯ ´ ¨ _under_score __init__ a.b a-b a/b/c http://x.org/?q=1&r=2 <sentinel:12> <sentinel:> "
    "IMGIMGABCDZ IMGIMGABCDEZ "
    # emoji, alone and joined; what is not seen
    "😀 🦙 👩\u200d🚀 🏳\ufe0f\u200d🌈 ❤\ufe0f 🇩🇪 👍🏽 ✅ \u200b \u00ad \ufeff \u0301 \u180e"
).split(" ")
BLANKS = ["", "", "", " ", " ", " ", "  ", "   ", "    ", "     ", " " * 9, " " * 33, " " * 700, "\t",
          "\t\t", " \t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\r", " \n", "\n ", " \n \n  ", "\n\t",
          "\r\n  \r\n", "\x0b", "\x0c", "\u00a0", " \u00a0", "\u2003", "\u3000", "\u3000\u3000", "\u2028",
          "\u1680", "\u0085", "\u202f"]
LISTED = ["", " ", "\n", "   ", "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n",
          "Hello, y'all! How are you 😁 ?我想在apple工作1314151天～", "ied 4 ½ months",
          "    Hello\n    Hello",
          "def f(x):\n\treturn x**2 + 10_000  # done\n\n\nclass A:\r\n    pass\r\n\r\n", "' era",
          "''''''```````\"\"\"\"......!!!!!!??????", "w048 7tuijk dsdfhu", "3" * 17, "trailing   ",
          "\n=", " discards"]


def mixture(generator):
    out = []
    for _ in range(generator.randint(1, 14)):
        listed = generator.random() < 0.85
        out.append(generator.choice(PIECES) if listed else any_character(generator))
        out.append(generator.choice(BLANKS))
    return "".join(out)


def any_character(generator):
    """Of those that Python's Unicode knows, which is as old as the oldest of the three."""
    while True:
        c = chr(generator.randrange(0x20, 0x20000))
        if unicodedata.category(c) not in ("Cn", "Cs", "Co"):
            return c


def texts(count=160, seed=11):
    generator = random.Random(seed)
    return LISTED + PIECES + [mixture(generator) for _ in range(count)]


# ---- both sides


class Both:
    """One vocabulary, in memory for the library and in a file for the program."""

    def __init__(self, folder, library, metadata):
        self.library, self.file = library, pathlib.Path(folder) / "vocabulary.gguf"
        self.separator = str(len(metadata["tokenizer.ggml.tokens"]))
        metadata["tokenizer.ggml.tokens"].append(SEPARATOR)
        metadata["tokenizer.ggml.token_type"].append(CONTROL)
        gguf_file.write(self.file, {"general.architecture": "llama", **metadata}, [])

    def run(self, verb, *words, stdin):
        done = subprocess.run([BITNET, verb, "-m", str(self.file), *words], input=stdin,
                              capture_output=True, timeout=300)
        if done.returncode != 0:
            raise AssertionError(f"bitnet {verb}: exit {done.returncode}: {done.stderr.decode()}")
        self.complaints = done.stderr.decode()
        return done.stdout

    def ours(self, asked):
        joined = SEPARATOR.join(asked).encode()
        ids, out = self.run("tokenize", "--parse-special", stdin=joined).decode().split(), [[]]
        for word in ids:
            if word == self.separator:
                out.append([])
            else:
                out[-1].append(int(word))
        return out

    def theirs(self, asked):
        return [e.ids for e in self.library.encode_batch(asked, add_special_tokens=False)]

    def text_of(self, ids):
        return self.run("detokenize", stdin=" ".join(map(str, ids)).encode()).decode()


def trained(cut, size, on, whole_words=False):
    library = Tokenizer(models.BPE(ignore_merges=whole_words))
    library.pre_tokenizer = cut
    library.train_from_iterator(on, trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return library


def metadata_of(library, pre):
    model = json.loads(library.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre,
            "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [NORMAL] * len(tokens),
            "tokenizer.ggml.merges": [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]}


class Case(unittest.TestCase):
    maxDiff = 1500

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="bitnet-tokenizers-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compare(self, both, asked):
        ours, theirs = both.ours(asked), both.theirs(asked)
        self.assertEqual(len(ours), len(asked))
        wrong = [i for i in range(len(asked)) if ours[i] != theirs[i]]
        if wrong:
            def shown(ids):
                return [both.library.id_to_token(i) for i in ids]
            i = min(wrong, key=lambda i: len(asked[i]))
            self.fail(f"{len(wrong)} of {len(asked)} texts differ, for one {asked[i]!a}:\n"
                      f"bitnet  {shown(ours[i])}\nlibrary {shown(theirs[i])}")
        return ours


class Splitting(Case):
    """One test for each rule; made below."""

    def compare_and_return(self, library, name):
        asked = texts()
        both = Both(self.folder, library, metadata_of(library, name))
        ids = self.compare(both, asked)
        self.assertEqual(both.text_of(sum(ids, [])), "".join(asked))

    def check(self, name):
        cut, whole = pre_tokenizer(name), name in TAKES_WHOLE_WORDS
        self.compare_and_return(trained(cut, 1000, texts(seed=12), whole), name)
        if name in ONLY_OWN_VOCABULARY:
            return
        crossing = trained(BYTES, 2500, texts(count=600, seed=12), whole)
        crossing.pre_tokenizer = cut
        self.compare_and_return(crossing, name)


for rule in RULES:
    setattr(Splitting, "test_" + rule.replace("-", "_"), lambda self, rule=rule: self.check(rule))


class Names(Case):
    def test_each_name_of_the_page_is_the_rule_of_its_row(self):
        page = (pathlib.Path(__file__).parents[2] / "docs/reference/tokenizers.md").read_text()
        table = page.split("| `tokenizer.ggml.pre` |")[1].split("\n\n")[0].splitlines()[2:]
        rows = [line.split(" | ")[0].strip("| ").replace("`", "").split() for line in table]
        self.assertEqual({name for row in rows for name in row if name in RULES}, set(RULES))
        asked = LISTED + PIECES
        crossing = metadata_of(trained(BYTES, 2500, texts(count=600, seed=12)), "")
        for row in rows:
            want = None
            for name in row:
                with self.subTest(name):
                    values = {key: list(v) if isinstance(v, list) else v for key, v in crossing.items()}
                    both = Both(self.folder, None, {**values, "tokenizer.ggml.pre": name})
                    got = both.ours(asked)
                    want = want or got
                    self.assertEqual(got, want)
                    self.assertEqual(both.complaints, "")


class Composing(Case):
    def test_texts_are_composed_as_by_nfc(self):
        library = trained(pre_tokenizer("qwen2"), 1000, texts(seed=12))
        library.normalizer = normalizers.NFC()
        both = Both(self.folder, library,
                    {**metadata_of(library, "qwen2"), "tokenizer.ggml.normalizer.nfc": True})
        asked = texts() + ["a\u0323\u0307", "\u1100\u1161\u11a8", "\u212b", "\u0958", "q\u0307\u0323"]
        ids = self.compare(both, asked)
        self.assertEqual(both.text_of(sum(ids, [])),
                         "".join(unicodedata.normalize("NFC", text) for text in asked))


class WordPiece(Case):
    NAMED = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

    def both(self, keys, **options):
        library = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        library.normalizer = normalizers.BertNormalizer(**options)
        library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        library.train_from_iterator(self.texts(12), trainers.WordPieceTrainer(
            vocab_size=900, special_tokens=self.NAMED, show_progress=False, limit_alphabet=300))
        library.decoder = decoders.WordPiece(cleanup=False)
        model = json.loads(library.to_str())["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].get)
        spelled = [t if t in self.NAMED else t[2:] if t.startswith("##") else "\u2581" + t
                   for t in tokens]
        types = [UNKNOWN if t == "[UNK]" else CONTROL if t in self.NAMED else NORMAL for t in tokens]
        return Both(self.folder, library, {
            "tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": spelled,
            "tokenizer.ggml.token_type": types, **keys})

    @staticmethod
    def texts(seed):
        """Not of any character: the library's categories here are older than Unicode 9."""
        generator = random.Random(seed)
        mixed = ["".join(generator.choice(PIECES) + generator.choice(BLANKS)
                         for _ in range(generator.randint(1, 14))) for _ in range(200)]
        known = [chr(c) for c in range(1, 0x530) if unicodedata.category(chr(c)) != "Cn"]
        return LISTED + PIECES + mixed + ["".join(generator.choices(known, k=9)) for _ in range(200)]

    def check(self, keys, **options):
        both = self.both(keys, **options)
        asked = self.texts(11) + [
            "\u0130stanbul \u0130I\u0131", "a" * 100, "a" * 101, "x\x00y\ufffdz", "a\u2581b \u2581b",
            "\U0002b820a\U0002b920b", "unknown\u2603word", "don't stop", "tab\tand\x0bothers\x0c\u0085"]
        ids = self.compare(both, asked)
        unknown = both.library.token_to_id("[UNK]")
        known = [i for i in ids if unknown not in i]
        self.assertGreater(len(known), len(asked) // 3)
        for one in known[::40]:
            self.assertEqual(both.text_of(one), both.library.decode(one))

    def test_an_uncased_vocabulary_lowers_letters(self):
        self.check({}, lowercase=True)

    def test_a_cased_vocabulary_keeps_capitals(self):
        self.check({"tokenizer.ggml.normalizer.lowercase": False}, lowercase=False)

    def test_small_letters_with_accents(self):
        self.check({"tokenizer.ggml.normalizer.strip_accents": False},
                   lowercase=True, strip_accents=False)

    def test_named_tokens_are_read_and_written_where_asked(self):
        both = self.both({}, lowercase=True)
        ids = [both.library.token_to_id(t) for t in ("[CLS]", "h", "[SEP]")]

        def tokenized(*words, stdin):
            return [int(i) for i in both.run("tokenize", *words, stdin=stdin).decode().split()]
        self.assertEqual(tokenized("--parse-special", stdin=b"[CLS] h [SEP]"), ids)
        self.assertEqual(tokenized("--add-bos", stdin=b"h"), ids[:2])
        line = " ".join(map(str, ids)).encode()
        self.assertEqual(both.run("detokenize", "--special", stdin=line), b"[CLS] h [SEP]")
        self.assertEqual(both.text_of(ids), "h")


def main(about=__doc__):
    global BITNET
    options = argparse.ArgumentParser(description=about,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bitnet", required=True)
    options.add_argument("--only")
    options.add_argument("-v", action="store_true")
    given = options.parse_args()
    BITNET = given.bitnet
    unittest.main(argv=[sys.argv[0], *(["-k", given.only] if given.only else []),
                        *(["-v"] if given.v else [])])


if __name__ == "__main__":
    main()
