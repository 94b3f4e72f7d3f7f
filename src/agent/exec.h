/* The program may end by executing another one, as scripts do that start a server: the agent goes
 * along. Programs that its children execute are without it. */
#ifndef FGPROF_AGENT_EXEC_H
#define FGPROF_AGENT_EXEC_H

/* From now on what this process executes has this file in LD_PRELOAD, before other entries. */
void exec_go_along(const char *path);

#endif
