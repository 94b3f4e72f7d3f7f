#include "help.h"

#include <stdio.h>

static const char options_text[] =
    "  -d, --duration TIME   end after TIME: 30s, 1.5m, 2h, 500ms, or seconds\n"
    "  -F, --rate HZ         ticks a second, 1 to 1000 (default 99)\n"
    "  -f, --format FORMAT   folded (default), pprof, text, html, speedscope, or raw\n"
    "  -o, --output FILE     write to FILE; without -f its ending names the format:\n"
    "                        .folded .collapsed .txt .pb.gz .pprof .html .fgprof\n"
    "                        .speedscope.json .json; - is stdout\n"
    "  -t, --threads[=tid]   folded: the thread's name (name/tid) as root frame;\n"
    "                        =tid also tells threads of equal name apart\n"
    "      --children        sample descendants too, each a process of its own\n"
    "      --processes       folded: the process (name/pid) as root frame\n"
    "      --lines           folded, speedscope: file and line in each frame\n"
    "      --state           folded, speedscope: what the thread did as leaf frame:\n"
    "                        [running], [runnable] (waiting for a CPU), [futex] ...\n"
    "      --on-cpu          only samples of threads that ran on a CPU\n"
    "      --off-cpu         only all others\n"
    "      --thread REGEX    only threads whose name has a match of REGEX in it\n"
    "      --no-idle         leave out threads that never moved (--idle: keep them)\n"
    "      --kernel          the kernel's functions that sleepers are in (as root)\n"
    "      --full-names      C++ names with parameters and template arguments\n"
    "      --no-demangle     names as in the symbol table\n"
    "      --debuginfod[=TIME]  fetch debug information from the servers of\n"
    "                        DEBUGINFOD_URLS, for at most TIME in all (default 60s)\n"
    "      --max-depth N     keep the N frames nearest the leaf (default 1024)\n"
    "      --max-pause PCT   the most of its time a thread may be paused (default 2)\n"
    "  -q, --quiet           no progress, no summary\n"
    "  -h, --help            this text\n";

void help_attach(void)
{
    printf("usage: fgprof-c attach -p PID[,PID...] [options]\n"
           "\n"
           "Samples all threads of running processes, whether they run or wait, until the\n"
           "duration has passed, they have exited, or Ctrl-C; then writes the profile.\n"
           "\n"
           "  fgprof-c attach -p 1234 -d 30s | flamegraph.pl > wall.svg\n"
           "  fgprof-c attach -p 1234 -d 30s -o wall.pb.gz && go tool pprof -top wall.pb.gz\n"
           "\n"
           "  -p, --pid PID[,...]   a process to sample; may be given again\n"
           "      --pgrep NAME      all whose name the expression NAME matches: see pgrep(1)\n"
           "      --tid TID[,...]   only these threads; also adds to --thread's\n"
           "%s"
           "\n"
           "Exit status: 0 a profile was written, 1 it was not, 2 bad command line.\n",
           options_text);
}

void help_run(void)
{
    printf("usage: fgprof-c run [options] -- CMD [ARG...]\n"
           "\n"
           "Starts CMD and samples all its threads from its exec to its end, or for the\n"
           "duration, and waits for it; not for what CMD leaves behind. CMD has this\n"
           "terminal's stdin, stdout and stderr; only where the profile goes to stdout does\n"
           "CMD's stdout go to stderr, so that the two never mix.\n"
           "\n"
           "  fgprof-c run -o wall.pb.gz -- ./cmd arg\n"
           "  fgprof-c run -- ./cmd | flamegraph.pl > wall.svg\n"
           "\n"
           "%s"
           "\n"
           "Exit status: CMD's, 128+N where signal N ended it; 125 the profiler failed or\n"
           "its command line was wrong, 126 CMD can't be executed, 127 it was not found.\n",
           options_text);
}

static const char render_text[] =
    "  -t, --threads[=tid]   folded: the thread's name (name/tid) as root frame;\n"
    "                        =tid also tells threads of equal name apart\n"
    "      --processes       folded: the process (name/pid) as root frame\n"
    "      --lines           folded, speedscope: file and line in each frame\n"
    "      --state           folded, speedscope: what the thread did as leaf frame\n"
    "      --on-cpu          only samples of threads that ran on a CPU\n"
    "      --off-cpu         only all others\n"
    "  -h, --help            this text\n"
    "\n"
    "Exit status: 0 it was written, 1 it was not, 2 bad command line.\n";

