/* The sources of events other than time: births, page faults, the agent. */
#include "fake.h"
#include "objects/agent.h"
#include "objects/values.h"
#include "proc/thread_start.h"

#include <errno.h>

#define PAGE_BYTES 4096u

/* Fills the snapshot with the place of the thread with this id. */
static void set_place(struct snapshot *snapshot, pid_t tid)
{
    const struct fake_thread *thread = fake_find(tid);
    snapshot->registers = (struct registers){.interrupted_call = -1};
    registers_set(&snapshot->registers, architecture.pc, thread ? thread->pc : 1);
    snapshot->stack.bytes = snapshot->other_stack.bytes = 0;
}

/* ---- Births ---- */

int __wrap_births_new(bool has_children, struct births **ret_births, int *ret_stack_refusal);
void __wrap_births_free(struct births *births);
int __wrap_births_follow(struct births *births, pid_t process_id);
void __wrap_births_unfollow(struct births *births, pid_t process_id);
uint64_t __wrap_births_exec_ns(const struct births *births, pid_t process_id);
int __wrap_births_read(struct births *births);
uint64_t __wrap_births_taken_ns(const struct births *births);
const struct birth *__wrap_births_next(struct births *births);
void __wrap_births_skip(struct births *births);
bool __wrap_births_copy_stack(const struct births *births, struct snapshot *snapshot);
bool __wrap_births_has_end(const struct births *births, pid_t tid);
uint64_t __wrap_births_lost(const struct births *births);
uint64_t __wrap_thread_robust_list(pid_t tid);
int __wrap_thread_start_find(pid_t tid, const struct stack_areas *areas, uint64_t *ret_start);

int __wrap_births_new(bool has_children, struct births **ret_births, int *ret_stack_refusal)
{
    (void)has_children;
    *ret_births = fake->births_error ? NULL : (struct births *)fake;
    *ret_stack_refusal = fake->stack_error;
    return fake->births_error;
}

void __wrap_births_free(struct births *births)
{
    (void)births;
}

int __wrap_births_follow(struct births *births, pid_t process_id)
{
    (void)births, (void)process_id;
    return 0;
}

void __wrap_births_unfollow(struct births *births, pid_t process_id)
{
    (void)births, (void)process_id;
}

uint64_t __wrap_births_exec_ns(const struct births *births, pid_t process_id)
{
    (void)births;
    return fake_find_process(process_id)->exec_ns;
}

int __wrap_births_read(struct births *births)
{
    (void)births;
    return fake->births_read_error;
}

uint64_t __wrap_births_taken_ns(const struct births *births)
{
    const struct birth *birth = __wrap_births_next((struct births *)births);
    return birth ? birth->at_ns : fake->now_ns;
}

const struct birth *__wrap_births_next(struct births *births)
{
    (void)births;
    return fake->births_taken < fake->birth_count ? &fake->births[fake->births_taken] : NULL;
}

void __wrap_births_skip(struct births *births)
{
    (void)births;
    fake->births_taken++;
}

bool __wrap_births_copy_stack(const struct births *births, struct snapshot *snapshot)
{
    (void)births;
    set_place(snapshot, fake->births[fake->births_taken].maker_tid);
    return true;
}

bool __wrap_births_has_end(const struct births *births, pid_t tid)
{
    (void)births;
    for (size_t i = fake->births_taken; i < fake->birth_count; i++) {
        if (fake->births[i].change == BIRTH_ENDED && fake->births[i].tid == tid)
            return true;
    }
    return false;
}

uint64_t __wrap_births_lost(const struct births *births)
{
    (void)births;
    return fake->births_lost;
}

uint64_t __wrap_thread_robust_list(pid_t tid)
{
    return 0x10000u + (uint64_t)tid;
}

int __wrap_thread_start_find(pid_t tid, const struct stack_areas *areas, uint64_t *ret_start)
{
    const struct fake_thread *thread = fake_find(tid);
    (void)areas;
    if (!thread || !thread->start)
        return -ENOTSUP;
    *ret_start = thread->start;
    return 0;
}

/* ---- Page faults ---- */

int __wrap_faults_new(uint64_t seed, struct faults **ret_faults);
enum faults_choice __wrap_faults_choice(const struct faults *faults);
int __wrap_faults_follow(struct faults *faults, const struct process *process);
void __wrap_faults_unfollow(struct faults *faults, pid_t process_id);
int __wrap_faults_read(struct faults *faults);
const struct fault *__wrap_faults_next(struct faults *faults);
bool __wrap_faults_copy_stack(struct faults *faults, struct snapshot *snapshot);
size_t __wrap_faults_stack_bytes(const struct faults *faults);
void __wrap_faults_skip(struct faults *faults);
uint64_t __wrap_faults_exec_ns(const struct faults *faults, pid_t process_id);
uint64_t __wrap_faults_taken_ns(const struct faults *faults);
struct page_levels __wrap_faults_levels(const struct faults *faults);
void __wrap_faults_choose_fewer(struct faults *faults);
bool __wrap_faults_are_rough(const struct faults *faults);
uint64_t __wrap_faults_lost(const struct faults *faults);
void __wrap_faults_free(struct faults *faults);
int __wrap_pages_open(const struct program *program, struct pages *ret_pages);
void __wrap_pages_close(struct pages *pages);
int __wrap_pages_look(const struct pages *pages, uint64_t address, struct page *ret_page);
int __wrap_pages_count(const struct pages *pages, uint64_t start, size_t count,
                       size_t *ret_present);
int __wrap_pages_resident(const struct program *program, uint64_t *ret_bytes);

