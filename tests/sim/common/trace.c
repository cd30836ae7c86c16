/*
 * trace - see the header
 *
 * The lines are printed from the lists that the machine is made of. The text of each row's fields,
 * "F(uint32_t, gpu) F(uint64_t, bytes)", is read at run time and walked along the struct with the
 * alignment rules of the ABI. Only failures print, so the cost does not matter.
 */
#include "trace.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	const char *type;
	size_t size, align;
} types[] = {
	{"uint64_t", 8, 8},
	{"sl_ns", 8, 8},
	{"uint32_t", 4, 4},
	{"int32_t", 4, 4},
	{"uint8_t", 1, 1},
	{"struct sl_amount", sizeof(struct sl_amount), _Alignof(struct sl_amount)},
	{"struct sl_bounds", sizeof(struct sl_bounds), _Alignof(struct sl_bounds)},
};

static void print_amount(FILE *out, const struct sl_amount *amount)
{
	char text[32];

	fputs(amount->kind == SL_AMOUNT_UNSET
			? "-"
			: sl_amount_format(amount, text, sizeof(text)),
		out);
}

static void print_value(FILE *out, size_t type, const unsigned char *at)
{
	struct sl_amount amount;
	uint64_t wide = 0;
	int32_t narrow;
	struct sl_bounds bounds;

	switch (type) {
	case 3:
		memcpy(&narrow, at, sizeof(narrow));
		fprintf(out, "%" PRId32, narrow);
		return;
	case 5:
		memcpy(&amount, at, sizeof(amount));
		print_amount(out, &amount);
		return;
	case 6:
		memcpy(&bounds, at, sizeof(bounds));
		print_amount(out, &bounds.request);
		fputc('/', out);
		print_amount(out, &bounds.limit);
		if (bounds.has_priority)
			fprintf(out, "/%" PRId32, bounds.priority);
		fprintf(out, "/%" PRIu32, bounds.workloads);
		return;
	default:
		memcpy(&wide, at, types[type].size); /* little-endian, as all our hosts */
		fprintf(out, "%" PRIu64, wide);
	}
}

/* fields: "F(type, name) F(type, name)"; data: the struct they describe. */
static void print_fields(const char *fields, const void *data, FILE *out)
{
	size_t offset = 0;

	while ((fields = strstr(fields, "F("))) {
		const char *comma = strchr(fields, ','), *close = strchr(fields, ')');
		const char *name = comma + 1 + strspn(comma + 1, " ");
		size_t type = 0;

		fields += 2;
		while (type < SL_ARRAY_LEN(types) - 1 &&
			(strncmp(types[type].type, fields, (size_t)(comma - fields)) !=
					0 ||
				strlen(types[type].type) != (size_t)(comma - fields)))
			type++;
		offset = (offset + types[type].align - 1) & ~(types[type].align - 1);
		fprintf(out, " %.*s=", (int)(close - name), name);
		if (close - name == 6 && strncmp(name, "reason", 6) == 0)
			fputs(sl_reason_name(
				      *(const uint32_t *)((const char *)data + offset)),
				out);
		else
			print_value(out, type, (const unsigned char *)data + offset);
		offset += types[type].size;
		fields = close;
	}
}

void sl_trace_print_event(const struct sl_event *event, FILE *out)
{
	static const char *const fields[SL_EVENTS] = {
#define SL_EVENT(NAME, name, list) [SL_EVENT_##NAME] = #list,
#include "policy/node/event.def"
#undef SL_EVENT
	};

	fputs(sl_event_name(event->type), out);
	if ((uint32_t)event->type < SL_EVENTS)
		print_fields(fields[event->type], &event->config, out);
}

void sl_trace_print_action(const struct sl_action *action, FILE *out)
{
	static const char *const fields[SL_ACTIONS] = {
#define SL_ACTION(NAME, name, list) [SL_ACTION_##NAME] = #list,
#include "policy/node/action.def"
#undef SL_ACTION
	};

	fputs(sl_action_name(action->type), out);
	if ((uint32_t)action->type < SL_ACTIONS)
		print_fields(fields[action->type], &action->admit, out);
}

static struct sl_trace_line *next_line(struct sl_trace *trace, sl_ns at, uint64_t number)
{
	struct sl_trace_line *line = &trace->line[trace->count++ % SL_TRACE_LINES];

	line->at = at;
	line->number = number;
	return line;
}

void sl_trace_event(
	struct sl_trace *trace, sl_ns at, uint64_t number, const struct sl_event *event)
{
	struct sl_trace_line *line = next_line(trace, at, number);

	line->is_action = false;
	line->event = *event;
}

void sl_trace_action(
	struct sl_trace *trace, sl_ns at, uint64_t number, const struct sl_action *action)
{
	struct sl_trace_line *line = next_line(trace, at, number);

	line->is_action = true;
	line->action = *action;
}

static void print_line(const struct sl_trace_line *line, FILE *out)
{
	fprintf(out, "%8" PRIu64 " %14.6f s  %s", line->number, (double)line->at / 1e9,
		line->is_action ? "    -> " : "");
	if (line->is_action)
		sl_trace_print_action(&line->action, out);
	else
		sl_trace_print_event(&line->event, out);
	fputc('\n', out);
}

void sl_trace_print(const struct sl_trace *trace, FILE *out)
{
	uint64_t first =
		trace->count > SL_TRACE_LINES ? trace->count - SL_TRACE_LINES : 0;

	for (uint64_t i = first; i < trace->count; i++)
		print_line(&trace->line[i % SL_TRACE_LINES], out);
}

void sl_trace_print_last(const struct sl_trace *trace, FILE *out)
{
	if (trace->count)
		print_line(&trace->line[(trace->count - 1) % SL_TRACE_LINES], out);
}
