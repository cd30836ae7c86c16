/*
 * stand-in - takes libsluice.so's place where a sanitizer is built into that
 *
 * A sanitized library cannot be preloaded into programs that are not (sh, env). What the command
 * line does around it can be tested all the same, with a library that does nothing.
 */
int sl_stand_in;
