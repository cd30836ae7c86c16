/*
 * grafana-check DASHBOARD METRICS | rules DASHBOARD
 *
 * Checks that people can read the dashboard: every panel has a title, a description and a unit, and
 * a place of its own. Checks that the dashboard asks for existing data: every metric, label and
 * value of its expressions must be in METRICS, an answer of a daemon. `rules` prints the
 * expressions as rules for Prometheus' own checker.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 16

static char *metrics; /* "\n" in front of each line */
static bool failed;

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)putchar('\n');
	failed = true;
}

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t used = 1, got;
	char *text = malloc(1u << 22);

	if (!file || !text)
		exit(2);
	text[0] = '\n';
	while ((got = fread(text + used, 1, (1u << 22) - used - 1, file)) > 0)
		used += got;
	text[used] = '\0';
	(void)fclose(file);
	return text;
}

/* The next sample of the metric behind `at` (NULL: the first); its labels, or what follows the
 * name. */
static const char *next_sample(const char *at, const char *name)
{
	size_t length = strlen(name);

	at = at ? at : metrics;
	while ((at = strchr(at, '\n'))) {
		at++;
		if (strncmp(at, name, length) == 0 &&
			(at[length] == '{' || at[length] == ' '))
			return at + length;
	}
	return NULL;
}

/* Does a sample of the metric have the label, with this value if there is one? */
static bool has_label(const char *name, const char *label, const char *value)
{
	const char *sample = NULL;
	char wanted[256];

	/* The scraper adds these. */
	if (!value && (strcmp(label, "instance") == 0 || strcmp(label, "job") == 0))
		return true;
	while ((sample = next_sample(sample, name))) {
		const char *end = strchr(sample, '\n'), *found;

		for (int comma = 0; comma < 2; comma++) {
			(void)snprintf(wanted, sizeof(wanted), "%c%s=\"%s%s",
				comma ? ',' : '{', label, value ? value : "",
				value ? "\"" : "");
			found = strstr(sample, wanted);
			if (found && (!end || found < end))
				return true;
		}
	}
	return false;
}

static size_t name_length(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || text[length] == '_')
		length++;
	return length;
}

struct expression {
	const char *title, *text;
	char names[NAMES_MAX][96];
	size_t count;
};

/* A label that is not in a selector: it is of one of the metrics. */
static void check_label(const struct expression *e, const char *label)
{
	for (size_t i = 0; i < e->count; i++) {
		if (has_label(e->names[i], label, NULL))
			return;
	}
	complain(
		"%s: none of its metrics has the label %s: %s", e->title, label, e->text);
}

/* "a|b" asks for both. The reader chooses the value of a variable. */
static void check_values(const struct expression *e, const char *name, const char *label,
	const char *values, size_t length)
{
	char copy[256], *value, *rest = copy;

	(void)snprintf(copy, sizeof(copy), "%.*s", (int)length, values);
	if (strchr(copy, '$')) {
		if (!has_label(name, label, NULL))
			complain("%s: %s has no label %s", e->title, name, label);
		return;
	}
	while ((value = strsep(&rest, "|"))) {
		if (!has_label(name, label, value))
			complain("%s: no %s has %s=\"%s\"", e->title, name, label, value);
	}
}

/* {label="value", ...}; returns the rest after it. */
static const char *check_selector(
	const struct expression *e, const char *name, const char *at)
{
	at++;
	while (*at && *at != '}') {
		size_t length = name_length(at += strspn(at, " ,"));
		const char *value = strchr(at, '"'), *end = NULL;
		char label[64];

		if (value)
			end = strchr(value + 1, '"');
		if (!length || !end) {
			complain("%s: a selector that is none: %s", e->title, e->text);
			return at + strlen(at);
		}
		(void)snprintf(label, sizeof(label), "%.*s", (int)length, at);
		check_values(e, name, label, value + 1, (size_t)(end - value - 1));
		at = end + 1;
	}
	return at;
}

static bool takes_labels(const char *word)
{
	static const char *const words[] = {
		"by", "on", "ignoring", "without", "group_left", "group_right"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i], word) == 0)
			return true;
	}
	return false;
}

static void find_names(struct expression *e)
{
	for (const char *at = e->text; (at = strstr(at, "sluice_"));) {
		size_t length = name_length(at);

		if (e->count == NAMES_MAX)
			return;
		(void)snprintf(
			e->names[e->count], sizeof(e->names[0]), "%.*s", (int)length, at);
		if (!next_sample(NULL, e->names[e->count]))
			complain("%s: there is no %s", e->title, e->names[e->count]);
		e->count++;
		at += length;
	}
	if (!e->count)
		complain("%s: asks for nothing of ours: %s", e->title, e->text);
}

static void check_expression(struct expression *e)
{
	const char *at = e->text;

	find_names(e);
	while (*at) {
		size_t length = name_length(at);
		char word[96];

		if (!length) {
			at++;
			continue;
		}
		(void)snprintf(word, sizeof(word), "%.*s", (int)length, at);
		at += length;
		if (strncmp(word, "sluice_", 7) == 0 && *at == '{') {
			at = check_selector(e, word, at);
		} else if (takes_labels(word)) {
			at += strspn(at, " ");
			at += *at == '(';
			while (*at && *at != ')') {
				at += strspn(at, " ,");
				length = name_length(at);
				(void)snprintf(
					word, sizeof(word), "%.*s", (int)length, at);
				if (length)
					check_label(e, word);
				at += length ? length : *at != ')';
			}
		}
	}
}

