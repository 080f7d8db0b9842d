"""--watch while folders and links on the way are replaced, and while files keep changing."""

import os
import shutil
import threading

import reloading
import support


@support.needs_backend
class Watch(reloading.Case):
    def watching(self):
        chat = self.chat("--watch", "--reload-policy", "recompute")
        self.send(chat, "Hello")
        self.send(chat, "/backend")
        self.await_words("cpu generation 1 active")  # the watch is on before it reads
        return chat

    def leave(self, chat):
        self.send(chat, "Who are you?")
        chat.communicate(b"/bye\n", timeout=reloading.PATIENCE_S)
        self.assertEqual(chat.returncode, 0)

    def test_a_backend_in_a_replaced_folder_is_reloaded(self):
        chat = self.watching()
        # A new folder with the same file, and once again: the copy in it is renamed over later.
        for serial in (21, 22):
            folder = os.path.dirname(self.library)
            shutil.copytree(folder, folder + ".new")
            os.rename(folder, folder + f".{serial}")
            os.rename(folder + ".new", folder)
            self.install(reloading.rebuilt(self.plugin, serial))
            self.await_words(f"build id {serial:02x}000000")
        self.leave(chat)

    def test_a_backend_in_a_recreated_folder_is_reloaded(self):
        chat = self.watching()
        folder = os.path.dirname(self.library)
        shutil.rmtree(folder)
        self.await_words("nothing changed")
        self.install(reloading.rebuilt(self.plugin, 23))
        self.await_words("build id 17000000")
        self.leave(chat)

    def test_a_backend_behind_a_changed_link_is_reloaded(self):
        for version in ("v1", "v2", "v3"):
            self.path(f"versions/{version}/lib/plugin.so", self.plugin)
        link = self.path("current")
        os.symlink("versions/v1", link)
        self.library = self.path("current/lib/plugin.so")
        for version in ("v1", "v2", "v3"):
            os.chmod(self.path(f"versions/{version}/lib/plugin.so"), 0o755)
        with open(self.manifest, encoding="utf-8") as file:
            text = file.read()
        with open(self.manifest, "w", encoding="utf-8") as file:
            file.write("".join(f"library: {self.library}\n" if line.startswith("library:") else line
                               for line in text.splitlines(keepends=True)))
        chat = self.watching()
        self.path("versions/v2/lib/plugin.so", reloading.rebuilt(self.plugin, 24))
        os.symlink("versions/v2", link + ".new")
        os.rename(link + ".new", link)
        self.await_words("build id 18000000")
        self.path("versions/v3/lib/plugin.so", reloading.rebuilt(self.plugin, 25))
        os.symlink("versions/v3", link + ".new")
        os.rename(link + ".new", link)
        self.await_words("build id 19000000")
        self.leave(chat)

    def test_a_busy_neighbour_file_does_not_delay_the_reload(self):
        chat = self.watching()
        rest = threading.Event()

        def write():
            while not rest.wait(0.2):
                self.path("lib/log", b"one more line")

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        self.addCleanup(rest.set)
        self.install(reloading.rebuilt(self.plugin, 26))
        self.await_words("build id 1a000000")
        self.leave(chat)

    def test_a_file_that_keeps_changing_is_reloaded(self):
        chat = self.watching()
        rest = threading.Event()

        def write():
            while not rest.wait(0.5):
                self.install(reloading.rebuilt(self.plugin, 27))

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        self.addCleanup(rest.set)
        self.await_words("build id 1b000000")
        self.leave(chat)


if __name__ == "__main__":
    support.main()
