/*
 * parse - JSON of the API server, parts of which users wrote
 *
 * The API server hands on what users put into free-form places (the parameters of a claim, custom
 * resources) as they wrote it: numbers of 400 digits, a thousand nested arrays, half of a surrogate
 * pair, bytes that are no UTF-8. jansson refuses such a document as a whole, so that one claim
 * could blind everybody who lists claims. Here those numbers and arrays alone become 0, and those
 * characters U+FFFD or '?'. So objects are patched, never written back whole, where users wrote
 * parts of them. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_PARSE_H
#define SL_CLUSTER_KUBERNETES_PARSE_H

#include <jansson.h>

#include "base/sl.h"

/* Values nested deeper become 0. */
#define SL_KUBE_DEPTH_MAX 256

/* An object or array, a new reference; NULL if it is no JSON as Go reads it. text[size] must be
 * NUL. Writes into text where jansson refuses it. O(size). */
json_t *sl_kube_parse(char *text, size_t size);

/* For reading: the member at the end of the path, or NULL. Ends with NULL. */
json_t *sl_kube_at(const json_t *object, ...) __attribute__((sentinel));
/* Its text, or "". Borrowed. */
const char *sl_kube_text_at(const json_t *object, ...) __attribute__((sentinel));

#endif
