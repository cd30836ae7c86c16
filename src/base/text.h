/*
 * text - makes text from other people harmless to show
 *
 * Names, commands and messages of a daemon may come from strangers. This keeps their escape
 * sequences off the terminal, their direction marks from reversing a line, and invalid UTF-8 out of
 * JSON. Pure.
 */
#ifndef SL_BASE_TEXT_H
#define SL_BASE_TEXT_H

#include "base/sl.h"

#include <jansson.h>

/* In place: replaces control characters (also those of two bytes in UTF-8), marks that change the
 * direction of text, and bytes that are not UTF-8 by '?'. Never longer than before. */
void sl_text_tame(char *text);

/* A JSON string of text, with U+FFFD for bytes that are not UTF-8; NULL when out of memory. JSON
 * itself escapes the rest. */
json_t *sl_text_json(const char *text);

/* The character at *at, which moves behind it; 0 at the end, UINT32_MAX for a byte that is not
 * UTF-8. */
uint32_t sl_text_next(const char **at);

#endif
