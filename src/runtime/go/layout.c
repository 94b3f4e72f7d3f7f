#include "runtime/go/layout.h"

#include <stddef.h>

/* Each row is what scripts/go-layout prints of a program that this version built; it is the same in
 * all its releases, and on both architectures (struct g, gobuf and m in runtime/runtime2.go). */
static const struct go_layout layouts[] = {
    {18, 48, 56, 144, 152, 168, 176, 189, 232, GO_NOWHERE, 296, 312, 360, 48, 72},
    {19, 48, 56, 144, 152, 168, 176, 189, 232, GO_NOWHERE, 296, 312, 360, 48, 72},
    {20, 48, 56, 144, 152, 168, 176, 189, 232, GO_NOWHERE, 296, 312, 360, 48, 72},
    {21, 48, 56, 144, 152, 168, 176, 188, 208, 272, 280, 296, 344, 48, 72},
    {22, 48, 56, 144, 152, 168, 176, 191, 208, 272, 280, 296, 344, 48, 72},
    {23, 48, 56, 152, 160, 176, 184, 199, 216, 280, 288, 304, 352, 48, 72},
    {24, 48, 56, 152, 160, 176, 184, 199, 216, 280, 288, 304, 352, 48, 72},
    {25, 48, 56, 144, 152, 168, 176, 191, 208, 272, 280, 296, 344, 40, 64},
    {26, 48, 56, 144, 152, 168, 176, 191, 208, 280, 288, 304, 352, 40, 64},
    {27, 48, 56, 144, 152, 168, 176, 191, 208, 280, 288, 304, 352, 40, 64},
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
} reasons[] = {
    {"", 18, 27},
    {"GC assist marking", 18, 27},
    {"IO wait", 18, 27},
    {"chan receive (nil chan)", 18, 25},
    {"chan send (nil chan)", 18, 25},
    {"dumping heap", 18, 27},
    {"garbage collection", 18, 27},
    {"garbage collection scan", 18, 27},
    {"panicwait", 18, 27},
    {"select", 18, 25},
    {"select (no cases)", 18, 25},
    {"GC assist wait", 18, 27},
    {"GC sweep wait", 18, 27},
    {"GC scavenge wait", 18, 27},
    {"chan receive", 18, 25},
    {"chan send", 18, 25},
    {"finalizer wait", 18, 27},
    {"force gc (idle)", 18, 27},
    {"GOMAXPROCS updater (idle)", 25, 27},
    {"semacquire", 18, 27},
    {"sleep", 18, 27},
    {"chan receive (nil chan)", 26, 27},
    {"chan send (nil chan)", 26, 27},
    {"select (no cases)", 26, 27},
    {"select", 26, 27},
    {"chan receive", 26, 27},
    {"chan send", 26, 27},
    {"sync.Cond.Wait", 18, 27},
    {"sync.Mutex.Lock", 20, 27},
    {"sync.RWMutex.RLock", 20, 27},
    {"sync.RWMutex.Lock", 20, 27},
    {"sync.WaitGroup.Wait", 24, 27},
    {"timer goroutine (idle)", 18, 19},
    {"trace reader (blocked)", 18, 27},
    {"wait for GC cycle", 18, 27},
    {"GC worker (idle)", 18, 27},
    {"GC worker (active)", 20, 27},
    {"preempted", 18, 27},
    {"debug call", 18, 27},
    {"GC mark termination", 20, 27},
    {"stopping the world", 20, 27},
    {"flushing proc caches", 22, 27},
    {"trace goroutine status", 22, 27},
    {"trace proc status", 22, 27},
    {"page trace flush", 22, 27},
    {"coroutine", 22, 27},
    {"GC weak to strong wait", 24, 27},
    {"synctest.Run", 24, 27},
    {"synctest.Wait", 24, 27},
    {"chan receive (durable)", 25, 27},
    {"chan send (durable)", 25, 27},
    {"select (durable)", 25, 27},
    {"sync.WaitGroup.Wait (durable)", 25, 27},
    {"cleanup wait", 25, 27},
    {"chan receive (synctest)", 24, 24},
    {"chan send (synctest)", 24, 24},
    {"select (synctest)", 24, 24},
};

const char *go_wait_reason(unsigned minor, unsigned reason)
{
    unsigned number = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (minor >= reasons[i].first && minor <= reasons[i].last && number++ == reason)
            return reasons[i].text;
    }
    return "unknown wait reason";
}
