/* `top`: shows live where the time goes. */
#include "cli/commands.h"
#include "cli/new_recorder.h"
#include "cli/targets.h"
#include "cli/top/keys.h"
#include "cli/top/source.h"
#include "cli/top/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define RESIZE_MS 250 /* a resized window is drawn anew within this time */

struct top {
    struct top_screen screen;
    struct top_source source;
    int signal_fd;
    struct top_keys keys;
    int error;
};

/* Shows a new view. The part of a second after the last whole one is too short to say much, so at
 * the end the last whole second stays as the recent one. */
static void show_view(struct top_screen *screen, struct top_view *view)
{
    const struct top_choice *choice = &screen->choice;
    struct top_view **old = screen->has_ended && screen->before ? &screen->now : &screen->before;
    if (*old != screen->base)
        top_view_free(*old);
    if (old == &screen->before)
        screen->before = screen->now;
    screen->now = view;
    if (choice->kept != FGPROF_KEPT_ALL || choice->tid || choice->hides_idle)
        top_screen_count(screen);
}

/* Takes a new view, unless the view is held. Returns whether anything has changed. */
static bool take_view(struct top *top)
{
    struct top_screen *screen = &top->screen;
    bool has_ended;
    if (screen->is_held)
        return false;
    struct top_view *view = top_source_take(&top->source, &has_ended, &top->error);
    bool is_new = view || has_ended != screen->has_ended;
    screen->has_ended = has_ended;
    if (view)
        show_view(screen, view);
    return is_new;
}

/* Shows views until the user quits or sampling fails. */
static void show(struct top *top)
{
    top_screen_draw(&top->screen);
    while (!top->keys.must_quit && !top->error) {
        if (take_view(top))
            top_screen_draw(&top->screen);
        struct pollfd files[] = {
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = top->screen.is_held ? -1 : top->source.wake_fd, .events = POLLIN},
            {.fd = top->signal_fd, .events = POLLIN}};
        poll(files, 3, RESIZE_MS);
        struct signalfd_siginfo info;
        if (read(top->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
            return;
        /* the terminal is gone */
        if (files[0].revents & (POLLHUP | POLLERR | POLLNVAL))
            return;
        while (!top->keys.must_quit && top_keys_take(&top->keys, &top->screen))
            top_screen_draw(&top->screen);
    }
}

/* The sampling thread takes SIGCHLD. Ctrl-Z would also keep a thread stopped that is being sampled
 * at that moment. */
static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGQUIT);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGTSTP, SIG_IGN);
    return fd;
}

static void free_views(struct top_screen *screen)
{
    if (screen->base != screen->now && screen->base != screen->before)
        top_view_free(screen->base);
    top_view_free(screen->before);
    top_view_free(screen->now);
    top_filter_free(&screen->filter);
}

/* Returns whether the view was shown. */
static bool run(struct top *top, fgprof_recorder *recorder)
{
    top->signal_fd = open_signals();
    if (!top_terminal_open())
        return false;
    int err = top_source_start(&top->source, recorder);
    if (!err)
        show(top);
    top_terminal_close();
    if (!err)
        top_source_stop(&top->source);
    free_views(&top->screen);
    err = err ? err : top->error;
    if (err)
        fprintf(stderr, "fgprof-c: sampling failed: %s\n", strerror(-err));
    return !err;
}

/* Names the chosen processes, for the header. */
static void name_target(const struct cli_options *options, char *name, size_t name_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < options->pid_count && used < name_bytes; i++) {
        char process[32];
        fgprof_process_name(options->pids[i], process, sizeof process);
        used += (size_t)snprintf(name + used, name_bytes - used, "%s%s %d", i ? ", " : "", process,
                                 (int)options->pids[i]);
    }
    if (options->pgrep && used < name_bytes)
        snprintf(name + used, name_bytes - used, "%s%s", used ? " and " : "", options->pgrep);
}

int command_top(const struct cli_options *options)
{
    char name[128] = "";
    struct top top = {.screen = {.target = name}, .signal_fd = -1};
    bool was_shown = false;
    fgprof_recorder *recorder = NULL;
    fgprof_options *library = options_for_library(options);
    name_target(options, name, sizeof name);
    if (library) {
        top_source_enable(&top.source, library);
        recorder = new_recorder(options, library);
    } else {
        fprintf(stderr, "fgprof-c: out of memory\n");
    }
    if (recorder && targets_attach(options, recorder))
        was_shown = run(&top, recorder);
    fgprof_recorder_free(recorder);
    fgprof_options_free(library);
    return was_shown ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}
