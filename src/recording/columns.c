#include "recording/columns.h"
#include "base/array.h"

#include <errno.h>
#include <string.h>

static const struct {
    size_t items, count, capacity, row_bytes;
} tables[TABLE_COUNT] = {
#define TABLE(items, count, capacity)                                                              \
    {                                                                                              \
        offsetof(struct fgprof_profile, items), offsetof(struct fgprof_profile, count),            \
            offsetof(struct fgprof_profile, capacity), sizeof *((struct fgprof_profile *)0)->items \
    }
    [TABLE_STRINGS] = TABLE(strings.items, strings.count, strings.capacity),
    [TABLE_FUNCTIONS] = TABLE(functions, function_count, function_capacity),
    [TABLE_LINES] = TABLE(lines, line_count, line_capacity),
    [TABLE_MAPPINGS] = TABLE(mappings, mapping_count, mapping_capacity),
    [TABLE_LOCATIONS] = TABLE(locations, location_count, location_capacity),
    [TABLE_STACK_LOCATIONS] = TABLE(stack_locations, stack_location_count, stack_location_capacity),
    [TABLE_STACKS] = TABLE(stacks, stack_count, stack_capacity),
    [TABLE_SAMPLES] = TABLE(samples, sample_count, sample_capacity),
    [TABLE_UNREADABLE] = TABLE(unreadable, unreadable_count, unreadable_capacity),
    [TABLE_PROCESSES] = TABLE(processes, process_count, process_capacity),
    [TABLE_TIMELINES] = TABLE(timelines, timeline_count, timeline_capacity),
    [TABLE_RUNS] = TABLE(runs, run_count, run_capacity),
    [TABLE_TICK_RUNS] = TABLE(tick_runs, tick_run_count, tick_run_capacity),
    [TABLE_WAITS] = TABLE(waits, wait_count, wait_capacity),
    [TABLE_DEADLOCKS] = TABLE(deadlocks, deadlock_count, deadlock_capacity),
    [TABLE_PARALLELISM] = TABLE(parallel_ns, parallel_count, parallel_capacity),
    [TABLE_LABELS] = TABLE(labels, label_count, label_capacity),
    [TABLE_LABEL_SETS] = TABLE(label_sets, label_set_count, label_set_capacity),
    [TABLE_BIRTHS] = TABLE(births, birth_count, birth_capacity),
};

#define FIELD(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)
#define ROW(number, table, type, field, kind, of)                                                  \
    {                                                                                              \
        number, TABLE_##table, FIELD(type, field), kind, TABLE_##of                                \
    }
#define NUMBER(number, table, type, field) ROW(number, table, type, field, COLUMN_NUMBER, RECORDING)
#define BOOL(number, table, type, field) ROW(number, table, type, field, COLUMN_BOOL, RECORDING)
#define STRING(number, table, type, field) ROW(number, table, type, field, COLUMN_ROW, STRINGS)
#define SUMMARY(number, field) NUMBER(number, RECORDING, fgprof_profile, summary.field)

