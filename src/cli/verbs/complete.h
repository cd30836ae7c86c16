/*
 * complete - the words that fit at a place of a command line, for shell completion
 */
#ifndef SL_CLI_VERBS_COMPLETE_H
#define SL_CLI_VERBS_COMPLETE_H

/*
 * words: those behind `sluice`; the last one is the word being typed, perhaps "". Prints one
 * candidate per line, with a tab and its meaning if it has one, or nothing. Instead of candidates
 * it may print what the shell itself should offer: ":commands", ":files" or ":folders". Asks the
 * daemon for names; a missing daemon is no error. Returns the exit status.
 */
int sl_complete(int count, char *const *words);

#endif
