#include "symbol/dwarf/lines.h"
#include "symbol/dwarf/ranges.h"
#include "elf/dwarf.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lines_clear(struct lines *lines)
{
    for (size_t i = 0; i < lines->file_count; i++)
        free(lines->files[i].path);
    free(lines->compilation_directory);
    lines->compilation_directory = NULL;
    lines->file_count = lines->directory_count = 0;
    lines->row_count = lines->sequence_count = 0;
}

void lines_free(struct lines *lines)
{
    lines_clear(lines);
    slice_free(&lines->table);
    free(lines->directories);
    free(lines->files);
    free(lines->rows);
    free(lines->sequences);
    *lines = (struct lines){0};
}

static int add_directory(struct lines *lines, struct value name)
{
    return array_append(&lines->directories, &lines->directory_count, &lines->directory_capacity,
                        name);
}

static int add_file(struct lines *lines, struct value name, uint64_t directory)
{
    return array_append(&lines->files, &lines->file_count, &lines->file_capacity,
                        (struct line_file){.name = name, .directory = directory});
}

/* Before DWARF 5: strings in a row, ended by an empty one; numbered from 1. */
static int read_old_names(struct lines *lines, struct bytes *bytes)
{
    int err = add_directory(lines, (struct value){0});
    if (!err)
        err = add_file(lines, (struct value){0}, 0);
    while (!err && bytes_left(bytes) && *bytes->at) {
        struct value name;
        if (!value_read(&lines->unit, bytes, DW_FORM_string, 0, &name))
            return -ENOEXEC;
        err = add_directory(lines, name);
    }
    bytes_skip(bytes, 1);
    while (!err && bytes_left(bytes) && *bytes->at) {
        struct value name;
        if (!value_read(&lines->unit, bytes, DW_FORM_string, 0, &name))
            return -ENOEXEC;
        err = add_file(lines, name, bytes_uleb(bytes));
        bytes_uleb(bytes); /* time of change */
        bytes_uleb(bytes); /* size */
    }
    return err;
}

/* From DWARF 5: a description of the columns, then the rows (6.2.4.1). */
static int read_names(struct lines *lines, struct bytes *bytes, bool are_files)
{
    struct {
        uint64_t content, form;
    } columns[255];
    unsigned column_count = (unsigned)bytes_unsigned(bytes, 1);
    for (unsigned i = 0; i < column_count; i++) {
        columns[i].content = bytes_uleb(bytes);
        columns[i].form = bytes_uleb(bytes);
        if (columns[i].form > UINT16_MAX)
            return -ENOEXEC;
    }
    uint64_t row_count = bytes_uleb(bytes);
    for (uint64_t i = 0; i < row_count; i++) {
        const uint8_t *begin = bytes->at;
        struct value name = {0}, directory = {0}, other;
        for (unsigned j = 0; j < column_count; j++) {
            struct value *value = columns[j].content == DW_LNCT_path              ? &name
                                  : columns[j].content == DW_LNCT_directory_index ? &directory
                                                                                  : &other;
            if (!value_read(&lines->unit, bytes, (unsigned)columns[j].form, 0, value))
                return -ENOEXEC;
        }
        /* Some forms take no space: a made-up count of such rows would never end. */
        if (bytes->at == begin)
            return -ENOEXEC;
        int err = are_files ? add_file(lines, name, directory.number) : add_directory(lines, name);
        if (err)
            return err;
    }
    return bytes->failed ? -ENOEXEC : 0;
}

/* ---- The program that makes the rows (DWARF 5, 6.2.5) ---- */

struct line_header {
    unsigned version;
    unsigned minimum_bytes; /* of an instruction */
    int line_base;
    unsigned line_range;
    unsigned opcode_base;
    uint8_t operand_counts[256]; /* of the standard opcodes */
};

/* Reads the part before the names. */
static void read_header(struct line_header *header, struct bytes *bytes)
{
    header->minimum_bytes = (unsigned)bytes_unsigned(bytes, 1);
    if (header->version >= 4)
        bytes_skip(bytes, 1); /* operations per instruction: 1 on both architectures */
    bytes_skip(bytes, 1);     /* whether a row is a statement by default */
    header->line_base = (int)bytes_signed(bytes, 1);
    header->line_range = (unsigned)bytes_unsigned(bytes, 1);
    header->opcode_base = (unsigned)bytes_unsigned(bytes, 1);
    for (unsigned i = 1; i < header->opcode_base; i++)
        header->operand_counts[i] = (uint8_t)bytes_unsigned(bytes, 1);
}

