/*
 * list - intrusive doubly linked list
 *
 * A head and its links are struct sl_link. An unlinked link points at itself, so unlinking twice is
 * harmless. Every operation is O(1). Not thread-safe.
 */
#ifndef SL_BASE_LIST_H
#define SL_BASE_LIST_H

#include "base/sl.h"

struct sl_link {
	struct sl_link *prev, *next;
};

#define SL_LIST_INIT(name)       \
	{                        \
		&(name), &(name) \
	}

static inline void sl_list_init(struct sl_link *link)
{
	link->prev = link->next = link;
}

static inline bool sl_list_is_empty(const struct sl_link *head)
{
	return head->next == head;
}

static inline bool sl_list_is_linked(const struct sl_link *link)
{
	return link->next != link;
}

/* Puts link in front of `before`; in front of the head is the tail. */
static inline void sl_list_insert_before(struct sl_link *before, struct sl_link *link)
{
	link->prev = before->prev;
	link->next = before;
	before->prev->next = link;
	before->prev = link;
}

static inline void sl_list_push_tail(struct sl_link *head, struct sl_link *link)
{
	sl_list_insert_before(head, link);
}

static inline void sl_list_push_head(struct sl_link *head, struct sl_link *link)
{
	sl_list_insert_before(head->next, link);
}

static inline void sl_list_unlink(struct sl_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	sl_list_init(link);
}

#define SL_LIST_ENTRY(link, type, member) SL_CONTAINER_OF(link, type, member)
#define sl_list_foreach(link, head) \
	for (struct sl_link *link = (head)->next; link != (head); link = link->next)
/* The body may unlink `link` itself. */
#define sl_list_foreach_safe(link, head)                                      \
	for (struct sl_link *link = (head)->next, *link##_next_ = link->next; \
		link != (head); link = link##_next_, link##_next_ = link->next)

#endif
