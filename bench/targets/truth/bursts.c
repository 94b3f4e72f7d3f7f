/* A server that computes in three functions, one after the other, for each request from a client,
 * and then waits for the next one:
 *   steady   for 60, 30 and 10 us
 *   mixed    for 20 to 500 us in all, a third in each: at the beginning, in the middle, at the end
 * The client is another thread, which pauses for 20 to 150 us before its next request. */
#include "account.h"

#include <math.h>
#include <sys/socket.h>

enum { FIRST, SECOND, THIRD, TALK };

void burst_60(struct account *account);
void burst_30(struct account *account);
void burst_10(struct account *account);
void burst_begins(struct account *account, double us);
void burst_goes_on(struct account *account, double us);
void burst_ends(struct account *account, double us);
double talk(struct account *account);
void pause_and_ask(struct account *account);

static int server_fd, client_fd;
static bool is_mixed;

__attribute__((noinline)) void burst_60(struct account *account)
{
    compute_us(60);
    end_of(account, FIRST);
}

__attribute__((noinline)) void burst_30(struct account *account)
{
    compute_us(30);
    end_of(account, SECOND);
}

__attribute__((noinline)) void burst_10(struct account *account)
{
    compute_us(10);
    end_of(account, THIRD);
}

__attribute__((noinline)) void burst_begins(struct account *account, double us)
{
    compute_us(us);
    end_of(account, FIRST);
}

__attribute__((noinline)) void burst_goes_on(struct account *account, double us)
{
    compute_us(us);
    end_of(account, SECOND);
}

__attribute__((noinline)) void burst_ends(struct account *account, double us)
{
    compute_us(us);
    end_of(account, THIRD);
}

/* Answers the last request, and returns the next one: a time to compute, if mixed. */
__attribute__((noinline)) double talk(struct account *account)
{
    double us = 0;
    require(send(server_fd, &us, sizeof us, 0) == sizeof us &&
                recv(server_fd, &us, sizeof us, 0) == sizeof us,
            "server");
    end_of(account, TALK);
    return us;
}

static void *run_server(void *argument)
{
    struct account *account = argument;
    begin(account);
    for (;;) {
        double us = talk(account);
        if (is_mixed) {
            burst_begins(account, us / 3);
            burst_goes_on(account, us / 3);
            burst_ends(account, us / 3);
        } else {
            burst_60(account);
            burst_30(account);
            burst_10(account);
        }
    }
    return NULL;
}

__attribute__((noinline)) void pause_and_ask(struct account *account)
{
    /* Times from 20 to 50 us are as likely as those from 200 to 500 us. */
    double us = 20 * pow(25, chance(account));
    nap(20 + 130 * chance(account));
    require(send(client_fd, &us, sizeof us, 0) == sizeof us &&
                recv(client_fd, &us, sizeof us, 0) == sizeof us,
            "client");
    end_of(account, FIRST);
}

static void *run_client(void *argument)
{
    double greeting;
    begin(argument);
    /* At first the server answers once before it is asked. */
    require(recv(client_fd, &greeting, sizeof greeting, 0) == sizeof greeting, "client");
    for (;;)
        pause_and_ask(argument);
    return NULL;
}

int main(int argc, char **argv)
{
    int fds[2];
    is_mixed = argc > 1 && strcmp(argv[1], "mixed") == 0;
    learn_speed();
    require(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), "socketpair");
    server_fd = fds[0];
    client_fd = fds[1];
    start(run_client, (struct account){.thread = "client", .functions = {"pause_and_ask"}});
    if (is_mixed)
        start(run_server, (struct account){.thread = "server",
                                           .functions = {"burst_begins", "burst_goes_on",
                                                         "burst_ends", "talk"}});
    else
        start(run_server,
              (struct account){.thread = "server",
                               .functions = {"burst_60", "burst_30", "burst_10", "talk"}});
    serve_accounts();
    return 0;
}