struct machine {
    struct lines *lines;
    const struct line_header *header;
    uint64_t address, line, file;
    size_t first_row; /* of the sequence */
    bool is_unsorted; /* its rows are */
};

static void restart(struct machine *machine)
{
    machine->address = 0;
    machine->line = machine->file = 1;
    machine->first_row = machine->lines->row_count;
    machine->is_unsorted = false;
}

static int emit(struct machine *machine)
{
    struct lines *lines = machine->lines;
    size_t count = lines->row_count;
    if (count > machine->first_row) {
        struct line_row *last = &lines->rows[count - 1];
        if (last->address > machine->address)
            machine->is_unsorted = true;
        /* The last row for an address replaces the others. */
        if (last->address == machine->address)
            count--;
    }
    const struct line_row row = {
        .address = machine->address,
        .file = machine->file > UINT32_MAX ? UINT32_MAX : (uint32_t)machine->file,
        .line = machine->line > UINT32_MAX ? 0 : (uint32_t)machine->line,
    };
    lines->row_count = count;
    return array_append(&lines->rows, &lines->row_count, &lines->row_capacity, row);
}

/* A sequence whose addresses do not ascend breaks the rule (6.2.5) and is not believed. */
static int end_sequence(struct machine *machine)
{
    struct lines *lines = machine->lines;
    size_t first = machine->first_row, count = lines->row_count - first;
    while (count && lines->rows[first + count - 1].address >= machine->address)
        count--; /* covers nothing */
    if (machine->is_unsorted || (count && is_discarded(lines->rows[first].address)))
        count = 0;
    lines->row_count = first + count;
    if (!count)
        return 0;
    return array_append(
        &lines->sequences, &lines->sequence_count, &lines->sequence_capacity,
        (struct line_sequence){lines->rows[first].address, machine->address, first, count});
}

static int run_extended(struct machine *machine, struct bytes *bytes)
{
    uint64_t length = bytes_uleb(bytes);
    if (!length || length > bytes_left(bytes)) {
        bytes->failed |= length > 0;
        return 0;
    }
    struct bytes operands = {bytes->at, bytes->at + length, false};
    bytes_skip(bytes, length);
    int err = 0;
    switch (bytes_unsigned(&operands, 1)) {
    case DW_LNE_end_sequence:
        err = end_sequence(machine);
        restart(machine);
        break;
    case DW_LNE_set_address:
        machine->address = length <= 9 ? bytes_unsigned(&operands, (unsigned)length - 1) : 0;
        break;
    }
    return err;
}

static int run_standard(struct machine *machine, unsigned opcode, struct bytes *bytes)
{
    const struct line_header *header = machine->header;
    switch (opcode) {
    case DW_LNS_copy:
        return emit(machine);
    case DW_LNS_advance_pc:
        machine->address += bytes_uleb(bytes) * header->minimum_bytes;
        return 0;
    case DW_LNS_advance_line:
        machine->line += (uint64_t)bytes_sleb(bytes);
        return 0;
    case DW_LNS_set_file:
        machine->file = bytes_uleb(bytes);
        return 0;
    case DW_LNS_const_add_pc:
        if (header->line_range)
            machine->address +=
                (255u - header->opcode_base) / header->line_range * (uint64_t)header->minimum_bytes;
        return 0;
    case DW_LNS_fixed_advance_pc:
        machine->address += bytes_unsigned(bytes, 2);
        return 0;
    default:
        for (unsigned i = 0; i < header->operand_counts[opcode]; i++)
            bytes_uleb(bytes);
        return 0;
    }
}

static int run_special(struct machine *machine, unsigned opcode)
{
    const struct line_header *header = machine->header;
    unsigned adjusted = opcode - header->opcode_base;
    if (!header->line_range)
        return 0;
    machine->address += (uint64_t)(adjusted / header->line_range) * header->minimum_bytes;
    machine->line += (uint64_t)(header->line_base + (int)(adjusted % header->line_range));
    return emit(machine);
}

static int compare_sequences(const void *a, const void *b)
{
    const struct line_sequence *left = a, *right = b;
    return left->start != right->start ? ORDER(left->start, right->start)
                                       : ORDER(right->first_row, left->first_row);
}

