/* `top`: shows live where the time goes. */
#include "commands.h"
#include "new_recorder.h"
#include "targets.h"
#include "top_screen.h"
#include "top_terminal.h"
#include "top_write.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define REDRAW_MS 250 /* a window that was resized is drawn anew after at most so long */
#define KEY_ESCAPE 27

struct top {
    struct top_screen screen;
    struct top_source source;
    int signal_fd;
    bool is_writing; /* the prompt is for a file's name, else for a filter */
    bool must_quit;
    int error;
};

/* Takes what is new, unless the view is held. */
static void take_view(struct top *top)
{
    struct top_screen *screen = &top->screen;
    bool has_ended;
    if (screen->is_held)
        return;
    struct top_view *view = top_source_take(&top->source, &has_ended, &top->error);
    screen->has_ended = has_ended;
    if (!view)
        return;
    if (screen->is_on_cpu_only && top_view_count(view, FGPROF_KEPT_ON_CPU)) {
        top_view_free(view);
        return;
    }
    /* What came after the last whole second is too short to say much: the second stays. */
    if (has_ended && screen->before) {
        if (screen->now != screen->base)
            top_view_free(screen->now);
        screen->now = view;
        return;
    }
    if (screen->before != screen->base)
        top_view_free(screen->before);
    screen->before = screen->now;
    screen->now = view;
}

static void reset(struct top_screen *screen)
{
    if (screen->base != screen->before && screen->base != screen->now)
        top_view_free(screen->base);
    screen->base = screen->now;
}

static void toggle_on_cpu(struct top_screen *screen)
{
    struct top_view *views[] = {screen->now, screen->before, screen->base};
    screen->is_on_cpu_only = !screen->is_on_cpu_only;
    for (size_t i = 0; i < 3; i++) {
        if (views[i])
            top_view_count(views[i], screen->is_on_cpu_only ? FGPROF_KEPT_ON_CPU : FGPROF_KEPT_ALL);
    }
}

static void set_filter(struct top_screen *screen)
{
    char why[128];
    if (screen->has_filter)
        regfree(&screen->filter);
    screen->has_filter = false;
    screen->scroll = 0;
    if (!*screen->input)
        return;
    int err = regcomp(&screen->filter, screen->input, REG_EXTENDED | REG_NOSUB);
    if (err) {
        regerror(err, &screen->filter, why, sizeof why);
        snprintf(screen->message, sizeof screen->message, "no filter: %s", why);
        return;
    }
    screen->has_filter = true;
    snprintf(screen->filter_text, sizeof screen->filter_text, "%.*s",
             (int)sizeof screen->filter_text - 1, screen->input);
}

static void answer_prompt(struct top *top, int key)
{
    struct top_screen *screen = &top->screen;
    size_t length = strlen(screen->input);
    if (key == KEY_ESCAPE) {
        screen->prompt = NULL;
    } else if (key == '\r' || key == '\n' || key == KEY_ENTER) {
        screen->prompt = NULL;
        if (!top->is_writing)
            set_filter(screen);
        else if (*screen->input)
            top_write(screen->now->profile, screen->input, screen->message, sizeof screen->message);
    } else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length) {
        /* A character of several bytes goes whole: the bytes behind its first are 10xxxxxx. */
        while (--length && ((unsigned char)screen->input[length] & 0xc0) == 0x80) {
        }
        screen->input[length] = '\0';
    } else if (key >= ' ' && key < 256 && key != 127 && length + 1 < sizeof screen->input) {
        screen->input[length] = (char)key;
        screen->input[length + 1] = '\0';
    }
}

static void ask(struct top *top, const char *prompt, bool is_writing)
{
    top->screen.prompt = prompt;
    top->screen.input[0] = '\0';
    top->is_writing = is_writing;
}

static void sort_by(struct top_screen *screen, enum top_sort sort)
{
    screen->order.since_start =
        sort != TOP_BY_NAME && screen->order.sort == sort && !screen->order.since_start;
    screen->order.sort = sort;
    screen->scroll = 0;
}