/* Numbers below 128 take one byte in a file. */
static const struct profile_column columns[] = {
    STRING(2, FUNCTIONS, profile_function, name),
    STRING(3, FUNCTIONS, profile_function, system_name),
    STRING(4, FUNCTIONS, profile_function, file),
    ROW(5, LINES, profile_line, function, COLUMN_ROW, FUNCTIONS),
    NUMBER(6, LINES, profile_line, line),
    BOOL(7, LINES, profile_line, is_inlined),
    NUMBER(8, MAPPINGS, profile_mapping, start),
    NUMBER(9, MAPPINGS, profile_mapping, limit),
    NUMBER(10, MAPPINGS, profile_mapping, offset),
    STRING(11, MAPPINGS, profile_mapping, path),
    STRING(12, MAPPINGS, profile_mapping, build_id),
    NUMBER(13, MAPPINGS, profile_mapping, bias),
    BOOL(14, MAPPINGS, profile_mapping, has_bias),
    BOOL(15, MAPPINGS, profile_mapping, is_sampled),
    BOOL(16, MAPPINGS, profile_mapping, has_functions),
    BOOL(17, MAPPINGS, profile_mapping, has_files),
    BOOL(18, MAPPINGS, profile_mapping, has_lines),
    BOOL(19, MAPPINGS, profile_mapping, has_inlined),
    NUMBER(20, LOCATIONS, profile_location, address),
    NUMBER(21, LOCATIONS, profile_location, function_offset),
    ROW(22, LOCATIONS, profile_location, mapping, COLUMN_ROW_OR_NONE, MAPPINGS),
    NUMBER(23, LOCATIONS, profile_location, first_line),
    NUMBER(24, LOCATIONS, profile_location, line_count),
    ROW(25, LOCATIONS, profile_location, jit_function_plus_1, COLUMN_ROW_PLUS_1, FUNCTIONS),
    BOOL(26, LOCATIONS, profile_location, has_debug_info),
    BOOL(27, LOCATIONS, profile_location, is_kernel),
    BOOL(28, LOCATIONS, profile_location, is_note),
    {29, TABLE_STACK_LOCATIONS, 0, sizeof(uint32_t), COLUMN_ROW, TABLE_LOCATIONS},
    NUMBER(30, STACKS, profile_stack, first_location),
    NUMBER(31, STACKS, profile_stack, depth),
    ROW(32, SAMPLES, profile_sample, stack, COLUMN_ROW, STACKS),
    STRING(33, SAMPLES, profile_sample, thread_name),
    NUMBER(34, SAMPLES, profile_sample, tid),
    ROW(35, SAMPLES, profile_sample, state, COLUMN_STATE, STRINGS),
    STRING(36, SAMPLES, profile_sample, syscall_name),
    STRING(37, SAMPLES, profile_sample, wait_channel),
    NUMBER(38, SAMPLES, profile_sample, count),
    NUMBER(39, SAMPLES, profile_sample, time_ns),
    {40, TABLE_UNREADABLE, 0, sizeof(uint32_t), COLUMN_ROW, TABLE_STRINGS},
    NUMBER(41, RECORDING, fgprof_profile, start_time_ns),
    NUMBER(42, RECORDING, fgprof_profile, period_ns),
    SUMMARY(43, elapsed_ns),
    SUMMARY(44, ticks_planned),
    SUMMARY(45, ticks_taken),
    SUMMARY(46, ticks_late),
    SUMMARY(47, threads_seen),
    SUMMARY(48, samples),
    SUMMARY(49, samples_cut),
    SUMMARY(50, samples_unnamed),
    SUMMARY(51, samples_not_captured),
    SUMMARY(52, samples_assumed),
    SUMMARY(53, stacks),
    SUMMARY(54, modules_unreadable),
    SUMMARY(55, samples_thinned),
    BOOL(56, RECORDING, fgprof_profile, summary.lacks_files),
    SUMMARY(57, jit_files_refused),
    SUMMARY(58, jit_bytes_unread),
    SUMMARY(59, pauses),
    SUMMARY(60, pause_median_ns),
    SUMMARY(61, pause_p99_ns),
    SUMMARY(62, pause_max_ns),
    SUMMARY(63, pause_share), /* as its bits (IEEE 754) */
    SUMMARY(64, running_ns),
    SUMMARY(65, runnable_ns),
    SUMMARY(66, waiting_ns),
    SUMMARY(67, stopped_ns),
    SUMMARY(68, unknown_ns),
    SUMMARY(69, error), /* two's complement */
    SUMMARY(70, processes_seen),
    SUMMARY(71, processes_refused),
    SUMMARY(72, threads_chosen),
    SUMMARY(73, threads_idle),
    SUMMARY(74, idle_ns),
    SUMMARY(75, timeline_lost_ns),
    NUMBER(76, PROCESSES, profile_process, pid),
    STRING(77, PROCESSES, profile_process, name),
    ROW(78, SAMPLES, profile_sample, process, COLUMN_ROW, PROCESSES),
    BOOL(79, RECORDING, fgprof_profile, has_timelines),
    STRING(80, TIMELINES, profile_timeline, thread_name),
    NUMBER(81, TIMELINES, profile_timeline, tid),
    NUMBER(82, TIMELINES, profile_timeline, begin_ns),
    NUMBER(83, TIMELINES, profile_timeline, lost_ns),
    NUMBER(84, TIMELINES, profile_timeline, first_run),
    NUMBER(85, TIMELINES, profile_timeline, run_count),
    ROW(86, RUNS, profile_run, sample, COLUMN_ROW_OR_NONE, SAMPLES),
    NUMBER(87, RUNS, profile_run, time_ns),
    /* 88 is COLUMN_RECORDED_BY. */
    SUMMARY(89, observations_put_off),
    SUMMARY(90, seed),
    SUMMARY(91, kernel_samples),
    SUMMARY(92, kernel_samples_lost),
    SUMMARY(93, kernel_samples_dropped),
    SUMMARY(94, threads_kernel_sampled),
    SUMMARY(95, threads_stopped),
    SUMMARY(96, kernel_refusal),
    STRING(97, WAITS, profile_wait, kind),
    STRING(98, WAITS, profile_wait, resource),
    ROW(99, WAITS, profile_wait, owner_process, COLUMN_ROW_OR_NONE, PROCESSES),
    STRING(100, WAITS, profile_wait, owner_name),
    NUMBER(101, WAITS, profile_wait, owner_tid),
    ROW(102, WAITS, profile_wait, owner_stack, COLUMN_ROW_OR_NONE, STACKS),
    ROW(103, WAITS, profile_wait, owner_wait_plus_1, COLUMN_ROW_PLUS_1, WAITS),
    STRING(190, WAITS, profile_wait, waker),
    ROW(191, WAITS, profile_wait, waker_process_plus_1, COLUMN_ROW_PLUS_1, PROCESSES),
    NUMBER(192, WAITS, profile_wait, waker_tid),
    ROW(193, WAITS, profile_wait, waker_stack_plus_1, COLUMN_ROW_PLUS_1, STACKS),
    STRING(194, WAITS, profile_wait, waker_path),
    ROW(104, WAITS, profile_wait, label, COLUMN_ROW, WAITS),
    ROW(105, SAMPLES, profile_sample, wait_plus_1, COLUMN_ROW_PLUS_1, WAITS),
    SUMMARY(106, threads_without_event),
    SUMMARY(107, threads_unsampled),
    SUMMARY(108, threads_waits_unseen),
    SUMMARY(109, event_refusal),
    SUMMARY(110, waits_refusal),
    BOOL(111, SAMPLES, profile_sample, never_moved),
    BOOL(112, RECORDING, fgprof_profile, has_elapsed),
    NUMBER(113, SAMPLES, profile_sample, elapsed_ns),
    {114, TABLE_PARALLELISM, 0, sizeof(uint64_t), COLUMN_NUMBER, TABLE_RECORDING},
    {115, TABLE_DEADLOCKS, 0, sizeof(uint32_t), COLUMN_ROW, TABLE_STRINGS},
    SUMMARY(116, deadlocks),
    BOOL(117, RECORDING, fgprof_profile, has_sleeps),
    NUMBER(118, SAMPLES, profile_sample, sleeps),
    STRING(119, PROCESSES, profile_process, title),
    /* 125 is COLUMN_HOST, 126 COLUMN_REASON. */
    STRING(130, LABELS, profile_label, key),
    STRING(131, LABELS, profile_label, value),
    NUMBER(132, LABEL_SETS, profile_label_set, first_label),
    NUMBER(133, LABEL_SETS, profile_label_set, label_count),
    ROW(134, SAMPLES, profile_sample, label_set_plus_1, COLUMN_ROW_PLUS_1, LABEL_SETS),
    SUMMARY(135, labels_read),
    SUMMARY(136, labels_later),
    SUMMARY(137, labels_changed),
    SUMMARY(138, labels_unreadable),
    SUMMARY(139, labels_bad),
    SUMMARY(140, labels_limited),
    SUMMARY(141, spans_kept),
    SUMMARY(142, spans_dropped),
    SUMMARY(143, spans_dropped_ns),
    SUMMARY(144, record_refusal),
    SUMMARY(145, recorded_samples),
    SUMMARY(146, recorded_lost),
    SUMMARY(147, waits_limited),
    BOOL(148, RECORDING, fgprof_profile, summary.ended_are_joined),
    SUMMARY(149, processes_joined),
    SUMMARY(158, samples_not_kept),
    SUMMARY(155, python_stacks),
    SUMMARY(156, python_stacks_missing),
    SUMMARY(157, python_version),
    SUMMARY(180, goroutine_ns),
    SUMMARY(181, threads_without_goroutine_ns),
    SUMMARY(182, goroutines_moved),
    SUMMARY(183, goroutines_left_out),
    SUMMARY(184, go_version),
    SUMMARY(195, goroutines_unreadable),
    BOOL(185, SAMPLES, profile_sample, is_goroutine),
    SUMMARY(200, task_ns),
    SUMMARY(201, tasks_moved),
    SUMMARY(202, tasks_cut),
    SUMMARY(203, tasks_version),
    SUMMARY(230, throttled_ns),
    SUMMARY(231, quota_millicpu),
    SUMMARY(232, steal_ns),
    BOOL(233, RECORDING, fgprof_profile, summary.has_kernel_samples),
    BOOL(234, RECORDING, fgprof_profile, summary.has_thread_events),
    BOOL(235, RECORDING, fgprof_profile, summary.has_switch_record),
    SUMMARY(236, kernel_names_refusal),
    SUMMARY(237, filter_refusal),
    SUMMARY(238, hidden_returns),
    SUMMARY(239, sees_user_only),
    SUMMARY(240, wakes_lost),
    SUMMARY(241, switches_unrecorded),
    BOOL(204, SAMPLES, profile_sample, is_task),
    SUMMARY(214, critical_lost_ns),
    NUMBER(215, TIMELINES, profile_timeline, first_tick),
    NUMBER(216, TIMELINES, profile_timeline, first_tick_run),
    NUMBER(217, TIMELINES, profile_timeline, tick_run_count),
    ROW(218, TICK_RUNS, profile_tick_run, sample, COLUMN_ROW_OR_NONE, SAMPLES),
    NUMBER(219, TICK_RUNS, profile_tick_run, ticks),
    BOOL(220, TICK_RUNS, profile_tick_run, is_inferred),
    NUMBER(205, SAMPLES, profile_sample, goroutine),
    NUMBER(150, BIRTHS, profile_birth, tid),
    STRING(151, BIRTHS, profile_birth, maker),
    STRING(152, BIRTHS, profile_birth, function),
    /* Only files of version 2 have these, of profiles of objects: */
    ROW(160, RECORDING, fgprof_profile, kind, COLUMN_KIND, STRINGS),
    STRING(161, RECORDING, fgprof_profile, objects.name),
    NUMBER(162, RECORDING, fgprof_profile, objects.rate),
    NUMBER(163, RECORDING, fgprof_profile, objects.made_lost),
    NUMBER(164, RECORDING, fgprof_profile, objects.gone_lost),
    NUMBER(165, RECORDING, fgprof_profile, objects.resident_peak),
    NUMBER(166, RECORDING, fgprof_profile, objects.heap_arena),
    NUMBER(167, RECORDING, fgprof_profile, objects.heap_mmap),
    NUMBER(168, RECORDING, fgprof_profile, objects.heap_used),
    NUMBER(169, RECORDING, fgprof_profile, objects.heap_free),
    NUMBER(170, SAMPLES, profile_sample, object_bytes),
    NUMBER(171, SAMPLES, profile_sample, made),
    NUMBER(172, SAMPLES, profile_sample, gone),
    BOOL(173, RECORDING, fgprof_profile, is_difference),
    BOOL(174, RECORDING, fgprof_profile, summary.allocator_is_own),
};

