/* Names of this program's own variables. */
#include "own_module.h"
#include "unit.h"
#include "symbol/variables.h"

#include <errno.h>

/* What a C++ compiler emits for classes. */
#define VTABLE(name, symbol) const uintptr_t name[4] __asm__(symbol) = {1, 2, 3, 4}
extern const uintptr_t connection[4], pool[4], shared[4], shared_by_llvm[4], odd[4];
VTABLE(connection, "_ZTVN3net10ConnectionE");
VTABLE(pool, "_ZTVN3net4PoolIiSaIiEEE");
VTABLE(shared, "_ZTVSt23_Sp_counted_ptr_inplaceIN3net4PoolIiSaIiEEESaIvELN9__gnu_cxx12_Lock_"
               "policyE2EE");
VTABLE(shared_by_llvm, "_ZTVNSt3__120__shared_ptr_emplaceIN3net5CacheENS_9allocatorIS2_EEEE");
VTABLE(odd, "_ZTV");
extern int table[4];
int table[4] = {1};

static uint64_t own_address(const void *data)
{
    extern const char __executable_start[];
    return (uintptr_t)data - (uintptr_t)__executable_start + module.segments[0].address;
}

static void test_variables(void **state)
{
    (void)state;
    char *name;
    uint64_t offset;
    assert_int_equal(variable_find(&module, own_address(&table[2]), &name, &offset), 0);
    assert_string_equal(name, "table");
    assert_int_equal(offset, 8);
    free(name);
    assert_int_equal(variable_find(&module, own_address(connection), &name, &offset), 0);
    assert_string_equal(name, "vtable for net::Connection");
    assert_int_equal(offset, 0);
    free(name);
    assert_int_equal(variable_find(&module, 1, &name, &offset), -ENOENT);
}

static void assert_class(const uintptr_t *vtable, const char *wanted)
{
    char *name;
    assert_int_equal(class_find(&module, own_address(&vtable[2]), &name), 0);
    assert_string_equal(name, wanted);
    free(name);
}

static void test_classes(void **state)
{
    (void)state;
    assert_class(connection, "net::Connection");
    assert_class(pool, "net::Pool");
    assert_class(shared, "net::Pool");
    assert_class(shared_by_llvm, "net::Cache");
}

static void test_what_is_no_class(void **state)
{
    (void)state;
    char *name;
    /* Not the address that objects point to, not a class, and not C++. */
    for (size_t i = 0; i < 4; i++) {
        if (i != 2)
            assert_int_equal(class_find(&module, own_address(&connection[i]), &name), -ENOENT);
    }
    assert_int_equal(class_find(&module, own_address(connection) + 15, &name), -ENOENT);
    assert_int_equal(class_find(&module, own_address(connection) + 17, &name), -ENOENT);
    assert_int_equal(class_find(&module, own_address(&table[0]) + 16, &name), -ENOENT);
    assert_int_equal(class_find(&module, own_address(&odd[2]), &name), -ENOENT);
    assert_int_equal(class_find(&module, 0, &name), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_what_is_no_class),
    };
    return cmocka_run_group_tests(tests, open_own_module, close_own_module);
}
