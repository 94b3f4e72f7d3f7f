/* Where in its own code a program is. A waiting thread is deep in a library or in the kernel, but
 * the reader of a profile wants to see the function that called it. Reports, the page and top share
 * this. */
#ifndef FGPROF_PROFILE_PLACE_H
#define FGPROF_PROFILE_PLACE_H

#include "profile/frame.h"

/* What a function is for. */
enum label_role {
    LABEL_START = 1,   /* starts a thread or a program, and is on all its stacks */
    LABEL_LOCK = 2,    /* waits for a lock */
    LABEL_WRAPPER = 4, /* between a lock's user and the function that waits, or between a thread's
                          start and its function */
};

/* A sum of enum label_role, by the function's name. */
unsigned place_roles(const char *function);

enum place_library {
    PLACE_C_LIBRARY = 1,
    PLACE_CXX_LIBRARY = 2,
    PLACE_GO_RUNTIME = 4, /* and Go's packages whose functions wait for their callers */
};

/* Whether the location is in one of the libraries, a sum of enum place_library. */
bool place_is_in_library(const struct fgprof_profile *profile,
                         const struct profile_location *location, unsigned libraries);

/* What is known of a profile's frames. */
struct places {
    const struct fgprof_profile *profile;
    unsigned char *of_frame; /* by frame_number() */
};

/* Returns 0 or -ENOMEM. Free it in either case. */
int places_init(struct places *places, const struct fgprof_profile *profile);
void places_free(struct places *places);

/* Gets the frame nearest to the leaf that is the program's own: not a note, not in the kernel or
 * one of these libraries, and not a function that takes a lock for its caller or starts a thread.
 * If there is none, gets the leaf. Returns how many frames are nearer to the leaf, or PLACE_NONE if
 * there are no frames. */
#define PLACE_NONE SIZE_MAX
size_t place_of_stack(struct places *places, const struct profile_stack *stack,
                      struct profile_frame *ret_frame);

#endif
