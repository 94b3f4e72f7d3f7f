/* Debug information built by hand, with the numbers of elf/dwarf.h. In one unit, a function begins
 * at the same address as the function around it. Another unit is split off into a package, whose
 * sections are here too: the package is a link to the program. */

#define SPLIT_ID "0x1122334455667788"

__asm__(".pushsection .text.made, \"ax\", %progbits\n"
        ".globl nested, packaged\n"
        ".type nested, %function\n"
        ".size nested, 8\n"
        "nested: .skip 8\n"
        ".type packaged, %function\n"
        ".size packaged, 8\n"
        "packaged: .skip 8\n"
        ".popsection\n");

/* Abbreviations: a unit, an outer function, a function, a split-off unit. */
__asm__(".pushsection .debug_abbrev, \"\", %progbits\n"
        ".Labbrevs:\n"
        "    .uleb128 1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0\n"
        "    .uleb128 2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0\n"
        "    .uleb128 3, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0\n"
        "    .uleb128 4, 0x4a, 0, 0x76, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0\n"
        "    .byte 0\n"
        ".popsection\n"
        ".pushsection .debug_info, \"\", %progbits\n"
        "    .4byte 2f - 1f\n"
        "1:  .2byte 4\n"
        "    .4byte .Labbrevs\n"
        "    .byte 8\n"
        "    .uleb128 1\n"
        "    .8byte nested\n"
        "    .4byte 8\n"
        "    .uleb128 2\n"
        "    .asciz \"outer\"\n"
        "    .8byte nested\n"
        "    .4byte 8\n"
        "    .uleb128 3\n"
        "    .asciz \"inner\"\n"
        "    .8byte nested\n"
        "    .4byte 4\n"
        "    .byte 0, 0\n"
        "2:  .4byte 4f - 3f\n"
        "3:  .2byte 5\n"
        "    .byte 4, 8\n"
        "    .4byte .Labbrevs\n"
        "    .8byte " SPLIT_ID "\n"
        "    .uleb128 4\n"
        "    .asciz \"none.dwo\"\n"
        "    .8byte packaged\n"
        "    .4byte 8\n"
        "4:\n"
        ".popsection\n");

/* The package; the parts of other units come first. */
__asm__(".pushsection .debug_abbrev.dwo, \"\", %progbits\n"
        "    .byte 0\n"
        "    .uleb128 1, 0x11, 1, 0, 0\n"
        "    .uleb128 2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0\n"
        "    .byte 0\n"
        ".popsection\n"
        ".pushsection .debug_info.dwo, \"\", %progbits\n"
        "    .8byte 0\n"
        "    .4byte 2f - 1f\n"
        "1:  .2byte 5\n"
        "    .byte 5, 8\n"
        "    .4byte 0\n"
        "    .8byte " SPLIT_ID "\n"
        "    .uleb128 1\n"
        "    .uleb128 2\n"
        "    .asciz \"in_package\"\n"
        "    .8byte packaged\n"
        "    .4byte 8\n"
        "    .byte 0\n"
        "2:\n"
        ".popsection\n"
        ".pushsection .debug_cu_index, \"\", %progbits\n"
        "    .4byte 5, 2, 1, 2\n"      /* version; columns, units, slots */
        "    .8byte " SPLIT_ID ", 0\n" /* the slots: a unit id, */
        "    .4byte 1, 0\n"            /* and its row */
        "    .4byte 1, 3\n"            /* the columns: entries and abbreviations */
        "    .4byte 8, 1\n"            /* the offsets of the row's parts */
        "    .4byte 0, 0\n"
        ".popsection\n");
