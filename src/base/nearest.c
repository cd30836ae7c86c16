/* Edits are those of typing: insert, drop, replace, swap neighbours. */
#include "base/nearest.h"

#include <string.h>

/* Longer words are not compared; no name is near them. */
#define WORD_MAX 32

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

static unsigned int distance(const char *a, const char *b)
{
	unsigned int d[WORD_MAX + 1][WORD_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX)
		return WORD_MAX;
	for (size_t i = 0; i <= la; i++)
		d[i][0] = (unsigned int)i;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= la; i++)
		for (size_t j = 1; j <= lb; j++) {
			unsigned int replace = a[i - 1] != b[j - 1];

			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1,
				d[i - 1][j - 1] + replace);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
				a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	return d[la][lb];
}

struct sl_nearest sl_nearest_to(const char *word)
{
	/* One edit per three letters: fewer edits are a typing error, more are another word. */
	return (struct sl_nearest){
		.word = word, .distance = (unsigned int)(strlen(word) + 2) / 3 + 1};
}

void sl_nearest_offer(struct sl_nearest *nearest, const char *name)
{
	size_t len = strlen(nearest->word);
	unsigned int d = distance(nearest->word, name);

	/* A prefix of the name ("--req") means the name, however short. */
	if (len >= 2 && !strncmp(nearest->word, name, len))
		d = 0;
	if (d >= nearest->distance)
		return;
	nearest->distance = d;
	nearest->best = name;
}

void sl_nearest_add(
	const struct sl_nearest *nearest, const char *otherwise, struct sl_error *err)
{
	char text[sizeof(err->text)];

	memcpy(text, err->text, sizeof(text));
	if (nearest->best)
		sl_error_set(err, "%s; did you mean '%.63s'?", text, nearest->best);
	else
		sl_error_set(err, "%s%s", text, otherwise);
}
