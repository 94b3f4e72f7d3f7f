#include "cli/top/states.h"

#include <curses.h>

const enum fgprof_state top_state_order[FGPROF_STATE_COUNT] = {
    FGPROF_STATE_RUNNING, FGPROF_STATE_RUNNABLE, FGPROF_STATE_WAITING, FGPROF_STATE_STOPPED,
    FGPROF_STATE_UNKNOWN};

/* Colours are warm for threads that use or want a CPU and cool for those asleep, as on the page. */
static const struct {
    const char *name;
    char mark;
    short colour;
} looks[FGPROF_STATE_COUNT] = {
    [FGPROF_STATE_UNKNOWN] = {"unknown", '?', COLOR_MAGENTA},
    [FGPROF_STATE_RUNNING] = {"running", '#', COLOR_RED},
    [FGPROF_STATE_RUNNABLE] = {"waiting for CPU", '=', COLOR_YELLOW},
    [FGPROF_STATE_WAITING] = {"asleep", '.', COLOR_BLUE},
    [FGPROF_STATE_STOPPED] = {"stopped", 'T', COLOR_MAGENTA},
};

const char *top_state_name(enum fgprof_state state)
{
    return looks[state].name;
}

char top_state_mark(enum fgprof_state state)
{
    return looks[state].mark;
}

void top_states_set_colours(void)
{
    for (short i = 0; i < FGPROF_STATE_COUNT; i++)
        init_pair((short)(i + 1), looks[i].colour, -1);
}

void top_state_on(enum fgprof_state state)
{
    if (has_colors())
        attron(COLOR_PAIR((short)(state + 1)) | A_BOLD);
}

void top_state_off(void)
{
    for (short i = 0; i < FGPROF_STATE_COUNT && has_colors(); i++)
        attroff(COLOR_PAIR((short)(i + 1)) | A_BOLD);
}

void put_states(const uint64_t times_ns[FGPROF_STATE_COUNT], int columns)
{
    uint64_t all_ns = 0, passed_ns = 0;
    int drawn = 0;
    for (size_t i = 0; i < FGPROF_STATE_COUNT; i++)
        all_ns += times_ns[i];
    for (size_t i = 0; i < FGPROF_STATE_COUNT && all_ns; i++) {
        enum fgprof_state state = top_state_order[i];
        passed_ns += times_ns[state];
        int until = (int)(columns * ((double)passed_ns / (double)all_ns) + 0.5);
        top_state_on(state);
        for (; drawn < until; drawn++)
            addch((chtype)(unsigned char)looks[state].mark);
        top_state_off();
    }
    for (; drawn < columns; drawn++)
        addch(' ');
}
