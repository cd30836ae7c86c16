/*
 * assets - the files of the page (src/web), built into the program
 *
 * Made by tools/embed-files. Constant.
 */
#ifndef SL_DAEMON_WEB_ASSETS_H
#define SL_DAEMON_WEB_ASSETS_H

#include <stddef.h>
#include <stdint.h>

struct sl_page_asset {
	const char *name; /* without folders; NULL ends the table */
	const char *etag; /* of the content, with its quotes */
	const unsigned char *data;
	uint64_t size;
};

extern const struct sl_page_asset sl_page_assets[];

#endif
