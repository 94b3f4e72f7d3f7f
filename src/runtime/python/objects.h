/* Python's own objects in a process's memory: text, dictionaries, sets, and attributes of others.
 * The memory may change between two reads, so values that must be consistent are read again. */
#ifndef FGPROF_RUNTIME_PYTHON_OBJECTS_H
#define FGPROF_RUNTIME_PYTHON_OBJECTS_H

#include "proc/stack_areas.h"
#include "runtime/python/layout.h"

#include <sys/types.h>

#define PYTHON_TEXT_BYTES 512u /* longer texts are cut */

/* Where to read. */
struct python_memory {
    const struct python_layout *layout;
    uint32_t version;   /* PY_VERSION_HEX; needed for attributes and modules */
    uint64_t code_type; /* the address of PyCode_Type; 0: not known */
    pid_t tid;
    const struct stack_areas *areas;
    uint64_t until_ns; /* CLOCK_MONOTONIC: nothing can be read later, because the program controls
                          how long its lists are; 0: no limit */
};

bool python_time_is_over(const struct python_memory *memory);

bool python_read(const struct python_memory *memory, uint64_t address, void *value, size_t bytes);

/* The text of a string object as UTF-8; "" if it can't be read. */
void python_text_read(const struct python_memory *memory, uint64_t address,
                      char ret_text[PYTHON_TEXT_BYTES]);

/* ---- Of 3.11 to 3.13, unless another version is named ---- */

struct python_dict {
    uint64_t entries, count;
    uint64_t values; /* 0: entries have them */
    bool is_general; /* keys need not be strings; entries then have their hashes */
};
struct python_dict_entry {
    uint64_t hash, key, value; /* value 0: there is none. hash 0: not known */
};

bool python_dict_open(const struct python_memory *memory, uint64_t dict,
                      struct python_dict *ret_dict);
bool python_dict_entry(const struct python_memory *memory, const struct python_dict *dict,
                       uint64_t number, struct python_dict_entry *ret_entry);

/* An attribute that an object of a Python class has itself; 0: it has none. */
uint64_t python_attribute(const struct python_memory *memory, uint64_t object, const char *name);

/* Where an interpreter has sys.modules. */
struct python_modules {
    uint64_t interpreter_at; /* the address of the main interpreter is there */
    uint64_t offset;         /* in PyInterpreterState; 0: not known */
};

/* `runtime` is the address of _PyRuntime. */
struct python_modules python_modules_of(const struct python_memory *memory, uint64_t runtime);

/* A global variable of a module that was imported; 0: there is none. */
uint64_t python_global(const struct python_memory *memory, const struct python_modules *modules,
                       const char *module, const char *name);

/* A walk through a set's table, which all versions have alike. */
struct python_set_walk {
    uint64_t table, next, end;
    size_t at, count;
    uint64_t keys[64][2]; /* each with its hash */
};

/* `type` is the address of PySet_Type. Returns false if there is no set. */
bool python_set_begin(const struct python_memory *memory, uint64_t type, uint64_t set,
                      struct python_set_walk *ret_walk);
/* 0: that were all. */
uint64_t python_set_next(const struct python_memory *memory, struct python_set_walk *walk);

#endif