int __wrap_faults_new(uint64_t seed, struct faults **ret_faults)
{
    (void)seed;
    *ret_faults = fake->faults_error ? NULL : (struct faults *)fake;
    return fake->faults_error;
}

enum faults_choice __wrap_faults_choice(const struct faults *faults)
{
    (void)faults;
    return FAULTS_BY_PAGE;
}

int __wrap_faults_follow(struct faults *faults, const struct process *process)
{
    (void)faults;
    return process->pid == fake->unfaultable ? -E2BIG : 0;
}

void __wrap_faults_unfollow(struct faults *faults, pid_t process_id)
{
    (void)faults, (void)process_id;
}

int __wrap_faults_read(struct faults *faults)
{
    (void)faults;
    return 0;
}

const struct fault *__wrap_faults_next(struct faults *faults)
{
    (void)faults;
    return fake->faults_taken < fake->fault_count ? &fake->faults[fake->faults_taken] : NULL;
}

bool __wrap_faults_copy_stack(struct faults *faults, struct snapshot *snapshot)
{
    (void)faults;
    set_place(snapshot, fake->faults[fake->faults_taken].tid);
    return true;
}

size_t __wrap_faults_stack_bytes(const struct faults *faults)
{
    (void)faults;
    return STACK_LIMIT_FIRST;
}

void __wrap_faults_skip(struct faults *faults)
{
    (void)faults;
    fake->faults_taken++;
}

uint64_t __wrap_faults_exec_ns(const struct faults *faults, pid_t process_id)
{
    (void)faults;
    return fake_find_process(process_id)->exec_ns;
}

uint64_t __wrap_faults_taken_ns(const struct faults *faults)
{
    const struct fault *fault = __wrap_faults_next((struct faults *)faults);
    return fault ? fault->at_ns : fake->now_ns;
}

struct page_levels __wrap_faults_levels(const struct faults *faults)
{
    (void)faults;
    return (struct page_levels){{1, 0}};
}

void __wrap_faults_choose_fewer(struct faults *faults)
{
    (void)faults;
    fake->fewer_pages++;
}

bool __wrap_faults_are_rough(const struct faults *faults)
{
    (void)faults;
    return false;
}

uint64_t __wrap_faults_lost(const struct faults *faults)
{
    (void)faults;
    return fake->faults_lost;
}

void __wrap_faults_free(struct faults *faults)
{
    (void)faults;
}

int __wrap_pages_open(const struct program *program, struct pages *ret_pages)
{
    (void)program;
    *ret_pages = (struct pages){.pagemap_fd = -1, .flags_fd = -1};
    return 0;
}

void __wrap_pages_close(struct pages *pages)
{
    (void)pages;
}

int __wrap_pages_look(const struct pages *pages, uint64_t address, struct page *ret_page)
{
    (void)pages;
    *ret_page = fake->page;
    if (!ret_page->bytes)
        *ret_page =
            (struct page){PAGE_ANONYMOUS, address & ~(uint64_t)(PAGE_BYTES - 1), PAGE_BYTES};
    return 0;
}

int __wrap_pages_count(const struct pages *pages, uint64_t start, size_t count, size_t *ret_present)
{
    (void)pages, (void)start;
    *ret_present = count;
    return 0;
}

int __wrap_pages_resident(const struct program *program, uint64_t *ret_bytes)
{
    (void)program;
    *ret_bytes = fake->resident;
    return 0;
}

/* ---- The agent ---- */

int __wrap_agent_source_new(const struct program *program, const struct object_options *options,
                            struct object_source **ret_source);
int __wrap_values_source_new(const struct program *program, const struct object_options *options,
                             struct object_source **ret_source);

static bool collect(struct object_source *source, struct snapshot_pool *snapshots,
                    struct object_news *ret_news)
{
    static const struct stack_place no_place = {0};
    const struct fake_news *news = &fake->news[fake->news_taken];
    source->has_more = false;
    if (fake->frees_left) {
        fake->frees_left--;
        *ret_news =
            (struct object_news){.kind = OBJECT_ALLOCATION, .change = OBJECT_GONE, .key = 1};
        return true;
    }
    if (fake->news_taken == fake->news_count)
        return false;
    struct snapshot *snapshot = NULL;
    if (news->has_snapshot) {
        snapshot = snapshot_pool_take(snapshots, STACK_LIMIT_FIRST, &no_place);
        source->has_more = !snapshot;
        if (!snapshot)
            return false;
        set_place(snapshot, news->tid);
    }
    fake->news_taken++;
    *ret_news = news->news;
    ret_news->tid = news->tid;
    ret_news->snapshot = snapshot;
    return true;
}

static void count(const struct object_source *source,
                  struct object_counts counts[OBJECT_KIND_COUNT])
{
    (void)source;
    counts[OBJECT_ALLOCATION].has_source = true;
    counts[OBJECT_ALLOCATION].made_lost += 7;
}

static void close_agent(struct object_source *source)
{
    (void)source;
    fake->agents_closed++;
}

static void refresh(struct object_source *source)
{
    (void)source;
    fake->agents_refreshed++;
}

int __wrap_agent_source_new(const struct program *program, const struct object_options *options,
                            struct object_source **ret_source)
{
    (void)program, (void)options;
    fake->agents_sought++;
    if (fake->agent_error)
        return fake->agent_error;
    fake->agents_opened++;
    fake->agent = (struct object_source){
        .collect = collect, .count = count, .free = close_agent, .refresh = refresh};
    *ret_source = &fake->agent;
    return 0;
}

int __wrap_values_source_new(const struct program *program, const struct object_options *options,
                             struct object_source **ret_source)
{
    (void)program, (void)options, (void)ret_source;
    return -ENOENT;
}