static void check_legend(const struct expression *e, const char *legend)
{
	for (const char *at = legend; (at = strstr(at, "{{"));) {
		size_t length = name_length(at += 2);
		char label[64];

		(void)snprintf(label, sizeof(label), "%.*s", (int)length, at);
		check_label(e, label);
	}
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static int64_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* Two panels in one place hide each other. */
static void check_places(const json_t *panels)
{
	static bool taken[1000][24];
	const json_t *panel;
	size_t i;

	json_array_foreach(panels, i, panel)
	{
		const json_t *pos = json_object_get(panel, "gridPos");

		if (number_of(pos, "x") + number_of(pos, "w") > 24 ||
			number_of(pos, "y") + number_of(pos, "h") > 1000 ||
			number_of(pos, "w") < 1 || number_of(pos, "h") < 1) {
			complain("%s: it has no place", text_of(panel, "title"));
			continue;
		}
		for (int64_t y = 0; y < number_of(pos, "h"); y++) {
			for (int64_t x = 0; x < number_of(pos, "w"); x++) {
				bool *at = &taken[number_of(pos, "y") + y]
						 [number_of(pos, "x") + x];

				if (*at) {
					complain("%s: it lies on another",
						text_of(panel, "title"));
					return;
				}
				*at = true;
			}
		}
	}
}

static void check_panel(const json_t *panel)
{
	const json_t *defaults =
		json_object_get(json_object_get(panel, "fieldConfig"), "defaults");
	const json_t *targets = json_object_get(panel, "targets"), *target;
	const char *title = text_of(panel, "title");
	size_t i;

	if (!title[0])
		complain("a panel has no title");
	if (strcmp(text_of(panel, "type"), "row") == 0)
		return;
	if (!text_of(panel, "description")[0])
		complain("%s: it has no description", title);
	if (!text_of(defaults, "unit")[0])
		complain("%s: it has no unit", title);
	if (json_array_size(targets) == 0)
		complain("%s: it asks for nothing", title);
	json_array_foreach(targets, i, target)
	{
		struct expression e = {.title = title, .text = text_of(target, "expr")};

		check_expression(&e);
		check_legend(&e, text_of(target, "legendFormat"));
	}
}

/* label_values(METRIC{...}, LABEL) */
static void check_variable(const json_t *variable)
{
	struct expression e = {.title = text_of(variable, "name"),
		.text = text_of(variable, "definition")};
	const char *comma = strrchr(e.text, ',');
	char label[64];

	if (strcmp(text_of(variable, "type"), "query") != 0)
		return;
	if (strncmp(e.text, "label_values(", 13) != 0 || !comma) {
		complain("%s: it is no label_values()", e.title);
		return;
	}
	check_expression(&e);
	comma += 1 + strspn(comma + 1, " ");
	(void)snprintf(label, sizeof(label), "%.*s", (int)name_length(comma), comma);
	check_label(&e, label);
}

/* What Grafana would put in for its variables. */
static void print_rule(const char *text, unsigned int number)
{
	static const struct {
		const char *name, *value;
	} variables[] = {{"$__rate_interval", "5m"}, {"$__range", "1h"}};

	(void)printf("  - record: rule:number%u\n    expr: |-\n      ", number);
	while (*text) {
		size_t i = 0;

		while (i < 2 &&
			strncmp(text, variables[i].name, strlen(variables[i].name)) != 0)
			i++;
		if (i < 2) {
			(void)fputs(variables[i].value, stdout);
			text += strlen(variables[i].name);
		} else {
			(void)putchar(*text++);
		}
	}
	(void)putchar('\n');
}

static void print_rules(const json_t *panels)
{
	const json_t *panel, *target;
	unsigned int number = 0;
	size_t i, k;

	(void)puts("groups:\n- name: dashboard\n  rules:");
	json_array_foreach(panels, i, panel)
	{
		json_array_foreach(json_object_get(panel, "targets"), k, target)
			print_rule(text_of(target, "expr"), number++);
	}
}

int main(int argc, char **argv)
{
	bool rules = argc == 3 && strcmp(argv[1], "rules") == 0;
	json_t *board = argc == 3 ? json_load_file(argv[rules ? 2 : 1], 0, NULL) : NULL;
	const json_t *panels = json_object_get(board, "panels"), *each;
	size_t i;

	if (!json_array_size(panels)) {
		(void)puts("it is no dashboard");
		return 2;
	}
	if (rules) {
		print_rules(panels);
		json_decref(board);
		return 0;
	}
	metrics = read_all(argv[2]);
	check_places(panels);
	json_array_foreach(panels, i, each)
	{
		check_panel(each);
	}
	json_array_foreach(
		json_object_get(json_object_get(board, "templating"), "list"), i, each)
	{
		check_variable(each);
	}
	json_decref(board);
	free(metrics);
	return failed;
}
