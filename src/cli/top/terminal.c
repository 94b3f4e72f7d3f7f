#include "cli/top/terminal.h"
#include "cli/top/states.h"

#include <curses.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

/* Globals, because a signal handler gets no argument of ours. */
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

bool top_terminal_open(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const char *name = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        fprintf(stderr, "fgprof-c: top needs a terminal: use fgprof-c attach to write a file\n");
        return false;
    }
    setlocale(LC_ALL, "");
    SCREEN *screen = NULL;
    if (tcgetattr(STDIN_FILENO, &modes_before) == 0 && name && *name && strcmp(name, "dumb") != 0)
        screen = newterm(NULL, stdout, stdin);
    if (!screen || !tigetstr("cup") || tigetstr("cup") == (const char *)-1) {
        if (screen)
            endwin();
        fprintf(stderr,
                "fgprof-c: top can't draw on this terminal (TERM=%s): set TERM, or use fgprof-c "
                "attach\n",
                name ? name : "");
        return false;
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

void top_terminal_close(void)
{
    if (!is_open)
        return;
    is_open = false;
    endwin();
    tcsetattr(STDIN_FILENO, TCSANOW, &modes_before);
}
