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
#ifndef SL_CLUSTER_KUBERNETES_API_PARSE_H
#define SL_CLUSTER_KUBERNETES_API_PARSE_H

#include <jansson.h>

#include "base/sl.h"

/* Values nested deeper become 0. */
#define SL_KUBE_DEPTH_MAX 256

/* A value takes 40 to 300 bytes of memory: so many take 60 MiB at most. */
#define SL_KUBE_VALUES_MAX 200000

/* Whether the text has more values than that. O(size). */
SL_MUST_CHECK bool sl_kube_is_vast(const char *text, size_t size);

/* An object or array, a new reference; NULL if it is no JSON as Go reads it, or vast. text[size]
 * must be NUL. Writes into text where jansson refuses it. O(size). */
json_t *sl_kube_parse(char *text, size_t size);
/* The same of an object that the API server keeps, which may be vast: of 1.5 MiB, etcd's bound. */
json_t *sl_kube_parse_object(char *text, size_t size);

/* For reading: the member at the end of the path, or NULL. Ends with NULL. */
json_t *sl_kube_at(const json_t *object, ...) __attribute__((sentinel));
/* Its text, or "". Borrowed. */
const char *sl_kube_text_at(const json_t *object, ...) __attribute__((sentinel));

#endif