static void scroll_by(struct top_screen *screen, long rows)
{
    bool is_before_first = rows < 0 && (size_t)-rows > screen->scroll;
    screen->scroll = is_before_first ? 0 : screen->scroll + (size_t)rows;
}

static void take_key(struct top *top, int key)
{
    struct top_screen *screen = &top->screen;
    long page = (long)top_screen_rows();
    screen->message[0] = '\0';
    switch (key) {
    case 'q':
        top->must_quit = true;
        break;
    case 's':
        sort_by(screen, TOP_BY_SELF);
        break;
    case 't':
        sort_by(screen, TOP_BY_TOTAL);
        break;
    case 'n':
        sort_by(screen, TOP_BY_NAME);
        break;
    case '/':
    case 'f':
        ask(top, "filter (a regular expression; empty: none): ", false);
        break;
    case 'w':
        if (screen->now)
            ask(top, "write to file (.folded .pb.gz ...): ", true);
        break;
    case 'T':
        screen->shows_threads = !screen->shows_threads;
        screen->scroll = 0;
        break;
    case 'i':
        toggle_on_cpu(screen);
        break;
    case 'h':
    case '?':
        screen->shows_help = !screen->shows_help;
        break;
    case ' ':
        screen->is_held = !screen->is_held;
        break;
    case 'r':
        reset(screen);
        break;
    case KEY_UP:
    case KEY_DOWN:
        scroll_by(screen, key == KEY_UP ? -1 : 1);
        break;
    case KEY_PPAGE:
    case KEY_NPAGE:
        scroll_by(screen, key == KEY_PPAGE ? -page : page);
        break;
    case KEY_HOME:
        screen->scroll = 0;
        break;
    default:
        break;
    }
}

static void take_keys(struct top *top)
{
    int key;
    while (!top->must_quit && (key = getch()) != ERR) {
        if (key == KEY_RESIZE)
            continue;
        if (top->screen.prompt)
            answer_prompt(top, key);
        else
            take_key(top, key);
    }
}

/* Until it is to end. Returns the signal that ended it, or 0. */
static int show(struct top *top)
{
    while (!top->must_quit && !top->error) {
        take_view(top);
        top_screen_draw(&top->screen);
        struct pollfd files[] = {
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = top->screen.is_held ? -1 : top->source.wake_fd, .events = POLLIN},
            {.fd = top->signal_fd, .events = POLLIN}};
        poll(files, 3, REDRAW_MS);
        struct signalfd_siginfo info;
        if (read(top->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
            return (int)info.ssi_signo;
        /* The terminal is gone. */
        if (files[0].revents & (POLLHUP | POLLERR | POLLNVAL))
            return SIGHUP;
        take_keys(top);
    }
    return 0;
}

/* SIGCHLD is for the thread that samples; Ctrl-Z would leave a thread that is just being sampled
 * stopped for as long. */
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
    if (screen->has_filter)
        regfree(&screen->filter);
}

/* Returns whether it was shown. */
static bool run(struct top *top, fgprof_recorder *recorder)
{
    top->signal_fd = open_signals();
    if (!top_terminal_open())
        return false;
    int err = top_source_start(&top->source, recorder);
    int signal_number = err ? 0 : show(top);
    top_terminal_close();
    if (!err)
        top_source_stop(&top->source);
    free_views(&top->screen);
    err = err ? err : top->error;
    if (err)
        fprintf(stderr, "fgprof-c: sampling failed: %s\n", strerror(-err));
    (void)signal_number;
    return !err;
}

/* Of the header: what was asked for. */
static void name_target(const struct cli_options *options, char *name, size_t name_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < options->pid_count && used < name_bytes; i++)
        used += (size_t)snprintf(name + used, name_bytes - used, "%s%d", i ? "," : "pid ",
                                 (int)options->pids[i]);
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
