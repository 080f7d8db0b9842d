"""The JSON documents of the library have the members that docs/reference/documents.md and its pages list, and no others.

documents.py PROGRAM BACKEND_FILE: PROGRAM is documents_program. A member is missing only if its row says when, and has
the type of its row; a row that no document here has is compared with the code by tests/docs/documents_test.py.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import document_tables as tables  # noqa: E402

LONGEST_S = 240
# It needs a key and a signature; tests/core/plugin has them.
NOT_MADE = {"bitnet_backend_verify"}
OF_RECEIPTS = {"bitnet_session_receipt"}


def faults_of_receipt(statement):
    """The members of a predicate are those of the schema's first level."""
    schema = json.loads((tables.REFERENCE / "receipt.schema.json").read_text(encoding="utf-8"))
    predicate = statement["predicate"]
    yield from (f"{name} is not in the schema" for name in predicate.keys() - schema["properties"].keys())
    yield from (f"{name} is missing" for name in schema["required"] if name not in predicate)


def faults_of(documents):
    index = tables.index()
    made = {function for function, _ in documents}
    yield from (f"{name} is on the page, and documents_program makes none" for name in index.keys() - made - NOT_MADE)
    yield from (f"{name} is made, and not on the page" for name in made - index.keys() - OF_RECEIPTS)
    for function, (page, anchor) in index.items():
        table, seen = tables.rows(page, anchor), set()
        for of, document in documents:
            if of == function:
                yield from (f"{function} ({page}#{anchor}): {what}"
                            for what in dict.fromkeys(tables.differences(document, table, seen)))
        print(f"{function}: {len(seen)} of {len(table)} members were seen")
    for function, document in documents:
        if function in OF_RECEIPTS:
            yield from (f"{function}: {what}" for what in faults_of_receipt(document))


def main():
    program, backend = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
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
