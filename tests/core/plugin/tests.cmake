# These tests attack the loader with hostile files and folders.
bitnet_label(attack core.plugin.dependencies core.plugin.elf_differential core.plugin.policy)
bitnet_label(unsanitized core.plugin.elf_differential)
bitnet_label(core-small core.plugin.discover core.plugin.manifest)
