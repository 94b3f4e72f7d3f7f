/* Names of system calls. */
#ifndef FGPROF_PROC_SYSCALL_NAMES_H
#define FGPROF_PROC_SYSCALL_NAMES_H

/* The name of the system call with this number, such as "epoll_wait", or NULL if the system headers
 * had none at build time. Static. */
const char *syscall_name(long number);

#endif
