/*
 * JSON of the API server: what jansson takes stays as it is, and nothing leads out of the text.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *plain = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL),
	       *tamed;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	tamed = sl_kube_parse(text, size);
	if (plain && !json_equal(plain, tamed))
		abort();
	if (text[size] != '\0')
		abort();
	json_decref(plain);
	json_decref(tamed);
	free(text);
	return 0;
}
