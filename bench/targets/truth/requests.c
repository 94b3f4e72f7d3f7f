/* A client that sends requests to a server over loopback TCP, one after the other. The server
 * computes for one of three times, 50 to 300 us, which are drawn from the seed argv[1]. Client and
 * server have a function for each time, and the server has one in which it waits for the next
 * request. */
#include "durations.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define TIMES 3

enum { AWAIT_REQUEST = TIMES };

void ask_0(struct account *account);
void ask_1(struct account *account);
void ask_2(struct account *account);
void serve_0(struct account *account);
void serve_1(struct account *account);
void serve_2(struct account *account);
unsigned await_request(struct account *account);

static int client_fd, server_fd;
static double durations_us[TIMES];

/* glibc's read() preserves the frame pointer, so the caller can be found by it; recv() does not. */
static __attribute__((noinline)) void ask(unsigned number)
{
    char request = (char)number, answer;
    require(write(client_fd, &request, 1) == 1 && read(client_fd, &answer, 1) == 1, "client");
}

static void reply(void)
{
    require(write(server_fd, "", 1) == 1, "server");
}

__attribute__((noinline)) void ask_0(struct account *account)
{
    ask(0);
    end_of(account, 0);
}

__attribute__((noinline)) void ask_1(struct account *account)
{
    ask(1);
    end_of(account, 1);
}

__attribute__((noinline)) void ask_2(struct account *account)
{
    ask(2);
    end_of(account, 2);
}

__attribute__((noinline)) void serve_0(struct account *account)
{
    compute_us(durations_us[0]);
    reply();
    end_of(account, 0);
}

__attribute__((noinline)) void serve_1(struct account *account)
{
    compute_us(durations_us[1]);
    reply();
    end_of(account, 1);
}

__attribute__((noinline)) void serve_2(struct account *account)
{
    compute_us(durations_us[2]);
    reply();
    end_of(account, 2);
}

__attribute__((noinline)) unsigned await_request(struct account *account)
{
    char request;
    require(read(server_fd, &request, 1) == 1, "server");
    end_of(account, AWAIT_REQUEST);
    return (unsigned char)request;
}

static void *run_client(void *argument)
{
    static void (*const asks[TIMES])(struct account *) = {ask_0, ask_1, ask_2};
    struct account *account = argument;
    begin(account);
    for (;;)
        asks[(unsigned)(TIMES * chance(account)) % TIMES](account);
    return NULL;
}

static void *run_server(void *argument)
{
    static void (*const serves[TIMES])(struct account *) = {serve_0, serve_1, serve_2};
    struct account *account = argument;
    begin(account);
    for (;;)
        serves[await_request(account) % TIMES](account);
    return NULL;
}

static void connect_both(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int on = 1;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(listening >= 0 && client_fd >= 0 &&
                !bind(listening, (struct sockaddr *)&address, sizeof address) &&
                !listen(listening, 1) &&
                !getsockname(listening, (struct sockaddr *)&address, &size) &&
                !connect(client_fd, (struct sockaddr *)&address, sizeof address),
            "connect");
    server_fd = accept(listening, NULL, NULL);
    require(server_fd >= 0, "accept");
    setsockopt(client_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    close(listening);
}

int main(int argc, char **argv)
{
    draw_durations(number_of(argc, argv, 1, 1), 50, 300, durations_us, TIMES);
    learn_speed();
    connect_both();
    start(run_server,
          (struct account){.thread = "server",
                           .functions = {"serve_0", "serve_1", "serve_2", "await_request"}});
    start(run_client,
          (struct account){.thread = "client", .functions = {"ask_0", "ask_1", "ask_2"}});
    serve_accounts();
    return 0;
}
