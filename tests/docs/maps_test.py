"""A folder of more than ten files has a map: a README of at most 20 lines, or the page that MAPPED names."""

import collections
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_FILES, MOST_LINES = 10, 20
MAPPED = {  # and where; names in these folders are others' convention, or the folder is installed as it is
    "abi/include/bitnet/abi": "docs/reference/abi.md",
    "packaging/debian": "packaging/README.md",
    "python/src/bitnet": "python/README.md",
    "python/tests": "python/README.md",
}
LONGER = {  # READMEs that are pages of their own
    ".": "the README of the project",
    "models": "the recipe of the models",
    "packaging/backend": "how one of these packages is made",
}


def files_of_folders():
    """{folder: its files}, of what git tracks, but pages of docs, which docs/README.md lists, and corpora."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise unittest.SkipTest("the tree is no clone")
    folders = collections.defaultdict(list)
    for name in listed.stdout.split("\0"):
        file = pathlib.PurePath(name)
        if name and file.parts[0] != "docs" and "corpus" not in file.parts and (ROOT / name).is_file():
            folders[str(file.parent)].append(file.name)
    return folders


class Maps(unittest.TestCase):
    def test_large_folders_have_one(self):
        folders = files_of_folders()
        large = {folder for folder, files in folders.items() if len(files) > MOST_FILES}
        self.assertGreater(len(large), 20, "the folders were not found")
        for folder in sorted(large - set(MAPPED)):
            with self.subTest(folder):
                self.assertIn("README.md", folders[folder], "write one: what is in the folder, and what is not")
        for folder, page in MAPPED.items():
            with self.subTest(folder):
                self.assertIn(folder, large, "take it out of MAPPED")
                self.assertTrue((ROOT / page).is_file())

    def test_they_are_short(self):
        for folder, files in files_of_folders().items():
            if "README.md" not in files or folder in LONGER or folder in MAPPED:
                continue
            lines = (ROOT / folder / "README.md").read_text(encoding="utf-8").splitlines()
            if len(files) > MOST_FILES:
                with self.subTest(folder):
                    self.assertLessEqual(len(lines), MOST_LINES)

    def test_that_of_tests_names_each_folder(self):
        folders = {pathlib.PurePath(folder).parts[1] for folder in files_of_folders() if folder.startswith("tests/")}
        table = re.findall(r"^\| (`.*?) \|", (ROOT / "tests/README.md").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertEqual(sorted(folders), sorted(re.findall(r"`([\w-]+)/`", " ".join(table))))


if __name__ == "__main__":
    unittest.main(verbosity=2)
