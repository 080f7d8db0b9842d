"""Makes the signatures of this folder anew: `python3 make.py`, with model_signing (1.1.1 made these) and
openssl. Keys are new each time and are not kept."""

import pathlib
import subprocess
import tempfile

import model_signing

HERE = pathlib.Path(__file__).parent
CURVES = {"p256": "prime256v1", "p384": "secp384r1", "p521": "secp521r1"}


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def hashing(method, algorithm):
    config = model_signing.hashing.Config()
    if method == "shards":
        return config.use_shard_serialization(hashing_algorithm=algorithm, shard_size=4)
    return config.use_file_serialization(hashing_algorithm=algorithm)


def main(to):
    for name, curve in CURVES.items():
        openssl("ecparam", "-name", curve, "-genkey", "-noout", "-out", f"{to}/{name}.key")
        openssl("ec", "-in", f"{to}/{name}.key", "-pubout", "-out", f"{HERE}/{name}.pem")
    openssl("req", "-x509", "-key", f"{to}/p384.key", "-subj", "/CN=Authority", "-days", "3650", "-out", f"{HERE}/ca.pem")
    openssl("req", "-new", "-key", f"{to}/p256.key", "-subj", "/O=Example/CN=Signer", "-out", f"{to}/leaf.csr")
    pathlib.Path(f"{to}/leaf.cnf").write_text("keyUsage=digitalSignature\n")
    openssl("x509", "-req", "-in", f"{to}/leaf.csr", "-CA", f"{HERE}/ca.pem", "-CAkey", f"{to}/p384.key", "-days", "30",
            "-extfile", f"{to}/leaf.cnf", "-out", f"{to}/leaf.pem")
    by_key = lambda name: model_signing.signing.Config().use_elliptic_key_signer(private_key=f"{to}/{name}.key")
    folder = HERE / "model"
    by_key("p256").sign(folder, HERE / "folder.sig")
    by_key("p384").sign(folder / "model.safetensors", HERE / "file.sig")
    by_key("p521").set_hashing_config(hashing("shards", "blake2")).sign(folder, HERE / "shards.sig")
    by_key("p256").set_hashing_config(hashing("files", "blake3")).sign(folder, HERE / "blake3.sig")
    model_signing.signing.Config().use_certificate_signer(
        private_key=f"{to}/p256.key", signing_certificate=f"{to}/leaf.pem", certificate_chain=[f"{HERE}/ca.pem"]
    ).sign(folder, HERE / "certificate.sig")


with tempfile.TemporaryDirectory() as scratch:
    main(scratch)
