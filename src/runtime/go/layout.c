#include "runtime/go/layout.h"

#include <stddef.h>

/* What scripts/go-layout prints for a program built by a version; it is the same in all releases of
 * the version, and on both architectures. Struct g, gobuf, m and sudog are in runtime/runtime2.go,
 * pollDesc in runtime/netpoll.go; each macro is named after the first version with that layout. */
#define G_18                                                                                       \
    .g_m = 48, .g_sched = 56, .g_status = 144, .g_id = 152, .g_wait_since = 168,                   \
    .g_wait_reason = 176, .g_locked = 232, .g_parent = GO_NOWHERE, .g_creator = 296,               \
    .g_start = 312, .g_labels = 360, .g_waiting = 328
#define G_21                                                                                       \
    .g_m = 48, .g_sched = 56, .g_status = 144, .g_id = 152, .g_wait_since = 168,                   \
    .g_wait_reason = 176, .g_locked = 208, .g_parent = 272, .g_creator = 280, .g_start = 296,      \
    .g_labels = 344, .g_waiting = 312
#define G_23                                                                                       \
    .g_m = 48, .g_sched = 56, .g_status = 152, .g_id = 160, .g_wait_since = 176,                   \
    .g_wait_reason = 184, .g_locked = 216, .g_parent = 280, .g_creator = 288, .g_start = 304,      \
    .g_labels = 352, .g_waiting = 320
#define G_26                                                                                       \
    .g_m = 48, .g_sched = 56, .g_status = 144, .g_id = 152, .g_wait_since = 168,                   \
    .g_wait_reason = 176, .g_locked = 208, .g_parent = 280, .g_creator = 288, .g_start = 304,      \
    .g_labels = 352, .g_waiting = 320
#define M_18 .gobuf_frame_pointer = 48, .m_thread = 72
#define M_25 .gobuf_frame_pointer = 40, .m_thread = 64
#define SUDOG_18 .sudog_element = 24, .sudog_link = 64, .sudog_channel = 80
#define SUDOG_26 .sudog_element = 24, .sudog_link = 72, .sudog_channel = 88
#define POLL_18 .poll_fd = 8, .poll_reader = 24, .poll_writer = 32
#define POLL_21 .poll_fd = 8, .poll_reader = 32, .poll_writer = 40

static const struct go_layout layouts[] = {
    {.minor = 18, G_18, .g_sequence = 189, M_18, SUDOG_18, POLL_18, .poll_self = 232},
    {.minor = 19, G_18, .g_sequence = 189, M_18, SUDOG_18, POLL_18, .poll_self = 232},
    {.minor = 20, G_18, .g_sequence = 189, M_18, SUDOG_18, POLL_18, .poll_self = 232},
    {.minor = 21, G_21, .g_sequence = 188, M_18, SUDOG_18, POLL_21, .poll_self = 240},
    {.minor = 22, G_21, .g_sequence = 191, M_18, SUDOG_18, POLL_21, .poll_self = 240},
    {.minor = 23, G_23, .g_sequence = 199, M_18, SUDOG_18, POLL_21, .poll_self = 256},
    {.minor = 24, G_23, .g_sequence = 199, M_18, SUDOG_18, POLL_21, .poll_self = 272},
    {.minor = 25, G_21, .g_sequence = 191, M_25, SUDOG_18, POLL_21, .poll_self = 288},
    {.minor = 26, G_26, .g_sequence = 191, M_25, SUDOG_26, POLL_21, .poll_self = 288},
    {.minor = 27, G_26, .g_sequence = 191, M_25, SUDOG_26, POLL_21, .poll_self = 288},
};

const struct go_layout *go_layout_of(unsigned minor)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if (layouts[i].minor == minor)
            return &layouts[i];
    }
    return NULL;
}

