/*
 * page_tokens - a table that is gone through whole
 */
#include "daemon/page_tokens.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

struct token {
	struct sl_who *who; /* NULL: a free place */
	sl_ns ends;
	char text[SL_PAGE_TOKEN_ROOM];
};

struct sl_page_tokens {
	pthread_mutex_t mutex;
	struct token all[SL_PAGE_TOKENS_MOST];
};

struct sl_page_tokens *sl_page_tokens_new(void)
{
	struct sl_page_tokens *tokens = calloc(1, sizeof(*tokens));

	if (tokens)
		(void)pthread_mutex_init(&tokens->mutex, NULL);
	return tokens;
}

static void drop(struct token *token)
{
	token->who = sl_who_free(token->who);
	memset(token->text, 0, sizeof(token->text));
}

struct sl_page_tokens *sl_page_tokens_free(struct sl_page_tokens *tokens)
{
	if (!tokens)
		return NULL;
	for (size_t i = 0; i < SL_PAGE_TOKENS_MOST; i++)
		drop(&tokens->all[i]);
	(void)pthread_mutex_destroy(&tokens->mutex);
	free(tokens);
	return NULL;
}

/* Where the next one goes: in place of the user's oldest if it has its number, else a free place, else the oldest of all. */
static struct token *place_for(struct sl_page_tokens *tokens, uid_t uid, sl_ns now)
{
	struct token *unused = NULL, *own = NULL, *oldest = NULL;
	unsigned int count = 0;

	for (size_t i = 0; i < SL_PAGE_TOKENS_MOST; i++) {
		struct token *token = &tokens->all[i];

		if (token->who && token->ends <= now)
			drop(token);
		if (!token->who) {
			unused = unused ? unused : token;
			continue;
		}
		if (!oldest || token->ends < oldest->ends)
			oldest = token;
		if (token->who->uid != uid)
			continue;
		count++;
		if (!own || token->ends < own->ends)
			own = token;
	}
	if (count >= SL_PAGE_TOKENS_EACH)
		return own;
	return unused ? unused : oldest;
}

int sl_page_tokens_make(struct sl_page_tokens *tokens, const struct sl_who *who,
	sl_ns now, char text[SL_PAGE_TOKEN_ROOM])
{
	unsigned char bytes[SL_PAGE_TOKEN_BYTES];
	struct sl_who *copy = sl_who_copy(who);
	struct token *token;

	if (!copy)
		return sl_err_origin(-ENOMEM);
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		(void)sl_who_free(copy);
		return sl_err_origin(-EIO);
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	(void)pthread_mutex_lock(&tokens->mutex);
	token = place_for(tokens, who->uid, now);
	drop(token);
	token->who = copy;
	token->ends = now + SL_PAGE_TOKEN_LIFE;
	memcpy(token->text, text, sizeof(token->text));
	(void)pthread_mutex_unlock(&tokens->mutex);
	return 0;
}

/* 1 if all bytes are equal, else 0; the time does not say where they differ. */
static unsigned int is_equal(const char *a, const char *b, size_t size)
{
	unsigned char differ = 0;

	for (size_t i = 0; i < size; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return differ == 0;
}

struct sl_who *sl_page_tokens_find(
	struct sl_page_tokens *tokens, const char *text, sl_ns now)
{
	char wanted[SL_PAGE_TOKEN_ROOM] = "";
	struct sl_who *who = NULL;
	size_t found = SL_PAGE_TOKENS_MOST;

	if (strlen(text) != SL_PAGE_TOKEN_ROOM - 1)
		return NULL;
	memcpy(wanted, text, sizeof(wanted));
	(void)pthread_mutex_lock(&tokens->mutex);
	for (size_t i = 0; i < SL_PAGE_TOKENS_MOST; i++) {
		if (is_equal(tokens->all[i].text, wanted, sizeof(wanted)))
			found = i;
	}
	if (found < SL_PAGE_TOKENS_MOST && tokens->all[found].who &&
		tokens->all[found].ends > now)
		who = sl_who_copy(tokens->all[found].who);
	(void)pthread_mutex_unlock(&tokens->mutex);
	return who;
}
