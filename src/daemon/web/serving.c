/*
 * serving - a row for each part; a failure is kept as text until the part is open
 */
#include "daemon/web/serving.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/state/timer.h"
#include "daemon/web/page.h"
#include "daemon/web/scrape.h"

static const struct {
	const char *name;
	int (*open)(struct sl_daemon *daemon, struct sl_error *err);
	void (*close)(struct sl_daemon *daemon);
	int (*permit)(const struct sl_daemon *daemon, struct sl_error *err);
} rows[SL_SERVED] = {
	[SL_SERVED_METRICS] = {"metrics", sl_scrape_open, sl_scrape_close,
		sl_scrape_permit},
	[SL_SERVED_PAGE] = {"the page", sl_page_open, sl_page_close, sl_page_permit},
};

static int open_one(struct sl_daemon *daemon, int which, struct sl_error *err)
{
	struct sl_error *trouble = &daemon->not_served[which];
	int r = rows[which].open(daemon, err);

	if (r == 0) {
		*trouble = (struct sl_error){0};
		return 0;
	}
	rows[which].close(daemon);
	if (!err->text[0])
		sl_error_set(err, "%s cannot be served: %s; end what takes up memory",
			rows[which].name, strerror(-r));
	/* Logged once, not at each retry. */
	if (r != -EINVAL && strcmp(trouble->text, err->text) != 0)
		sl_warning("%s; going on without it, and trying again", err->text);
	*trouble = *err;
	return r;
}

static void try_later(struct sl_daemon *daemon)
{
	for (int i = 0; i < SL_SERVED; i++) {
		if (daemon->not_served[i].text[0])
			sl_timer_set(daemon->serving_timer,
				sl_clock_now() + SL_SERVING_RETRY_NS);
	}
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;

	sl_timer_set(daemon->serving_timer, SL_NS_NEVER);
	for (int i = 0; i < SL_SERVED; i++) {
		struct sl_error err = {0};

		if (daemon->not_served[i].text[0])
			(void)open_one(daemon, i, &err);
	}
	try_later(daemon);
	return 0;
}

int sl_serving_open(struct sl_daemon *daemon, struct sl_error *err)
{
	int r = sl_timer_new(
		daemon, SD_EVENT_PRIORITY_IDLE, on_timer, &daemon->serving_timer);

	for (int i = 0; i < SL_SERVED && r >= 0; i++) {
		struct sl_error why = {0};

		if (open_one(daemon, i, &why) == -EINVAL) {
			*err = why;
			return sl_err_origin(-EINVAL);
		}
	}
	if (r < 0)
		return r;
	try_later(daemon);
	return 0;
}

int sl_serving_permit(struct sl_daemon *daemon, struct sl_error *err)
{
	int r = 0;

	for (int i = 0; i < SL_SERVED && r == 0; i++)
		r = rows[i].permit(daemon, err);
	return r;
}

void sl_serving_close(struct sl_daemon *daemon)
{
	daemon->serving_timer = sd_event_source_disable_unref(daemon->serving_timer);
	for (int i = 0; i < SL_SERVED; i++)
		rows[i].close(daemon);
}

static void part_of(const struct sl_daemon *daemon, int which, const char *address,
	struct sl_part *part)
{
	sl_wire_str(part->path, sizeof(part->path), address);
	part->text = daemon->not_served[which];
	if (part->text.text[0])
		part->health = SL_HEALTH_PARTLY;
}

void sl_serving_metrics_part(const struct sl_daemon *daemon, struct sl_part *part)
{
	part_of(daemon, SL_SERVED_METRICS,
		daemon->scrape ? daemon->config.metrics.text : "", part);
}

void sl_serving_page_part(const struct sl_daemon *daemon, struct sl_part *part)
{
	part_of(daemon, SL_SERVED_PAGE, sl_page_address(daemon), part);
}
