/* The frames of stacks, and call trees built from their names. */
#include "make_profile.h"
#include "profile/call_tree.h"

static const struct made_line inlined[] = {
    {"inner", "a.c", 3, true}, {"outer", "a.c", 2, false}, {NULL, NULL, 0, false}};

static void test_frames_from_both_ends(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/bin/app", "");
    uint32_t locations[] = {make_location(profile, 0x401000, app, 0, NULL),
                            make_location(profile, 0x402000, app, 0, inlined)};
    uint32_t number;
    assert_int_equal(profile_add_stack(profile, locations, 2, &number), 0);
    const struct profile_stack *stack = &profile->stacks[number];
    struct frame_walk from_leaf = {0}, from_root = {0};
    struct profile_frame leaf[3], root[3], none;
    for (size_t i = 0; i < 3; i++) {
        assert_true(frame_next_from_leaf(profile, stack, &from_leaf, &leaf[i]));
        assert_true(frame_next_from_root(profile, stack, &from_root, &root[2 - i]));
    }
    assert_false(frame_next_from_leaf(profile, stack, &from_leaf, &none));
    assert_false(frame_next_from_root(profile, stack, &from_root, &none));
    assert_memory_equal(leaf, root, sizeof leaf);
    assert_null(leaf[0].line);
    assert_int_equal(leaf[0].location->address, 0x401000);
    assert_int_equal(leaf[1].line->line, 3);
    assert_int_equal(leaf[2].line->line, 2);
    assert_ptr_equal(leaf[1].location, leaf[2].location);
    fgprof_profile_free(profile);
}

static void test_labels_of_a_stack(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/bin/app", "");
    uint32_t libc = make_mapping(profile, 0x800000, "/lib/libc.so.6", "");
    uint32_t locations[] = {make_function(profile, 0x801000, libc, "__GI___poll", "", 0),
                            make_function(profile, 0x802000, libc, "poll", "", 0),
                            make_location(profile, 0x403000, app, 0, NULL),
                            make_location(profile, 0x402000, app, 0, inlined)};
    uint32_t number;
    struct labels labels;
    struct labelled_stack labelled = {0};
    assert_int_equal(profile_add_stack(profile, locations, 4, &number), 0);
    assert_int_equal(labels_init(&labels, profile), 0);
    assert_int_equal(labels_of_stack(&labels, profile, &profile->stacks[number], &labelled), 0);
    static const char *const expected[] = {"outer", "inner", "[app]", "poll", "__GI___poll"};
    assert_int_equal(labelled.depth, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(label_text(&labels, labelled.labels[i]), expected[i]);
    assert_int_equal(labelled.program_depth, 4);
    assert_int_equal(profile_add_stack(profile, NULL, 0, &number), 0);
    assert_int_equal(labels_of_stack(&labels, profile, &profile->stacks[number], &labelled), 0);
    assert_int_equal(labelled.depth, 1);
    assert_string_equal(label_text(&labels, labelled.labels[0]), "[unknown]");
    free(labelled.labels);
    labels_free(&labels);
    fgprof_profile_free(profile);
}

static void test_roles(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct labels labels;
    static const struct {
        const char *name;
        unsigned role;
    } rows[] = {{"main", 0},
                {"_start", LABEL_START},
                {"__libc_start_main_impl", LABEL_START},
                {"__GI___pthread_mutex_lock", LABEL_LOCK},
                {"std::unique_lock<std::mutex>::lock", LABEL_WRAPPER},
                {"pthread_cond_wait", 0}};
    assert_int_equal(labels_init(&labels, profile), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t label;
        assert_int_equal(label_add(&labels, rows[i].name, &label), 0);
        assert_int_equal(labels.roles[label], rows[i].role);
    }
    labels_free(&labels);
    fgprof_profile_free(profile);
}

static void add_path(struct call_tree *tree, struct labels *labels, const char *const *names,
                     uint64_t time_ns, uint32_t *ret_node)
{
    uint32_t path[64];
    size_t depth = 0;
    for (; names[depth]; depth++)
        assert_int_equal(label_add(labels, names[depth], &path[depth]), 0);
    assert_int_equal(call_tree_add(tree, path, depth, time_ns, ret_node), 0);
}

static void test_times_of_nodes(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct labels labels;
    struct call_tree tree = {0};
    uint32_t read_node, write_node, again, *path;
    size_t depth;
    assert_int_equal(labels_init(&labels, profile), 0);
    add_path(&tree, &labels, (const char *const[]){"main", "serve", "read", NULL}, 5, &read_node);
    add_path(&tree, &labels, (const char *const[]){"main", "serve", "write", NULL}, 7, &write_node);
    add_path(&tree, &labels, (const char *const[]){"main", "serve", "read", NULL}, 1, &again);
    assert_int_equal(again, read_node);
    assert_int_equal(tree.count, 4);
    assert_int_equal(tree.total_ns, 13);
    assert_int_equal(tree.nodes[read_node].self_ns, 6);
    uint32_t serve = tree.nodes[read_node].caller;
    assert_int_equal(tree.nodes[write_node].caller, serve);
    assert_int_equal(tree.nodes[serve].self_ns, 0);
    assert_int_equal(tree.nodes[serve].total_ns, 13);
    assert_int_equal(call_tree_path(&tree, write_node, &path, &depth), 0);
    assert_int_equal(depth, 3);
    assert_string_equal(label_text(&labels, path[0]), "main");
    assert_string_equal(label_text(&labels, path[2]), "write");
    free(path);
    call_tree_free(&tree);
    labels_free(&labels);
    fgprof_profile_free(profile);
}

static void assert_path(const char *const *names, const char *expected)
{
    struct fgprof_profile *profile = make_profile();
    struct labels labels;
    struct call_tree tree = {0};
    struct buffer text = {0};
    uint32_t node;
    assert_int_equal(labels_init(&labels, profile), 0);
    add_path(&tree, &labels, names, 1, &node);
    call_tree_append_path(&text, &tree, node, &labels);
    assert_string_equal(text.bytes, expected);
    buffer_free(&text);
    call_tree_free(&tree);
    labels_free(&labels);
    fgprof_profile_free(profile);
}

static void test_paths_are_shortened(void **state)
{
    (void)state;
    assert_path((const char *const[]){"_start", "main", "read", NULL}, "main > read");
    assert_path((const char *const[]){"_start", NULL}, "_start");
    assert_path((const char *const[]){"main", "a_function_of_20_columns",
                                      "b_function_of_20_columns", "c_function_of_20_columns",
                                      "d_function_of_20_columns", NULL},
                "main > ... > c_function_of_20_columns > d_function_of_20_columns");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_from_both_ends),
        cmocka_unit_test(test_labels_of_a_stack),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_times_of_nodes),
        cmocka_unit_test(test_paths_are_shortened),
    };
    return cmocka_run_group_tests_name("call_tree", tests, NULL, NULL);
}