/* A version's waitReasonStrings (runtime/runtime2.go) are the rows that it has, in this order. */
static const struct {
    const char *text;
    unsigned first, last; /* minor versions */
    enum go_wait_kind kind;
} reasons[] = {
    {"", 18, 27, GO_WAIT_OTHER},
    {"GC assist marking", 18, 27, GO_WAIT_OTHER},
    {"IO wait", 18, 27, GO_WAIT_FILE},
    {"chan receive (nil chan)", 18, 25, GO_WAIT_OTHER},
    {"chan send (nil chan)", 18, 25, GO_WAIT_OTHER},
    {"dumping heap", 18, 27, GO_WAIT_OTHER},
    {"garbage collection", 18, 27, GO_WAIT_OTHER},
    {"garbage collection scan", 18, 27, GO_WAIT_OTHER},
    {"panicwait", 18, 27, GO_WAIT_OTHER},
    {"select", 18, 25, GO_WAIT_CHANNEL},
    {"select (no cases)", 18, 25, GO_WAIT_OTHER},
    {"GC assist wait", 18, 27, GO_WAIT_OTHER},
    {"GC sweep wait", 18, 27, GO_WAIT_OTHER},
    {"GC scavenge wait", 18, 27, GO_WAIT_OTHER},
    {"chan receive", 18, 25, GO_WAIT_CHANNEL},
    {"chan send", 18, 25, GO_WAIT_CHANNEL},
    {"finalizer wait", 18, 27, GO_WAIT_OTHER},
    {"force gc (idle)", 18, 27, GO_WAIT_OTHER},
    {"GOMAXPROCS updater (idle)", 25, 27, GO_WAIT_OTHER},
    {"semacquire", 18, 27, GO_WAIT_SEMAPHORE},
    {"sleep", 18, 27, GO_WAIT_OTHER},
    {"chan receive (nil chan)", 26, 27, GO_WAIT_OTHER},
    {"chan send (nil chan)", 26, 27, GO_WAIT_OTHER},
    {"select (no cases)", 26, 27, GO_WAIT_OTHER},
    {"select", 26, 27, GO_WAIT_CHANNEL},
    {"chan receive", 26, 27, GO_WAIT_CHANNEL},
    {"chan send", 26, 27, GO_WAIT_CHANNEL},
    {"sync.Cond.Wait", 18, 27, GO_WAIT_CONDITION},
    {"sync.Mutex.Lock", 20, 27, GO_WAIT_MUTEX},
    {"sync.RWMutex.RLock", 20, 27, GO_WAIT_READ_LOCK},
    {"sync.RWMutex.Lock", 20, 27, GO_WAIT_WRITE_LOCK},
    {"sync.WaitGroup.Wait", 24, 27, GO_WAIT_GROUP},
    {"timer goroutine (idle)", 18, 19, GO_WAIT_OTHER},
    {"trace reader (blocked)", 18, 27, GO_WAIT_OTHER},
    {"wait for GC cycle", 18, 27, GO_WAIT_OTHER},
    {"GC worker (idle)", 18, 27, GO_WAIT_OTHER},
    {"GC worker (active)", 20, 27, GO_WAIT_OTHER},
    {"preempted", 18, 27, GO_WAIT_OTHER},
    {"debug call", 18, 27, GO_WAIT_OTHER},
    {"GC mark termination", 20, 27, GO_WAIT_OTHER},
    {"stopping the world", 20, 27, GO_WAIT_OTHER},
    {"flushing proc caches", 22, 27, GO_WAIT_OTHER},
    {"trace goroutine status", 22, 27, GO_WAIT_OTHER},
    {"trace proc status", 22, 27, GO_WAIT_OTHER},
    {"page trace flush", 22, 27, GO_WAIT_OTHER},
    {"coroutine", 22, 27, GO_WAIT_OTHER},
    {"GC weak to strong wait", 24, 27, GO_WAIT_OTHER},
    {"synctest.Run", 24, 27, GO_WAIT_OTHER},
    {"synctest.Wait", 24, 27, GO_WAIT_OTHER},
    {"chan receive (durable)", 25, 27, GO_WAIT_CHANNEL},
    {"chan send (durable)", 25, 27, GO_WAIT_CHANNEL},
    {"select (durable)", 25, 27, GO_WAIT_CHANNEL},
    {"sync.WaitGroup.Wait (durable)", 25, 27, GO_WAIT_GROUP},
    {"cleanup wait", 25, 27, GO_WAIT_OTHER},
    {"chan receive (synctest)", 24, 24, GO_WAIT_CHANNEL},
    {"chan send (synctest)", 24, 24, GO_WAIT_CHANNEL},
    {"select (synctest)", 24, 24, GO_WAIT_CHANNEL},
};

/* The row of a version's reason; the table's size: it has none. */
static size_t find_reason(unsigned minor, unsigned reason)
{
    unsigned number = 0;
    size_t i = 0;
    for (; i < sizeof reasons / sizeof *reasons; i++) {
        if (minor >= reasons[i].first && minor <= reasons[i].last && number++ == reason)
            break;
    }
    return i;
}

const char *go_wait_reason(unsigned minor, unsigned reason)
{
    size_t row = find_reason(minor, reason);
    return row < sizeof reasons / sizeof *reasons ? reasons[row].text : "unknown wait reason";
}

enum go_wait_kind go_wait_kind(unsigned minor, unsigned reason)
{
    size_t row = find_reason(minor, reason);
    return row < sizeof reasons / sizeof *reasons ? reasons[row].kind : GO_WAIT_OTHER;
}
