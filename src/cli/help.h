#ifndef FGPROF_CLI_HELP_H
#define FGPROF_CLI_HELP_H

void help_attach(void);
void help_run(void);
void help_convert(void);
void help_diff(void);
void help_dump(void);
void help_top(void);

#endif
