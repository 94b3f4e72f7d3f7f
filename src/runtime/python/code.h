/* What a code object says of itself: the function's name, its file, and its lines. */
#ifndef FGPROF_RUNTIME_PYTHON_CODE_H
#define FGPROF_RUNTIME_PYTHON_CODE_H

#include "runtime/python/objects.h"

/* Lines beyond the limit of a longer table are not known. */
#define PYTHON_LINES_BYTES_MAX (64u << 10)

/* What of a code object is compared, to know it again: another one may be made in its place. */
struct python_code_head {
    uint64_t filename, qualname, lines;
    uint32_t first_line;
};

struct python_code {
    struct python_code_head head;
    char name[PYTHON_TEXT_BYTES], file[PYTHON_TEXT_BYTES];
    enum python_line_table line_table;
    unsigned char *lines; /* as the kind of table says; owned */
    size_t line_bytes;
};

/* Returns false if there is no code object at `address`, or it can't be read. */
bool python_code_read_head(const struct python_memory *memory, uint64_t address,
                           struct python_code_head *ret_head);

/* Reads the rest. What can't be read is "". Returns 0 or -ENOMEM. The caller frees `lines`. */
int python_code_read(const struct python_memory *memory, const struct python_code_head *head,
                     struct python_code *ret_code);

/* How many bytes of the code at that address are before a frame's instruction. */
uint64_t python_code_offset(const struct python_layout *layout, uint64_t code,
                            uint64_t instruction);

/* The line of an instruction, by how many bytes it is behind the code's first; 0: none is known. */
uint32_t python_code_line(const struct python_code *code, uint64_t offset);

#endif
