"""The JSON documents of the library have the members that docs/reference/documents.md and its pages list, and no others.

documents.py PROGRAM BACKEND_FILE: PROGRAM is documents_program. A member is missing only if its row says when, and has
the type of its row; a row that no document here has is compared with the code by tests/docs/documents_test.py.
"""

import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import document_tables as tables  # noqa: E402

LONGEST_S = 240
# The first key pair of RFC 8032, section 7.1, in PKCS #8 and as SubjectPublicKeyInfo (RFC 8410).
SECRET = "302e020100300506032b657004220420" "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC = "302a300506032b6570032100" "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
OF_RECEIPTS = {"bitnet_session_receipt"}
# Documents that the library takes: it accepts one with every member, and one with those that may not be left out.
TAKEN = {"bitnet_chat_open": ("chat-json.md", "messages")}


def write_pem(file, kind, of):
    text = base64.b64encode(bytes.fromhex(of)).decode()
    file.write_text(f"-----BEGIN {kind} KEY-----\n{text}\n-----END {kind} KEY-----\n", encoding="ascii")
    file.chmod(0o600)


def prepare(folder, backend):
    """A copy of the plugin, a key that signs it, and a folder with the public key."""
    shutil.copy(backend, folder / "plugin.so")
    (folder / "trusted.d").mkdir()
    write_pem(folder / "secret.pem", "PRIVATE", SECRET)
    write_pem(folder / "trusted.d/test.pem", "PUBLIC", PUBLIC)


def faults_of_receipt(statement):
    """The members of a predicate are those of the schema's first level."""
    schema = json.loads((tables.REFERENCE / "receipt.schema.json").read_text(encoding="utf-8"))
    predicate = statement["predicate"]
    yield from (f"{name} is not in the schema" for name in predicate.keys() - schema["properties"].keys())
    yield from (f"{name} is missing" for name in schema["required"] if name not in predicate)


def faults_of(documents):
    index = tables.index() | TAKEN
    made = {function for function, _ in documents}
    yield from (f"{name} is on the page, and documents_program makes none" for name in index.keys() - made)
    yield from (f"{name} is made, and not on the page" for name in made - index.keys() - OF_RECEIPTS)
    for function, (page, anchor) in index.items():
        table, seen = tables.rows(page, anchor), set()
        for of, document in documents:
            if of == function:
                yield from (f"{function} ({page}#{anchor}): {what}"
                            for what in dict.fromkeys(tables.differences(document, table, seen)))
        print(f"{function}: {len(seen)} of {len(table)} members were seen")
        if function in TAKEN:
            yield from (f"{function}: {name} is in no document that it accepted" for name in table.keys() - seen)
    for function, document in documents:
        if function in OF_RECEIPTS:
            yield from (f"{function}: {what}" for what in faults_of_receipt(document))


def main():
    program, backend = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        prepare(pathlib.Path(folder), backend)
        done = subprocess.run([program, backend, folder], capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if done.returncode != 0:
        print(f"{program} ended with {done.returncode}: {done.stderr}")
        return 1
    documents = [(function, json.loads(text)) for function, text in
                 (line.split("\t", 1) for line in done.stdout.splitlines())]
    faults = list(faults_of(documents))
    print("\n".join(faults) or f"{len(documents)} documents are as the pages say")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
