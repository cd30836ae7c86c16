/*
 * text - what other people called their things, made harmless to show
 *
 * Names, commands and what a daemon says come from others: no escape sequence of theirs reaches a
 * terminal, nothing of theirs turns the line around, and what is no UTF-8 does not break JSON.
 * Pure.
 */
#ifndef SL_BASE_TEXT_H
#define SL_BASE_TEXT_H

#include "base/sl.h"

#include <jansson.h>

/* In place: control characters (also those that UTF-8 writes in two bytes), marks that change the
 * direction of text, and bytes that are no UTF-8 become '?'. Never longer than before. */
void sl_text_tame(char *text);

/* A JSON string of it, with U+FFFD for bytes that are no UTF-8; NULL when out of memory. JSON
 * itself escapes the rest. */
json_t *sl_text_json(const char *text);

/* The character at *at, which is moved behind it; 0 at the end, UINT32_MAX for a byte that is no
 * UTF-8. */
uint32_t sl_text_next(const char **at);

#endif
