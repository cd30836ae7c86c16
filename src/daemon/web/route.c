/*
 * route - from method and path to a handler
 */
#include "daemon/web/internal.h"

#include <stdio.h>
#include <string.h>

static const struct sl_page_route routes[] = {
#define SL_ROUTE(METHOD, path, ACCESS, body, fn) \
	{#METHOD, path, SL_PAGE_##ACCESS, body, sl_page_##fn},
#include "daemon/web/routes.def"
#undef SL_ROUTE
};

const struct sl_page_route *sl_page_route_at(size_t index)
{
	return index < SL_ARRAY_LEN(routes) ? &routes[index] : NULL;
}

/* Whether path matches; a * stands for one segment, not empty. */
static bool matches(const char *pattern, const char *path, char argument[128])
{
	const char *star = strchr(pattern, '*');
	size_t before = star ? (size_t)(star - pattern) : 0, length;

	argument[0] = '\0';
	if (!star)
		return strcmp(pattern, path) == 0;
	if (strncmp(pattern, path, before) != 0)
		return false;
	length = strcspn(path + before, "/");
	if (length == 0 || length >= 128 || strcmp(star + 1, path + before + length) != 0)
		return false;
	(void)snprintf(argument, 128, "%.*s", (int)length, path + before);
	return true;
}

const struct sl_page_route *sl_page_route_find(
	const char *method, const char *path, char argument[128], char allowed[32])
{
	size_t used = 0;

	allowed[0] = '\0';
	/* HEAD uses the routes of GET. */
	if (strcmp(method, MHD_HTTP_METHOD_HEAD) == 0)
		method = MHD_HTTP_METHOD_GET;
	for (size_t i = 0; i < SL_ARRAY_LEN(routes); i++) {
		if (!matches(routes[i].path, path, argument))
			continue;
		if (strcmp(routes[i].method, method) == 0)
			return &routes[i];
		if (used < 32)
			used += (size_t)snprintf(allowed + used, 32 - used, "%s%s",
				used ? ", " : "", routes[i].method);
	}
	return NULL;
}
