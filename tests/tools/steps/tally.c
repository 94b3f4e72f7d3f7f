#include "tally.h"
#include "machine.h"
#include "base/array.h"
#include "symbol/symbols.h"

#include <inttypes.h>
#include <libelf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 160

static const char *const verdict_names[VERDICT_COUNT] = {"equal", "cut", "missing", "wrong",
                                                         "doubt"};

static const char *const cut_names[STACK_CUT_COUNT] = {
    "",           "at max depth", "no unwind info", "no register",
    "unreadable", "not captured", "not kept",       "unread"};

struct spot tally_spot(struct space *space, uint64_t address)
{
    const struct mapping *mapping = space_find(space, address);
    if (!mapping || !mapping->has_bias)
        return (struct spot){NULL, address};
    return (struct spot){mapping->module, address - mapping->bias};
}

static bool is_same_spot(struct spot a, struct spot b)
{
    return a.module == b.module && a.address == b.address;
}

bool tally_add(struct tally *tally, const struct difference *difference)
{
    /* Newest first, because differences come in bursts. */
    for (size_t i = tally->count; i-- > 0;) {
        struct difference *item = &tally->items[i];
        if (item->verdict == difference->verdict && item->cut == difference->cut &&
            is_same_spot(item->from, difference->from) && !item->depth == !difference->depth) {
            item->count++;
            return true;
        }
    }
    if (array_reserve(&tally->items, &tally->capacity, tally->count + 1))
        return false;
    tally->items[tally->count] = *difference;
    tally->items[tally->count++].count = 1;
    return true;
}

/* ---- Names ---- */

struct named_module {
    struct module *module;
    struct own_debug_files own;
    struct symbols *symbols; /* NULL: none */
};

struct names {
    struct named_module items[256];
    size_t count;
};

static struct symbols *symbols_of(struct names *names, struct module *module)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->items[i].module == module)
            return names->items[i].symbols;
    }
    if (names->count == sizeof names->items / sizeof *names->items)
        return NULL;
    struct named_module *item = &names->items[names->count++];
    *item = (struct named_module){.module = module};
    own_debug_files_init(&item->own, module, NULL);
    const char *why;
    if (symbols_open(module, &item->own.files, &item->symbols, &why))
        item->symbols = NULL;
    return item->symbols;
}

static void name_section(const struct module *module, uint64_t address, char *name)
{
    Elf *elf = module->image.fd >= 0 ? elf_begin(module->image.fd, ELF_C_READ, NULL) : NULL;
    size_t strings;
    snprintf(name, NAME_BYTES, "?");
    if (elf && elf_getshdrstrndx(elf, &strings) == 0) {
        for (Elf_Scn *section = elf_nextscn(elf, NULL); section;
             section = elf_nextscn(elf, section)) {
            GElf_Shdr header;
            const char *own;
            if (gelf_getshdr(section, &header) && header.sh_flags & SHF_ALLOC &&
                address - header.sh_addr < header.sh_size &&
                (own = elf_strptr(elf, strings, header.sh_name)))
                snprintf(name, NAME_BYTES, "%s", own);
        }
    }
    elf_end(elf);
}

static void name_spot(struct names *names, struct spot spot, char *name, uint64_t *ret_offset)
{
    struct symbol symbol;
    *ret_offset = 0;
    if (!spot.module) {
        snprintf(name, NAME_BYTES, "[no file]");
        return;
    }
    struct symbols *symbols = symbols_of(names, spot.module);
    symbol.line_count = 0;
    if (symbols)
        symbols_find(symbols, spot.address, &symbol);
    if (!symbol.line_count) {
        name_section(spot.module, spot.address, name);
        return;
    }
    snprintf(name, NAME_BYTES, "%s", symbol.lines[symbol.line_count - 1].name);
    *ret_offset = symbol.function_offset;
}

static void print_spot(struct names *names, FILE *out, struct spot spot)
{
    char name[NAME_BYTES];
    uint64_t offset;
    const char *slash = spot.module ? strrchr(spot.module->path, '/') : NULL;
    name_spot(names, spot, name, &offset);
    fprintf(out, " %s!%s+%#" PRIx64 "(%#" PRIx64 ")",
            slash ? slash + 1 : (spot.module ? spot.module->path : ""), name, offset, spot.address);
}