size_t profile_column_count(void)
{
    return sizeof columns / sizeof *columns;
}

const struct profile_column *profile_column(size_t i)
{
    return &columns[i];
}

size_t profile_rows(const struct fgprof_profile *profile, enum profile_table table)
{
    size_t rows = 1;
    if (table != TABLE_RECORDING)
        memcpy(&rows, (const char *)profile + tables[table].count, sizeof rows);
    return rows;
}

bool profile_column_is_optional(const struct profile_column *column)
{
    return column->number > COLUMN_REQUIRED_MAX;
}

size_t profile_row_bytes(enum profile_table table)
{
    return tables[table].row_bytes;
}

static char *first_row(const struct fgprof_profile *profile, enum profile_table table)
{
    char *row = (char *)profile;
    if (table != TABLE_RECORDING)
        memcpy(&row, (const char *)profile + tables[table].items, sizeof row);
    return row;
}

int profile_make_rows(struct fgprof_profile *profile, enum profile_table table, size_t rows)
{
    char *begin = (char *)profile;
    if (table == TABLE_RECORDING || !rows)
        return 0;
    /* Copied as bytes, because the pointer has another type. */
    void *items;
    size_t capacity;
    memcpy(&items, begin + tables[table].items, sizeof items);
    memcpy(&capacity, begin + tables[table].capacity, sizeof capacity);
    items = array_grow(items, &capacity, rows, tables[table].row_bytes);
    if (capacity < rows)
        return -ENOMEM;
    memset(items, 0, rows * tables[table].row_bytes);
    memcpy(begin + tables[table].items, &items, sizeof items);
    memcpy(begin + tables[table].capacity, &capacity, sizeof capacity);
    memcpy(begin + tables[table].count, &rows, sizeof rows);
    return 0;
}

