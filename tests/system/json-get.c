/*
 * json-get - one value out of JSON on standard input, for shell tests
 *
 *	json-get PATH             the whole input is one document
 *	json-get -l KEY=VALUE PATH   the input is lines; the last one whose KEY is VALUE
 *	json-get -n KEY=VALUE     the input is lines; how many have KEY at VALUE
 *
 * PATH: steps joined by dots; a number is an index, KEY=VALUE picks the first element of an array
 * with that member, "#" is the length. Prints strings bare. Exit status 1 if there is no such
 * value.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if object has a member as "KEY=VALUE" says. */
static bool matches(const json_t *object, const char *rule)
{
	const char *equals = strchr(rule, '=');
	char key[64], number[32];
	const json_t *value;

	snprintf(key, sizeof(key), "%.*s", (int)(equals - rule), rule);
	value = json_object_get(object, key);
	if (json_is_string(value))
		return !strcmp(json_string_value(value), equals + 1);
	snprintf(number, sizeof(number), "%lld",
		(long long)(json_is_boolean(value) ? json_is_true(value)
						   : json_integer_value(value)));
	return value && !strcmp(number, equals + 1);
}

static const json_t *step(const json_t *from, const char *name)
{
	if (strchr(name, '=')) {
		for (size_t i = 0; i < json_array_size(from); i++)
			if (matches(json_array_get(from, i), name))
				return json_array_get(from, i);
		return NULL;
	}
	return json_is_array(from) ? json_array_get(from, strtoul(name, NULL, 10))
				   : json_object_get(from, name);
}

static int print(const json_t *root, char *path)
{
	const json_t *at = root;

	for (char *name = strtok(path, "."); name && at; name = strtok(NULL, ".")) {
		if (!strcmp(name, "#")) {
			printf("%zu\n", json_array_size(at));
			return 0;
		}
		at = step(at, name);
	}
	if (json_is_string(at))
		printf("%s\n", json_string_value(at));
	else if (json_is_integer(at))
		printf("%lld\n", (long long)json_integer_value(at));
	else if (json_is_boolean(at))
		printf("%d\n", json_is_true(at));
	else if (json_is_real(at))
		printf("%f\n", json_real_value(at));
	else
		return 1;
	return 0;
}

/* Lines that are no JSON are passed over: programs also print other things. */
static int by_line(const char *rule, char *path)
{
	char line[65536];
	json_t *found = NULL;
	int count = 0, status;

	while (fgets(line, sizeof(line), stdin)) {
		json_t *object = json_loads(line, 0, NULL);

		if (object && matches(object, rule)) {
			count++;
			json_decref(found);
			found = json_incref(object);
		}
		json_decref(object);
	}
	if (!path) {
		json_decref(found);
		printf("%d\n", count);
		return 0;
	}
	status = found ? print(found, path) : 1;
	json_decref(found);
	return status;
}

int main(int argc, char **argv)
{
	json_t *root;
	int status;

	if (argc == 4 && !strcmp(argv[1], "-l") && strchr(argv[2], '='))
		return by_line(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "-n") && strchr(argv[2], '='))
		return by_line(argv[2], NULL);
	if (argc != 2) {
		fprintf(stderr, "usage: json-get [-l KEY=VALUE] PATH | -n KEY=VALUE\n");
		return 2;
	}
	root = json_loadf(stdin, 0, NULL);
	status = root ? print(root, argv[1]) : 1;
	json_decref(root);
	return status;
}