/* ---- Groups ---- */

struct group {
    const struct difference *example; /* the most frequent one */
    uint64_t count;
    size_t places;
    char function[NAME_BYTES];
};

static bool belongs(const struct group *group, const struct difference *item, const char *function)
{
    const struct difference *example = group->example;
    return example->verdict == item->verdict && example->cut == item->cut &&
           example->from.module == item->from.module && !example->depth == !item->depth &&
           strcmp(group->function, function) == 0;
}

static int compare_groups(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    if (left->example->verdict != right->example->verdict)
        return left->example->verdict < right->example->verdict ? 1 : -1;
    return (left->count < right->count) - (left->count > right->count);
}

static size_t make_groups(const struct tally *tally, struct names *names, struct group *groups)
{
    size_t count = 0;
    for (size_t i = 0; i < tally->count; i++) {
        const struct difference *item = &tally->items[i];
        char function[NAME_BYTES];
        uint64_t offset;
        size_t at = 0;
        name_spot(names, item->from, function, &offset);
        while (at < count && !belongs(&groups[at], item, function))
            at++;
        if (at == count) {
            groups[count++] = (struct group){.example = item};
            memcpy(groups[at].function, function, sizeof function);
        }
        groups[at].count += item->count;
        groups[at].places++;
        if (item->count > groups[at].example->count)
            groups[at].example = item;
    }
    qsort(groups, count, sizeof *groups, compare_groups);
    return count;
}

static const char *kind_of(const struct tally *tally, struct spot spot)
{
    static const char *const names[RULE_KINDS] = {[RULE_NONE] = "without CFI",
                                                  [RULE_CALLER] = "with CFI",
                                                  [RULE_FIRST_FRAME] = "first frame",
                                                  [RULE_SIGNAL_FRAME] = "signal frame",
                                                  [RULE_UNKNOWN_FRAME] = "unknown frame",
                                                  [RULE_ON_THE_MOVE] = "on the move",
                                                  [RULE_NEW_STACK] = "new stack",
                                                  [RULE_LEFT_STACK] = "left stack",
                                                  [RULE_RUNS_C] = "runs C",
                                                  [RULE_UNREAD] = "not read"};
    if (!spot.module)
        return "no file";
    const struct rule *rule = rule_tables_find(tally->rules, spot.module, spot.address);
    return rule ? names[rule->kind] : "?";
}

static void print_group(const struct tally *tally, struct names *names, FILE *out,
                        const struct group *group)
{
    const struct difference *example = group->example;
    const char *slash = example->from.module ? strrchr(example->from.module->path, '/') : NULL;
    fprintf(out, "%s %" PRIu64 " %s!%s [%s] %s%s%s, %zu places\n", verdict_names[example->verdict],
            group->count, slash ? slash + 1 : "", group->function, kind_of(tally, example->from),
            example->depth ? "as a caller" : machine_form_name(example->form),
            example->cut ? ", cut: " : "", cut_names[example->cut], group->places);
    fprintf(out, "    from");
    print_spot(names, out, example->from);
    fprintf(out, " at depth %zu, leaf", example->depth);
    print_spot(names, out, example->leaf);
    fprintf(out, "\n    true ");
    for (size_t i = 0; i < example->expected_count; i++)
        print_spot(names, out, example->expected[i]);
    fprintf(out, "\n    found");
    for (size_t i = 0; i < example->found_count; i++)
        print_spot(names, out, example->found[i]);
    fprintf(out, "\n");
}

void tally_print(struct tally *tally, FILE *out, size_t max_count)
{
    struct names names = {.count = 0};
    struct group *groups = calloc(tally->count + 1, sizeof *groups);
    size_t count = groups ? make_groups(tally, &names, groups) : 0;
    for (size_t i = 0; i < count && i < max_count; i++)
        print_group(tally, &names, out, &groups[i]);
    if (count > max_count)
        fprintf(out, "and %zu more\n", count - max_count);
    for (size_t i = 0; i < names.count; i++)
        symbols_close(names.items[i].symbols);
    free(groups);
}

void tally_free(struct tally *tally)
{
    free(tally->items);
    tally->items = NULL;
}
