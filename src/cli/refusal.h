/* What would help if the kernel refuses a request: appended to the message about the refusal. */
#ifndef FGPROF_CLI_REFUSAL_H
#define FGPROF_CLI_REFUSAL_H

#include "cli/options/options.h"

/* After perf_event_open(2) has failed with this errno: "; ..." or "". Valid until the next call. */
const char *refusal_remedy(int error);

/* The same for programs in the kernel (bpf(2)). */
const char *refusal_bpf_remedy(int error);

/* The same for those that record switches. */
const char *refusal_record_remedy(int error);

/* How to find out why the kernel refused the record of switches; "": there is no more to find out.
 */
const char *refusal_log_advice(const struct cli_options *options, int record_refusal);

#endif