static char *cell(const struct fgprof_profile *profile, const struct profile_column *column,
                  size_t row)
{
    return first_row(profile, column->table) + row * tables[column->table].row_bytes +
           column->offset;
}

/* Numbers in memory are little-endian on both architectures. */
uint64_t profile_cell(const struct fgprof_profile *profile, const struct profile_column *column,
                      size_t row)
{
    uint64_t value = 0;
    memcpy(&value, cell(profile, column, row), column->bytes);
    return value;
}

static bool is_kept_kind(uint64_t value)
{
    return value == FGPROF_KIND_WALL || (value >= FGPROF_KIND_HEAP && value <= FGPROF_KIND_CUSTOM);
}

bool profile_set_cell(struct fgprof_profile *profile, const struct profile_column *column,
                      size_t row, uint64_t value)
{
    size_t rows = profile_rows(profile, column->of);
    if (column->bytes < sizeof value && value >> 8 * column->bytes)
        return false;
    if ((column->kind == COLUMN_BOOL && value > 1) ||
        (column->kind == COLUMN_STATE && value >= THREAD_STATE_COUNT) ||
        (column->kind == COLUMN_KIND && !is_kept_kind(value)) ||
        (column->kind == COLUMN_ROW && value >= rows) ||
        (column->kind == COLUMN_ROW_OR_NONE && value >= rows && value != UINT32_MAX) ||
        (column->kind == COLUMN_ROW_PLUS_1 && value > rows))
        return false;
    memcpy(cell(profile, column, row), &value, column->bytes);
    return true;
}
