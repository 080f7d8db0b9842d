"""`--model-key`, `--model-ca` and `--model-signature`: models that are signed by OpenSSF Model Signing.

Signatures are made here by hashlib and by `openssl`, as the format's specification says; those that OpenSSF's own tool
made are in tests/core/signature/golden.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import unittest

import support
import tiny_checkpoint

TYPE = "application/vnd.in-toto+json"
HASHES = {"prime256v1": "-sha256", "secp384r1": "-sha384", "secp521r1": "-sha512"}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def statement_of(files, name="model"):
    """Of {name: bytes}."""
    resources = [{"name": key, "digest": sha256(content), "algorithm": "sha256"} for key, content in sorted(files.items())]
    whole = b"".join(bytes.fromhex(one["digest"]) for one in resources)
    return {"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": name, "digest": {"sha256": sha256(whole)}}],
            "predicateType": "https://model_signing/signature/v1.0",
            "predicate": {"serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": False,
                                            "ignore_paths": [".git", "model.sig"]}, "resources": resources}}


@unittest.skipUnless(shutil.which("openssl"), "there is no openssl")
class Signed(tiny_checkpoint.Case):
    def setUp(self):
        super().setUp()
        self.private, self.public = self.new_key("signer")
        self.key = ("--model-key", self.public)

    def openssl(self, *words, stdin=b""):
        return subprocess.run(["openssl", *words], input=stdin, check=True, capture_output=True, cwd=self.home).stdout

    def new_key(self, name, curve="prime256v1"):
        self.openssl("ecparam", "-name", curve, "-genkey", "-noout", "-out", f"{name}.key")
        self.openssl("ec", "-in", f"{name}.key", "-pubout", "-out", f"{name}.pem")
        return self.path(f"{name}.key"), self.path(f"{name}.pem")

    def bundle_of(self, statement, private=None, curve="prime256v1", hint=None):
        payload = json.dumps(statement).encode()
        message = f"DSSEv1 {len(TYPE)} {TYPE} {len(payload)} ".encode() + payload
        made = self.openssl("dgst", HASHES[curve], "-sign", private or self.private, stdin=message)
        return {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
                "verificationMaterial": {"publicKey": {"hint": hint or sha256(read(self.public))}, "tlogEntries": []},
                "dsseEnvelope": {"payloadType": TYPE, "payload": base64.b64encode(payload).decode(),
                                 "signatures": [{"sig": base64.b64encode(made).decode(), "keyid": ""}]}}

    def sign_file(self, model, name=None, **more):
        """Writes FILE.sig, or another name."""
        return self.path(name or model + ".sig", json.dumps(self.bundle_of(statement_of({".": read(model)}), **more)))

    def sign_folder(self):
        files = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                files[os.path.relpath(path, self.folder)] = read(path)
        files.pop("model.sig", None)
        return self.path("checkpoint/model.sig", json.dumps(self.bundle_of(statement_of(files))))

    def copy_of_demo(self):
        shutil.copyfile(support.demo_model(), self.path("m.gguf"))
        return self.path("m.gguf")


@support.needs_model
class Files(Signed):
    def setUp(self):
        super().setUp()
        self.model = self.copy_of_demo()

    def read_by(self, *words, **more):
        return self.ok("tokenize", "-m", self.model, "abc", *words, **more)

    def test_each_curve_is_verified(self):
        for curve in HASHES:
            private, public = self.new_key(curve, curve)
            self.sign_file(self.model, private=private, curve=curve, hint=sha256(read(public)))
            self.read_by("--model-key", public)

    def test_a_signature_is_found_beside_the_model_or_by_option(self):
        for name in ("m.gguf.sig", "model.sig"):
            self.sign_file(self.model, name)
            self.read_by(*self.key)
            os.rename(self.path(name), self.path("other.sig"))
            self.read_by(*self.key, "--model-signature", "other.sig")
        self.rejected(22, "expected a signature, found neither", "tokenize", "-m", self.model, "abc", *self.key)

    def test_variables_and_config_ask_for_it_too(self):
        words = ("tokenize", "-m", self.model, "a")
        self.rejected(22, "expected a signature", *words, "--config", self.path("c.yaml", f"model-key: {self.public}\n"))
        asked = {"BITNET_MODEL_KEY": self.public}
        if os.geteuid() != 0:
            self.rejected(22, "expected a signature", *words, env=asked)
            return
        # Root ignores a user's key; the run fails instead of loading the model without verification.
        self.rejected(2, "'model-key' of BITNET_MODEL_KEY is ignored, as root does not let", *words, env=asked)
        self.rejected(22, "expected a signature", *words, *self.key, env=asked)

    def test_every_command_that_reads_a_model_asks(self):
        self.path("text", "a\n")
        for words in (("inspect", self.model), ("compat-check", self.model), ("tokenize", "-m", self.model, "a"),
                      ("detokenize", "-m", self.model, "1"), ("quantize", self.model, "out.gguf", "i2_s"),
                      ("convert", self.model, "out.gguf"), ("run", "-m", self.model, "-p", "a"),
                      ("chat", "-m", self.model, "-p", "a"), ("logits", "-m", self.model, "-p", "a", "-o", "l.npy"),
                      ("embed", "-m", self.model, "-p", "a"), ("bench", "-m", self.model),
                      ("eval", "ppl", "-m", self.model, "-f", "text"), ("serve", "-m", self.model, "--port", "0")):
            done = self.bitnet(*words, *self.key)
            self.assertEqual(done.code, 22, (words, done))
            self.assertIn("expected a signature", done.stderr, words)

    def test_a_changed_file_is_rejected_before_it_is_read(self):
        self.sign_file(self.model)
        content = bytearray(read(self.model))
        content[-1] ^= 1
        self.path("m.gguf", bytes(content))
        self.rejected(22, "predicate.resources[0].digest: expected ", "inspect", self.model, *self.key)
        self.path("m.gguf", b"no model at all")
        self.rejected(22, "predicate.resources[0].digest: expected ", "inspect", self.model, *self.key)

    def test_an_untrusted_key_is_rejected(self):
        _, other = self.new_key("other")
        self.sign_file(self.model)
        self.rejected(22, "verificationMaterial.publicKey.hint: ", "inspect", self.model, "--model-key", other)
        bundle = self.bundle_of(statement_of({".": read(self.model)}), hint=sha256(read(other)))
        self.path("m.gguf.sig", json.dumps(bundle))
        self.rejected(22, "dsseEnvelope.signatures[0].sig: ", "inspect", self.model, "--model-key", other)

    def test_a_statement_that_was_forged_and_signed_is_rejected_by_its_field(self):
        for pointer, to, field in (("subject", [], "subject: "), ("predicateType", "x", "predicateType: "), ("_type", "x", "_type: ")):
            statement = statement_of({".": read(self.model)})
            statement[pointer] = to
            self.path("m.gguf.sig", json.dumps(self.bundle_of(statement)))
            self.rejected(22, field, "inspect", self.model, *self.key)

    def test_contradictory_options_are_rejected(self):
        self.sign_file(self.model)
        self.rejected(2, "give --model-key or --model-ca too", "inspect", self.model, "--model-signature", "m.gguf.sig")
        self.rejected(2, "give one of the two", "inspect", self.model, *self.key, "--model-ca", self.public)
        self.rejected(2, "--model-key: ", "inspect", self.model, "--model-key", "nowhere.pem")
        self.rejected(2, "expected a public ECDSA key", "inspect", self.model, "--model-key", self.private)
        self.openssl("genpkey", "-algorithm", "ed25519", "-out", "ed.key")
        self.openssl("pkey", "-in", "ed.key", "-pubout", "-out", "ed.pem")
        self.rejected(2, "another kind of key", "inspect", self.model, "--model-key", "ed.pem")

    def test_certificates_need_their_purpose_and_chain(self):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes", "-keyout", "ca.key",
                     "-subj", "/CN=Authority", "-days", "30", "-out", "ca.pem")
        self.openssl("req", "-new", "-key", self.private, "-subj", "/CN=Signer", "-out", "leaf.csr")
        for usage, code in (("digitalSignature", 0), ("keyAgreement", 22)):
            self.path("leaf.cnf", f"keyUsage={usage}\n")
            self.openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
                         "-extfile", "leaf.cnf", "-out", "leaf.pem")
            bundle = self.bundle_of(statement_of({".": read(self.model)}))
            der = lambda name: {"rawBytes": base64.b64encode(self.openssl("x509", "-in", name, "-outform", "DER")).decode()}
            bundle["verificationMaterial"] = {"x509CertificateChain": {"certificates": [der("leaf.pem"), der("ca.pem")]}}
            self.path("m.gguf.sig", json.dumps(bundle))
            done = self.bitnet("inspect", self.model, "--model-ca", "ca.pem")
            self.assertEqual(done.code, code, done)
        self.assertIn("digitalSignature or codeSigning", done.stderr)
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "b.key",
                     "-subj", "/CN=Authority", "-days", "30", "-out", "b.pem")
        self.rejected(22, "certificates: expected a chain to a certificate of --model-ca", "inspect", self.model, "--model-ca", "b.pem")

    @support.needs_backend
    def test_a_receipt_names_the_signer(self):
        self.sign_file(self.model)
        self.ok("run", "-q", "-m", self.model, "-p", "a", "-n", "2", "--receipt", "r.json", "--receipt-key", "none", *self.key)
        signature = json.loads(base64.b64decode(json.loads(read(self.path("r.json")))["payload"]))["predicate"]["model"]["signature"]
        self.assertEqual(signature, {"key": sha256(read(self.public)), "digest": sha256(hashlib.sha256(read(self.model)).digest())})
        self.ok("verify-receipt", "r.json", "--allow-unsigned", "--model", self.model)

    @support.needs_backend
    def test_a_draft_needs_a_signature_of_its_own(self):
        shutil.copyfile(self.model, self.path("d.gguf"))
        self.sign_file(self.model)
        run = ("run", "-q", "-m", self.model, "-md", "d.gguf", "--spec-type", "draft", "-p", "a", "-n", "2", *self.key)
        self.rejected(22, "expected a signature, found neither", *run)
        self.sign_file(self.path("d.gguf"))
        self.ok(*run)


class Folders(Signed):
    def setUp(self):
        super().setUp()
        self.save()

    def test_all_files_of_a_folder_are_verified(self):
        self.sign_folder()
        self.ok("inspect", self.folder, *self.key)
        self.write("README.md", "not loaded")
        self.ok("inspect", self.folder, *self.key)
        self.write("generation_config.json", {})
        self.rejected(22, "predicate.resources: 'generation_config.json' is a part of the model and is not in it",
                     "inspect", self.folder, *self.key)

    def test_a_missing_file_is_rejected(self):
        self.write("notes.txt", "signed")
        self.sign_folder()
        os.remove(self.path("checkpoint/notes.txt"))
        self.rejected(22, "are not in ", "inspect", self.folder, *self.key)

    def test_a_changed_small_file_is_rejected(self):
        self.sign_folder()
        self.config["rope_theta"] = 20000.0
        self.write("config.json", self.config)
        self.rejected(22, "].digest: expected ", "inspect", self.folder, *self.key)


if __name__ == "__main__":
    support.main()
