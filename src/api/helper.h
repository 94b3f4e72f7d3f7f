/* What a program that profiles itself and its helper tell each other, over a pair of sockets
 * (SOCK_SEQPACKET); the helper's is its standard input, and the profile goes to its standard
 * output:
 *
 *     helper   fgprof-c helper VERSION PID record FORMAT
 *     program  a byte: it may trace us now
 *     helper   struct helper_message: it is about to sample, or why it can't
 *     program  closes its side for writing: this is the end
 *     helper   struct helper_message: the profile is written, or why it is not
 *
 *     helper   fgprof-c helper VERSION PID answer PATH QUERY
 *     program  a byte
 *     helper   struct helper_message: the answer is written, or why it is not */
#ifndef FGPROF_API_HELPER_H
#define FGPROF_API_HELPER_H

#include <stdint.h>

#define HELPER_COMMAND "helper"
#define HELPER_RECORDS "record"
#define HELPER_ANSWERS "answer"

struct helper_message {
    int32_t error; /* 0 or a negative errno */
};

#endif
