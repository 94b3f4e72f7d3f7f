/* Locks, each with an owner that holds it again and again and a waiter that wants it:
 *
 *     contended computes|sleeps LOCKS SEED
 *
 * How long each owner holds its lock, 50 us to 5 ms, is drawn from the seed. Meanwhile it computes
 * or sleeps; then it leaves the lock alone for as long. The waiter comes at random moments. Its
 * account says how long the owner made it wait: the time for which it was asleep in the function
 * "wait". */
#include "durations.h"

#define LOCKS_MAX 16

enum { WAITS, PAUSES };

void wait_for_lock(struct account *account);
void pause_a_while(struct account *account);
void hold(unsigned number);

static pthread_mutex_t locks[LOCKS_MAX];
static double durations_us[LOCKS_MAX];
static char owner_names[LOCKS_MAX][16], waiter_names[LOCKS_MAX][16];
static bool computes;

__attribute__((noinline)) void hold(unsigned number)
{
    pthread_mutex_lock(&locks[number]);
    if (computes)
        compute_us(durations_us[number]);
    else
        nap(durations_us[number]);
    pthread_mutex_unlock(&locks[number]);
}

static void *run_owner(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    pthread_setname_np(pthread_self(), owner_names[number]);
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        hold(number);
        nap(durations_us[number]);
    }
    return NULL;
}

__attribute__((noinline)) void wait_for_lock(struct account *account)
{
    pthread_mutex_lock(&locks[account->number]);
    pthread_mutex_unlock(&locks[account->number]);
    end_of(account, WAITS);
}

__attribute__((noinline)) void pause_a_while(struct account *account)
{
    nap(2 * durations_us[account->number] * chance(account));
    end_of(account, PAUSES);
}

static void *run_waiter(void *argument)
{
    begin(argument);
    for (;;) {
        wait_for_lock(argument);
        pause_a_while(argument);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: contended computes|sleeps LOCKS SEED\n");
        return 2;
    }
    computes = !strcmp(argv[1], "computes");
    unsigned count = number_of(argc, argv, 2, 1);
    require(count <= LOCKS_MAX, "locks");
    draw_durations(number_of(argc, argv, 3, 1), 50, 5000, durations_us, count);
    learn_speed();
    for (unsigned i = 0; i < count; i++) {
        pthread_t thread;
        pthread_mutex_init(&locks[i], NULL);
        snprintf(owner_names[i], sizeof owner_names[i], "owner-%u", i);
        snprintf(waiter_names[i], sizeof waiter_names[i], "waiter-%u", i);
        require(!pthread_create(&thread, NULL, run_owner, (void *)(uintptr_t)i), "thread");
        start(run_waiter, (struct account){.thread = waiter_names[i],
                                           .functions = {"wait_for_lock", "pause_a_while"},
                                           .has_delay = true});
    }
    serve_accounts();
    return 0;
}
