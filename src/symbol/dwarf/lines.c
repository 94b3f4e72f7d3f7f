#include "symbol/dwarf/lines.h"
#include "symbol/dwarf/line_program.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <dwarf.h>
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
    if (array_reserve((void **)&lines->directories, &lines->directory_capacity,
                      lines->directory_count + 1, sizeof *lines->directories))
        return -ENOMEM;
    lines->directories[lines->directory_count++] = name;
    return 0;
}

static int add_file(struct lines *lines, struct value name, uint64_t directory)
{
    if (array_reserve((void **)&lines->files, &lines->file_capacity, lines->file_count + 1,
                      sizeof *lines->files))
        return -ENOMEM;
    lines->files[lines->file_count++] = (struct line_file){.name = name, .directory = directory};
    return 0;
}

/* Before DWARF 5: strings in a row, ended by an empty one; numbered from 1 on. */
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

/* From DWARF 5 on: a description of the columns, then the rows (6.2.4.1). */
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
        /* Some forms take no room: a made-up count of such rows would not end. */
        if (bytes->at == begin)
            return -ENOEXEC;
        int err = are_files ? add_file(lines, name, directory.number) : add_directory(lines, name);
        if (err)
            return err;
    }
    return bytes->failed ? -ENOEXEC : 0;
}

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
    line_header_read(&header, &names);
    int err = header.version < 5 ? read_old_names(lines, &names) : read_names(lines, &names, false);
    if (!err && header.version >= 5)
        err = read_names(lines, &names, true);
    return err ? err : line_program_run(lines, &header, program);
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

/* `name` below `directory`, unless it is a path from the root. Frees `name`. */
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
