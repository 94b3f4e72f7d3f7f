/* `top`: shows live where the time goes. */
#include "cli/commands.h"
#include "cli/run_recorder.h"
#include "cli/select_pids.h"
#include "cli/top/view.h"
#include "cli/options/formats.h"
#include "cli/output_file.h"
#include "base/utf8.h"
#include "cli/top/screen.h"
#include "cli/say.h"

#include <curses.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

/* What the keys of `top` do. */
struct top_keys {
    bool is_writing; /* the prompt asks for a file name; else for a filter */
    bool must_quit;
};

#define KEY_ESCAPE 27

static void reset(struct top_screen *screen)
{
    if (screen->base != screen->before && screen->base != screen->now)
        top_view_free(screen->base);
    screen->base = screen->now;
}

static void choose(struct top_screen *screen)
{
    screen->scroll = 0;
    top_screen_count(screen);
}

static void choose_thread(struct top_screen *screen, pid_t tid)
{
    if (!screen->now || screen->choice.tid == tid)
        return;
    screen->choice.tid = tid;
    screen->pane = TOP_FUNCTIONS;
    snprintf(screen->thread_name, sizeof screen->thread_name, "%s", screen->cursor_name);
    choose(screen);
}

static void set_filter(struct top_screen *screen)
{
    char why[128];
    top_filter_set(&screen->filter, screen->input, why, sizeof why);
    screen->scroll = 0;
    if (*why)
        snprintf(screen->message, sizeof screen->message,
                 "searched as plain text, because it is not a regular expression: %s", why);
}

/* Writes the profile to the file that the user named, completely or not at all. Its ending selects
 * the format. */
static void write_profile(struct top_screen *screen)
{
    enum fgprof_format format;
    struct output_file file;
    if (!format_of_ending(screen->input, &format)) {
        snprintf(screen->message, sizeof screen->message,
                 "not written: the ending names no format; use one such as .folded or .pb.gz");
        return;
    }
    if (format_of_order(format)) {
        snprintf(screen->message, sizeof screen->message,
                 "not written: top does not record when threads were where, which %s shows",
                 format_of_order(format));
        return;
    }
    int err = output_file_open(&file, screen->input);
    if (!err) {
        err = fgprof_profile_write(screen->now->profile, format, file.fd);
        if (!err)
            err = output_file_commit(&file);
        else
            output_file_abandon(&file);
    }
    if (err)
        snprintf(screen->message, sizeof screen->message, "not written to %s: %s", screen->input,
                 strerror(-err));
    else
        snprintf(screen->message, sizeof screen->message, "written to %s", screen->input);
}

static void answer_prompt(const struct top_keys *keys, struct top_screen *screen, int key)
{
    size_t length = strlen(screen->input);
    if (key == KEY_ESCAPE) {
        screen->prompt = NULL;
    } else if (key == '\r' || key == '\n' || key == KEY_ENTER) {
        screen->prompt = NULL;
        if (!keys->is_writing)
            set_filter(screen);
        else if (*screen->input)
            write_profile(screen);
    } else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && length) {
        /* Delete all bytes of a character. */
        while (--length && utf8_continues(screen->input[length])) {
        }
        screen->input[length] = '\0';
    } else if (key >= ' ' && key < 256 && key != 127 && length + 1 < sizeof screen->input) {
        screen->input[length] = (char)key;
        screen->input[length + 1] = '\0';
    }
}

static void ask(struct top_keys *keys, struct top_screen *screen, const char *prompt,
                bool is_writing)
{
    screen->prompt = prompt;
    screen->input[0] = '\0';
    keys->is_writing = is_writing;
}

static void sort_by(struct top_screen *screen, enum top_sort sort)
{
    screen->order.since_start =
        sort != TOP_BY_NAME && screen->order.sort == sort && !screen->order.since_start;
    screen->order.sort = sort;
    screen->scroll = 0;
}

static size_t moved(size_t from, long rows)
{
    return rows < 0 && (size_t)-rows > from ? 0 : from + (size_t)rows;
}

/* In the table of threads this moves the mark. Drawing keeps both within bounds. */
static void move_by(struct top_screen *screen, long rows)
{
    if (screen->pane == TOP_THREADS && !screen->shows_help)
        screen->cursor = moved(screen->cursor, rows);
    else
        screen->scroll = moved(screen->scroll, rows);
}

/* Shows the table, or that of functions if it is shown already. */
static void toggle_table(struct top_screen *screen, enum top_pane pane)
{
    screen->pane = screen->pane == pane ? TOP_FUNCTIONS : pane;
    screen->scroll = screen->cursor = 0;
}

/* Takes a key that moves up or down. Returns whether it was such a key. */
static bool take_moving_key(struct top_screen *screen, int key)
{
    long page = (long)top_screen_rows(), all = (long)screen->row_count;
    switch (key) {
    case KEY_UP:
    case KEY_DOWN:
        move_by(screen, key == KEY_UP ? -1 : 1);
        return true;
    case KEY_PPAGE:
    case KEY_NPAGE:
        move_by(screen, key == KEY_PPAGE ? -page : page);
        return true;
    case KEY_HOME:
    case KEY_END:
        move_by(screen, key == KEY_HOME ? -all : all);
        return true;
    default:
        return false;
    }
}

