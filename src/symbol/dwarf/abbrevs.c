#include "symbol/dwarf/abbrevs.h"
#include "elf/dwarf.h"
#include "base/array.h"
#include "base/bytes.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE_BYTES_MAX ((size_t)64 << 20)

static int read_attributes(struct abbrevs *abbrevs, struct bytes *bytes, struct abbrev *abbrev)
{
    abbrev->first_attribute = (uint32_t)abbrevs->attribute_count;
    while (!bytes->failed) {
        uint64_t name = bytes_uleb(bytes), form = bytes_uleb(bytes);
        int64_t implicit = form == DW_FORM_implicit_const ? bytes_sleb(bytes) : 0;
        if (!name && !form)
            break;
        if (array_reserve(&abbrevs->attributes, &abbrevs->attribute_capacity,
                          abbrevs->attribute_count + 1))
            return -ENOMEM;
        if (name > UINT16_MAX || form > UINT16_MAX)
            return -ENOEXEC;
        abbrevs->attributes[abbrevs->attribute_count++] =
            (struct abbrev_attribute){(uint16_t)name, (uint16_t)form, implicit};
    }
    abbrev->attribute_count = (uint32_t)abbrevs->attribute_count - abbrev->first_attribute;
    return 0;
}

/* Returns -EAGAIN if the table goes on after these bytes. */
static int parse(struct abbrevs *abbrevs, struct bytes bytes)
{
    while (true) {
        struct abbrev abbrev = {.code = bytes_uleb(&bytes)};
        if (!abbrev.code)
            return bytes.failed ? -EAGAIN : 0;
        abbrev.tag = (uint16_t)bytes_uleb(&bytes);
        abbrev.has_children = bytes_unsigned(&bytes, 1);
        int err = read_attributes(abbrevs, &bytes, &abbrev);
        if (err || bytes.failed)
            return err ? err : -EAGAIN;
        if (array_reserve(&abbrevs->items, &abbrevs->capacity, abbrevs->count + 1))
            return -ENOMEM;
        abbrevs->items[abbrevs->count++] = abbrev;
    }
}

static int compare_codes(const void *a, const void *b)
{
    const struct abbrev *left = a, *right = b;
    return (left->code > right->code) - (left->code < right->code);
}

int abbrevs_read(struct abbrevs *abbrevs, struct section *section, uint64_t at)
{
    const unsigned char *start;
    int err = -EAGAIN;
    /* Only the table's end tells how long it is. */
    for (size_t wanted = 4096; err == -EAGAIN && wanted <= TABLE_BYTES_MAX; wanted *= 4) {
        size_t count = section_peek(section, at, wanted, &start);
        abbrevs->count = abbrevs->attribute_count = 0;
        err = count ? parse(abbrevs, (struct bytes){start, start + count, false}) : -ENOEXEC;
        if (err == -EAGAIN && count < wanted)
            break;
    }
    for (size_t i = 1; i < abbrevs->count; i++) {
        if (abbrevs->items[i - 1].code > abbrevs->items[i].code) {
            qsort(abbrevs->items, abbrevs->count, sizeof *abbrevs->items, compare_codes);
            break;
        }
    }
    return err == -EAGAIN ? -ENOEXEC : err;
}

void abbrevs_free(struct abbrevs *abbrevs)
{
    free(abbrevs->items);
    free(abbrevs->attributes);
    *abbrevs = (struct abbrevs){0};
}

const struct abbrev *abbrevs_find(const struct abbrevs *abbrevs, uint64_t code)
{
    /* Producers number them from 1. */
    if (code - 1 < abbrevs->count && abbrevs->items[code - 1].code == code)
        return &abbrevs->items[code - 1];
    size_t after = UPPER_BOUND(abbrevs->items, abbrevs->count, code, code);
    return after && abbrevs->items[after - 1].code == code ? &abbrevs->items[after - 1] : NULL;
}
