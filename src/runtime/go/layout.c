#include "runtime/go/layout.h"

#include <stddef.h>

/* Each row is what scripts/go-layout prints of a program that this version built; it is the same in
 * all its releases, and on both architectures (struct g, gobuf, m and sudog in
 * runtime/runtime2.go, pollDesc in runtime/netpoll.go). */
static const struct go_layout layouts[] = {
    {18,  48,  56, 144, 152, 168, 176, 189, 232, GO_NOWHERE, 296, 312,
     360, 328, 48, 72,  24,  64,  80,  8,   24,  32,         232},
    {19,  48,  56, 144, 152, 168, 176, 189, 232, GO_NOWHERE, 296, 312,
     360, 328, 48, 72,  24,  64,  80,  8,   24,  32,         232},
    {20,  48,  56, 144, 152, 168, 176, 189, 232, GO_NOWHERE, 296, 312,
     360, 328, 48, 72,  24,  64,  80,  8,   24,  32,         232},
    {21,  48,  56, 144, 152, 168, 176, 188, 208, 272, 280, 296,
     344, 312, 48, 72,  24,  64,  80,  8,   32,  40,  240},
    {22,  48,  56, 144, 152, 168, 176, 191, 208, 272, 280, 296,
     344, 312, 48, 72,  24,  64,  80,  8,   32,  40,  240},
    {23,  48,  56, 152, 160, 176, 184, 199, 216, 280, 288, 304,
     352, 320, 48, 72,  24,  64,  80,  8,   32,  40,  256},
    {24,  48,  56, 152, 160, 176, 184, 199, 216, 280, 288, 304,
     352, 320, 48, 72,  24,  64,  80,  8,   32,  40,  272},
    {25,  48,  56, 144, 152, 168, 176, 191, 208, 272, 280, 296,
     344, 312, 40, 64,  24,  64,  80,  8,   32,  40,  288},
    {26,  48,  56, 144, 152, 168, 176, 191, 208, 280, 288, 304,
     352, 320, 40, 64,  24,  72,  88,  8,   32,  40,  288},
    {27,  48,  56, 144, 152, 168, 176, 191, 208, 280, 288, 304,
     352, 320, 40, 64,  24,  72,  88,  8,   32,  40,  288},
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
