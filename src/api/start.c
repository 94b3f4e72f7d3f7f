/* The functions of fgprof.h for programs that profile themselves. */
#include "agent/helper.h"
#include "fgprof.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fgprof_session {
    pid_t process; /* a copy in a forked process is not of use */
    struct helper helper;
};

int fgprof_start(int fd, enum fgprof_format format, fgprof_session **ret_session)
{
    char number[16];
    const char *const words[] = {HELPER_RECORDS, number, NULL};
    if ((unsigned)format > FGPROF_FIREFOX)
        return -EINVAL;
    snprintf(number, sizeof number, "%d", (int)format);
    fgprof_session *session = malloc(sizeof *session);
    if (!session)
        return -ENOMEM;
    session->process = getpid();
    int err = helper_begin(fd, words, &session->helper);
    if (err) {
        free(session);
        return err;
    }
    *ret_session = session;
    return 0;
}

int fgprof_stop(fgprof_session *session)
{
    const struct helper helper = session->helper;
    bool is_ours = session->process == getpid();
    free(session);
    if (is_ours)
        return helper_finish(&helper);
    close(helper.channel);
    return -ESRCH;
}

int fgprof_http_handle(const char *path, const char *query, int fd)
{
    const char *const words[] = {HELPER_ANSWERS, path, query ? query : ""};
    struct helper helper;
    int err = helper_begin(fd, words, &helper);
    if (!err)
        helper_dismiss(&helper);
    return err;
}
