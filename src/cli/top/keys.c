#include "cli/top/keys.h"
#include "cli/options/formats.h"
#include "cli/output_file.h"
#include "base/utf8.h"

#include <curses.h>
#include <stdio.h>
#include <string.h>

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

/* Writes the profile to the file that was answered, whole or not at all. Its ending names the
 * format. */
static void write_profile(struct top_screen *screen)
{
    enum fgprof_format format;
    struct output_file file;
    if (!format_of_ending(screen->input, &format)) {
        snprintf(screen->message, sizeof screen->message,
                 "not written: the ending names no format; use one such as .folded or .pb.gz");
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

/* Takes a key that changes what is shown, or its order. Returns whether it was such a key. */
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

bool top_keys_take(struct top_keys *keys, struct top_screen *screen)
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
