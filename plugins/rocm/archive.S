/* The code objects, packed by pack.py, as read-only data of the plugin. */
        .section .rodata
        .balign 64
        .globl bitnet_rocm_archive
        .hidden bitnet_rocm_archive
        .type bitnet_rocm_archive, %object
bitnet_rocm_archive:
        .incbin "archive.bin"
        .globl bitnet_rocm_archive_end
        .hidden bitnet_rocm_archive_end
bitnet_rocm_archive_end:
        .size bitnet_rocm_archive, . - bitnet_rocm_archive
        .section .note.GNU-stack,"",%progbits
