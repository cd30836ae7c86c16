/*
 * parse - JSON of the API server, parts of which users wrote
 *
 * Some parts are free-form text of users (the parameters of a claim, custom resources), and the API
 * server passes them on unchanged: numbers of 400 digits, a thousand nested arrays, half a
 * surrogate pair, bytes that are not UTF-8. jansson refuses a document with any of these, so one
 * claim could hide the list of all claims. This parser replaces only those numbers and arrays by 0,
 * and those characters by U+FFFD or '?'. An object with such parts therefore differs from the
 * server's, so callers patch it and never write it back. Pure.
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

/* Returns an object or array, a new reference; NULL if text is not JSON as Go reads it, or has too
 * many values. text[size] must be NUL. If jansson refuses text, the repair writes into it.
 * O(size). */
json_t *sl_kube_parse(char *text, size_t size);
/* The same for one stored object, with any number of values: etcd bounds it to 1.5 MiB. */
json_t *sl_kube_parse_object(char *text, size_t size);

/* For reading: the member at the end of the path, or NULL. Ends with NULL. */
json_t *sl_kube_at(const json_t *object, ...) __attribute__((sentinel));
/* Its text, or "". Borrowed. */
const char *sl_kube_text_at(const json_t *object, ...) __attribute__((sentinel));

#endif