/* Handles a key that changes what is shown, or its order. Returns whether it was such a key. */
static bool take_showing_key(struct top_screen *screen, int key)
{
    switch (key) {
    case 's':
    case 't':
    case 'n':
        sort_by(screen, key == 's' ? TOP_BY_SELF : key == 't' ? TOP_BY_TOTAL : TOP_BY_NAME);
        return true;
    case 'T':
    case 'W':
        toggle_table(screen, key == 'T' ? TOP_THREADS : TOP_WAITS);
        return true;
    case 'i':
        screen->choice.kept =
            screen->choice.kept == FGPROF_KEPT_ALL ? FGPROF_KEPT_ON_CPU : FGPROF_KEPT_ALL;
        choose(screen);
        return true;
    case 'x':
        screen->choice.hides_idle = !screen->choice.hides_idle;
        choose(screen);
        return true;
    case '\r':
    case '\n':
    case KEY_ENTER:
        if (screen->pane == TOP_THREADS && screen->cursor_tid)
            choose_thread(screen, screen->cursor_tid);
        return true;
    case KEY_ESCAPE:
        choose_thread(screen, 0);
        return true;
    default:
        return false;
    }
}

static void take_key(struct top_keys *keys, struct top_screen *screen, int key)
{
    screen->message[0] = '\0';
    if (key == 'h' || key == '?' || (screen->shows_help && key == KEY_ESCAPE)) {
        screen->shows_help = !screen->shows_help;
        screen->scroll = 0;
        return;
    }
    if (take_moving_key(screen, key) || take_showing_key(screen, key))
        return;
    switch (key) {
    case 'q':
        keys->must_quit = true;
        break;
    case '/':
    case 'f':
        ask(keys, screen, "filter (regular expression; empty for none): ", false);
        break;
    case 'w':
        if (screen->now)
            ask(keys, screen, "write to file (.folded .pb.gz .html ...): ", true);
        break;
    case ' ':
        screen->is_held = !screen->is_held;
        break;
    case 'r':
        reset(screen);
        break;
    default:
        break;
    }
}

/* Takes the next key or resize of the window. Returns false if there was none. The screen must be
 * drawn before the next call, because the next key may refer to one of its rows. */
static bool top_keys_take(struct top_keys *keys, struct top_screen *screen)
{
    int key = getch();
    if (key == ERR)
        return false;
    if (screen->prompt)
        answer_prompt(keys, screen, key);
    else if (key != KEY_RESIZE)
        take_key(keys, screen, key);
    return true;
}

/* The terminal. Every way out restores it.
 *
 * Globals, because a signal handler gets no argument of ours. */
static struct termios modes_before;
static char leave[256]; /* restores the screen; a signal handler may not ask terminfo for it */
static bool is_open;

/* The program is about to crash. Only calls that signal-safety(7) lists are allowed. */
static void on_crash(int number)
{
    ssize_t written = write(STDOUT_FILENO, leave, strlen(leave));
    (void)written;
    tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
    signal(number, SIG_DFL);
    raise(number);
}

static void note_leave(const char *name)
{
    const char *text = tigetstr(name);
    if (text && text != (const char *)-1 && strlen(leave) + strlen(text) < sizeof leave)
        strcat(leave, text);
}

/* On failure, prints the reason on stderr and returns false. */
static bool top_terminal_open(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const char *name = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return say("top needs a terminal: use fgprof-c attach to write a file");
    setlocale(LC_ALL, "");
    SCREEN *screen = NULL;
    if (tcgetattr(STDIN_FILENO, &modes_before) == 0 && name && *name && strcmp(name, "dumb") != 0)
        screen = newterm(NULL, stdout, stdin);
    if (!screen || !tigetstr("cup") || tigetstr("cup") == (const char *)-1) {
        if (screen)
            endwin();
        return say("top can't draw on this terminal (TERM=%s): set TERM, or use fgprof-c attach",
                   name ? name : "");
    }
    is_open = true;
    note_leave("sgr0");
    note_leave("cnorm");
    note_leave("rmcup");
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        signal(crashes[i], on_crash);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    if (has_colors()) {
        start_color();
        use_default_colors();
        top_states_set_colours();
    }
    return true;
}

/* Restores the terminal. Harmless a second time. */
static void top_terminal_close(void)
{
    if (!is_open)
        return;
    is_open = false;
    endwin();
    tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
}

#define RESIZE_MS 250 /* a resized window is redrawn within this time */

struct top {
    struct top_screen screen;
    struct top_source source;
    int signal_fd;
    struct top_keys keys;
    int error;
};

/* Shows a new view. The partial second after the last whole one is too short to say much, so at the
 * end the last whole second stays on display. */
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

/* SIGCHLD is left to the sampling thread. SIGTSTP is ignored, because Ctrl-Z would also keep a
 * thread stopped that is being sampled at that moment. */
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
    return !err || say("sampling failed: %s", strerror(-err));
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
    const char *others = options->pgrep ? options->pgrep : options->cgroup;
    if (others && used < name_bytes)
        snprintf(name + used, name_bytes - used, "%s%s", used ? " and " : "", others);
}

int command_top(const struct cli_options *options)
{
    char name[128] = "";
    struct top top = {.screen = {.target = name, .choice.hides_idle = true}, .signal_fd = -1};
    bool was_shown = false;
    fgprof_recorder *recorder = NULL;
    fgprof_options *library = options_for_library(options);
    name_target(options, name, sizeof name);
    if (library) {
        top_source_enable(&top.source, library);
        recorder = new_recorder(options, library);
    } else {
        say("out of memory");
    }
    if (recorder && select_pids(options, recorder))
        was_shown = run(&top, recorder);
    fgprof_recorder_free(recorder);
    fgprof_options_free(library);
    return was_shown ? EXIT_WRITTEN : EXIT_NOT_WRITTEN;
}
