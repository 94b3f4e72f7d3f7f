/* For the few functions that the program may call. All others are hidden. */
#ifndef FGPROF_AGENT_EXPORT_H
#define FGPROF_AGENT_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#endif
