/*
 * parse - JSON of the API server, parts of which users wrote
 *
 * The API server passes free-form text of users (the parameters of a claim, custom resources) on
 * unchanged: numbers of 400 digits, a thousand nested arrays, half a surrogate pair, bytes that are
 * not UTF-8. jansson refuses a whole document with any of these, so one claim could hide the list
 * of all claims. Here only those numbers and arrays become 0, and those characters U+FFFD or '?'.
 * Therefore objects with parts that users wrote are patched, never written back whole. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_PARSE_H
#define SL_CLUSTER_KUBERNETES_API_PARSE_H

#include <jansson.h>

#include "base/sl.h"

/* Values nested deeper become 0. */
#define SL_KUBE_DEPTH_MAX 256

/* A value takes 40 to 300 bytes, so this many take 60 MiB at most. */
#define SL_KUBE_VALUES_MAX 200000

/* Does the text have more values than that? O(size). */
SL_MUST_CHECK bool sl_kube_is_vast(const char *text, size_t size);

/* An object or array, a new reference; NULL if it is not JSON as Go reads it, or has too many
 * values. text[size] must be NUL. Writes into text if jansson refuses it. O(size). */
json_t *sl_kube_parse(char *text, size_t size);
/* The same for one stored object, with any number of values: etcd bounds it to 1.5 MiB. */
json_t *sl_kube_parse_object(char *text, size_t size);

/* For reading: the member at the end of the path, or NULL. Ends with NULL. */
json_t *sl_kube_at(const json_t *object, ...) __attribute__((sentinel));
/* Its text, or "". Borrowed. */
const char *sl_kube_text_at(const json_t *object, ...) __attribute__((sentinel));

#endif
