/*
 * tokens - a table that each lookup walks entirely
 */
#include "daemon/web/tokens.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

struct token {
	struct sl_user *who; /* NULL: unused */
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
	token->who = sl_user_free(token->who);
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

static unsigned int count_of(const struct sl_page_tokens *tokens, uid_t uid)
{
	unsigned int count = 0;

	for (size_t i = 0; i < SL_PAGE_TOKENS_MOST; i++)
		count += tokens->all[i].who && tokens->all[i].who->uid == uid;
	return count;
}

/* The oldest token of the user with most, for when the table is full: a user with many must not
 * displace a user with one. */
static struct token *oldest_of_most(struct sl_page_tokens *tokens)
{
	struct token *found = NULL;
	unsigned int most = 0;

	for (size_t i = 0; i < SL_PAGE_TOKENS_MOST; i++) {
		struct token *token = &tokens->all[i];
		unsigned int count = count_of(tokens, token->who->uid);

		if (count < most || (count == most && found->ends <= token->ends))
			continue;
		found = token;
		most = count;
	}
	return found;
}

/* Where a new token goes: the user's oldest if it has SL_PAGE_TOKENS_EACH, else a free place, else
 * another user's. Drops expired tokens. */
static struct token *place_for(struct sl_page_tokens *tokens, uid_t uid, sl_ns now)
{
	struct token *unused = NULL, *own = NULL;
	unsigned int count = 0;

	for (size_t i = 0; i < SL_PAGE_TOKENS_MOST; i++) {
		struct token *token = &tokens->all[i];

		if (token->who && token->ends <= now)
			drop(token);
		if (!token->who) {
			unused = unused ? unused : token;
			continue;
		}
		if (token->who->uid != uid)
			continue;
		count++;
		if (!own || token->ends < own->ends)
			own = token;
	}
	if (count >= SL_PAGE_TOKENS_EACH)
		return own;
	return unused ? unused : oldest_of_most(tokens);
}

int sl_page_tokens_make(struct sl_page_tokens *tokens, const struct sl_user *who,
	sl_ns now, char text[SL_PAGE_TOKEN_ROOM])
{
	unsigned char bytes[SL_PAGE_TOKEN_BYTES];
	struct sl_user *copy = sl_user_copy(who);
	struct token *token;

	if (!copy)
		return sl_err_origin(-ENOMEM);
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		(void)sl_user_free(copy);
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

/* 1 if all bytes are equal, else 0; the time does not depend on where they differ. */
static unsigned int is_equal(const char *a, const char *b, size_t size)
{
	unsigned char differ = 0;

	for (size_t i = 0; i < size; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return differ == 0;
}

/* The matching token, or NULL; the time does not depend on which. Under the lock. */
static struct token *token_of(struct sl_page_tokens *tokens, const char *text)
{
	char wanted[SL_PAGE_TOKEN_ROOM] = "";
	struct token *found = NULL;

	if (strlen(text) != SL_PAGE_TOKEN_ROOM - 1)
		return NULL;
	memcpy(wanted, text, sizeof(wanted));
	for (size_t i = 0; i < SL_PAGE_TOKENS_MOST; i++) {
		if (is_equal(tokens->all[i].text, wanted, sizeof(wanted)))
			found = &tokens->all[i];
	}
	return found && found->who ? found : NULL;
}

struct sl_user *sl_page_tokens_find(
	struct sl_page_tokens *tokens, const char *text, sl_ns now)
{
	struct sl_user *who = NULL;
	struct token *token;

	(void)pthread_mutex_lock(&tokens->mutex);
	token = token_of(tokens, text);
	if (token && token->ends > now)
		who = sl_user_copy(token->who);
	(void)pthread_mutex_unlock(&tokens->mutex);
	return who;
}

bool sl_page_tokens_end(struct sl_page_tokens *tokens, const char *text)
{
	struct token *token;

	(void)pthread_mutex_lock(&tokens->mutex);
	token = token_of(tokens, text);
	if (token)
		drop(token);
	(void)pthread_mutex_unlock(&tokens->mutex);
	return token;
}