/* Adds rows and sequences. Returns 0 or -ENOMEM. */
static int run_program(struct lines *lines, const struct line_header *header, struct bytes program)
{
    struct machine machine = {.lines = lines, .header = header};
    int err = 0;
    restart(&machine);
    while (!err && bytes_left(&program) && !program.failed) {
        unsigned opcode = (unsigned)bytes_unsigned(&program, 1);
        if (opcode >= header->opcode_base)
            err = run_special(&machine, opcode);
        else if (opcode)
            err = run_standard(&machine, opcode, &program);
        else
            err = run_extended(&machine, &program);
    }
    /* Rows after the last end belong to no sequence. */
    lines->row_count = machine.first_row;
    array_sort(lines->sequences, lines->sequence_count, compare_sequences);
    return err;
}

/* ---- The table ---- */

static int parse(struct lines *lines, struct bytes *bytes)
{
    struct line_header header = {.version = (unsigned)bytes_unsigned(bytes, 2)};
    if (header.version < 2 || header.version > 5)
        return -ENOEXEC;
    lines->unit.version = header.version;
    if (header.version >= 5) {
        lines->unit.address_bytes = (unsigned)bytes_unsigned(bytes, 1);
        bytes_skip(bytes, 1); /* bytes of a segment selector */
    }
    uint64_t header_bytes = bytes_unsigned(bytes, lines->unit.offset_bytes);
    if (bytes->failed || header_bytes > bytes_left(bytes))
        return -ENOEXEC;
    struct bytes program = {bytes->at + header_bytes, bytes->end, false};
    struct bytes names = {bytes->at, program.at, false};
    read_header(&header, &names);
    int err = header.version < 5 ? read_old_names(lines, &names) : read_names(lines, &names, false);
    if (!err && header.version >= 5)
        err = read_names(lines, &names, true);
    return err ? err : run_program(lines, &header, program);
}

int lines_read(struct lines *lines, const struct unit *unit, const struct die *root)
{
    struct section *section = &unit->addresses->sections[DEBUG_LINE];
    uint64_t at = root->stmt_list.number, length;
    lines_clear(lines);
    lines->unit = *unit;
    lines->unit.info = unit->addresses;
    lines->unit.offset_bytes = 4;
    if (!root->stmt_list.form || !section_number(section, at, 4, &length))
        return -ENOEXEC;
    at += 4;
    if (length == 0xffffffff) {
        if (!section_number(section, at, 8, &length))
            return -ENOEXEC;
        lines->unit.offset_bytes = 8;
        at += 8;
    }
    const char *directory = value_string(unit, &root->comp_dir);
    if (directory && !(lines->compilation_directory = strdup(directory)))
        return -ENOMEM;
    int err = slice_read(&lines->table, section, at, length);
    if (err)
        return err;
    struct bytes bytes = {lines->table.bytes, lines->table.bytes + lines->table.count, false};
    return parse(lines, &bytes);
}

/* `name` below `directory`, unless it is an absolute path. Frees `name`. */
static char *below(const char *directory, char *name)
{
    char *path;
    if (!name || name[0] == '/' || !directory || !*directory)
        return name;
    int length = asprintf(&path, "%s/%s", directory, name);
    free(name);
    return length < 0 ? NULL : path;
}

static char *path_of(struct lines *lines, const struct line_file *file)
{
    const char *found = value_string(&lines->unit, &file->name);
    char *name = found ? strdup(found) : NULL;
    if (!name || name[0] == '/')
        return name;
    const char *directory = NULL;
    if (file->directory < lines->directory_count)
        directory = value_string(&lines->unit, &lines->directories[file->directory]);
    name = below(directory, name);
    return below(lines->compilation_directory, name);
}

const char *lines_file(struct lines *lines, uint64_t number)
{
    if (number >= lines->file_count)
        return NULL;
    struct line_file *file = &lines->files[number];
    if (!file->path)
        file->path = path_of(lines, file);
    return file->path;
}

const struct line_row *lines_find(const struct lines *lines, uint64_t address)
{
    size_t after = UPPER_BOUND(lines->sequences, lines->sequence_count, start, address);
    if (!after || address >= lines->sequences[after - 1].end)
        return NULL;
    const struct line_sequence *sequence = &lines->sequences[after - 1];
    const struct line_row *rows = &lines->rows[sequence->first_row];
    after = UPPER_BOUND(rows, sequence->row_count, address, address);
    return after ? &rows[after - 1] : NULL;
}
