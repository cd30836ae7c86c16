/*
 * complete - what may stand at a place of a command line, for the completions of shells
 */
#ifndef SL_CLI_VERBS_COMPLETE_H
#define SL_CLI_VERBS_COMPLETE_H

/*
 * words: those behind `sluice`, the last one the beginning of what is typed ("" for none yet).
 * Prints one candidate a line, with a tab and its meaning where there is one; or what the shell
 * is to offer of its own: ":commands", ":files" or ":folders". Candidates are the values that the
 * place takes, so there may be none. The daemon is asked for names, and its absence is no error.
 * Returns the exit status.
 */
int sl_complete(int count, char *const *words);

#endif