void help_convert(void)
{
    printf("usage: fgprof-c convert FILE.fgprof [options]\n"
           "\n"
           "Writes a recording that was kept, as by attach -o FILE.fgprof, in other formats:\n"
           "what attach or run would have written with these options.\n"
           "\n"
           "  fgprof-c convert wall.fgprof --threads | flamegraph.pl > wall.svg\n"
           "  fgprof-c convert wall.fgprof --off-cpu -o waits.pb.gz\n"
           "\n"
           "  -f, --format FORMAT   folded (default), pprof, text, html, speedscope, or raw\n"
           "  -o, --output FILE     write to FILE; without -f its ending names the format:\n"
           "                        .folded .collapsed .txt .pb.gz .pprof .html .fgprof\n"
           "                        .speedscope.json .json; - is stdout\n"
           "%s",
           render_text);
}

void help_diff(void)
{
    printf("usage: fgprof-c diff BEFORE.fgprof AFTER.fgprof [options]\n"
           "\n"
           "Writes the stacks of two kept recordings, each with the samples that it has in\n"
           "BEFORE and in AFTER: flamegraph.pl paints what grew red, what shrank blue.\n"
           "\n"
           "  fgprof-c diff -n before.fgprof after.fgprof | flamegraph.pl > diff.svg\n"
           "\n"
           "  -n, --normalize       scale BEFORE to as many samples as AFTER has: for\n"
           "                        recordings of different length\n"
           "  -o, --output FILE     write folded stacks to FILE; - is stdout (default)\n"
           "%s",
           render_text);
}

void help_dump(void)
{
    printf("usage: fgprof-c dump -p PID[,PID...] [options]\n"
           "\n"
           "Shows the stack of every thread once, with what the thread does: the call that\n"
           "it waits in, and for what: a mutex and its owner, a file or socket, a time.\n"
           "Threads that wait for each other's mutexes are shown first, as a deadlock.\n"
           "Threads that sleep are not stopped.\n"
           "\n"
           "  fgprof-c dump -p 1234\n"
           "  fgprof-c dump -p 1234 --group | less\n"
           "\n"
           "  -p, --pid PID[,...]   a process to look at; may be given again\n"
           "  -g, --group           threads with equal stacks together, most threads first\n"
           "      --json            as JSON\n"
           "  -o, --output FILE     write to FILE; - is stdout (default)\n"
           "      --kernel          the kernel's functions that sleepers are in (as root)\n"
           "      --full-names      C++ names with parameters and template arguments\n"
           "      --no-demangle     names as in the symbol table\n"
           "      --max-depth N     keep the N frames nearest the leaf (default 1024)\n"
           "  -h, --help            this text\n"
           "\n"
           "Exit status: 0 a dump was written, 1 it was not, 2 bad command line.\n");
}

void help_top(void)
{
    printf("usage: fgprof-c top -p PID[,PID...] [options]\n"
           "\n"
           "Shows live in which functions the threads of running processes spend their\n"
           "time, running and waiting: in the last second and since the start. 100 %% is\n"
           "one thread, all the time: four threads that wait are 400 %%.\n"
           "\n"
           "  fgprof-c top -p 1234\n"
           "\n"
           "  -p, --pid PID[,...]   a process to sample; may be given again\n"
           "  -d, --duration TIME   end sampling after TIME: 30s, 1.5m, 2h, or seconds\n"
           "  -F, --rate HZ         ticks a second, 1 to 1000 (default 99)\n"
           "      --kernel          the kernel's functions that sleepers are in (as root)\n"
           "      --full-names      C++ names with parameters and template arguments\n"
           "      --no-demangle     names as in the symbol table\n"
           "      --max-pause PCT   the most of its time a thread may be paused (default 2)\n"
           "  -h, --help            this text\n"
           "\n"
           "Keys: s t n sort by self, total, name (again: last second or since start);\n"
           "/ filter; T threads; i on a CPU only; arrows, PgUp, PgDn, Home scroll; space\n"
           "holds the view; r counts from now; w writes the profile to a file; h help; q\n"
           "quits.\n"
           "\n"
           "Exit status: 0 it was shown, 1 it could not be, 2 bad command line.\n");
}
