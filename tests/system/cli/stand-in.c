/*
 * stand-in - a library that does nothing, in the place of a sanitized libsluice.so
 *
 * A sanitized library cannot be preloaded into programs without the sanitizer (sh, env). What the
 * command line does around the library can be tested all the same.
 */
int sl_stand_in;
