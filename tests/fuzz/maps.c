/* Lines of /proc/PID/maps: mapped files may have any name. The input is two states of that file,
 * separated by NUL; the second is read as an update of the first. */
#include "input.h"
#include "mapping/modules.h"
#include "mapping/spaces.h"
#include "proc/maps.h"
#include "proc/stack_areas.h"

#include <sys/mman.h>
#include <unistd.h>

static int file_of(struct input text)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("maps", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, 0) == 0 &&
         pwrite(fd, text.at, text.bytes, 0) == (ssize_t)text.bytes);
    return fd;
}

static void parse_as_one_line(struct input text)
{
    struct maps_entry entry;
    char *line = copy_of(text, 1);
    if (maps_parse_line(line, &entry)) {
        must(entry.start < entry.end);
        must(entry.path >= line && entry.path + strlen(entry.path) <= line + text.bytes);
    }
    free(line);
}

static void check_space(struct space *space)
{
    for (size_t i = 0; i < space->mapping_count; i++) {
        const struct mapping *mapping = &space->mappings[i];
        must(mapping->start < mapping->end);
        must(i == 0 || mapping[-1].end <= mapping->start);
        must(space_find(space, mapping->start) == mapping);
        must(space_find(space, mapping->end - 1) == mapping);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    const uint8_t *between = bytes ? memchr(data, '\0', bytes) : NULL;
    struct input before = take_part(&input, between ? (size_t)(between - data) : bytes);
    take_number(&input, 1);
    parse_as_one_line(before);

    struct stack_areas areas = {0};
    must(stack_areas_read(&areas, file_of(before)) == 0);
    stack_areas_end(&areas, 0x7ffd00000000);
    stack_areas_free(&areas);

    /* For a process that does not exist: no file is opened. */
    struct spaces spaces = {0};
    struct modules modules = {0};
    struct space *space;
    bool changed;
    if (spaces_add(&spaces, &modules, -1, -1, -1, file_of(before), &space) == 0) {
        check_space(space);
        if (spaces_refresh(&spaces, &modules, -1, -1, file_of(input), &space, &changed) == 0)
            check_space(space);
    }
    spaces_free(&spaces);
    modules_free(&modules);
    return 0;
}
