/*
 * symbol - walks the loader's list of loaded objects and their GNU hash tables
 *
 * The list is read where the loader keeps it for debuggers (_r_debug), and names are compared by a
 * loop here. dl_iterate_phdr and strcmp are not used: a sanitizer's runtime looks functions up
 * through our dlsym before its own versions of these may be called. Objects that a program starts
 * with are at the front of the list and are never unloaded, so the walk to the C library needs no
 * lock. The dynamic section of a loaded object holds addresses (glibc relocates them in place), so
 * hash table, symbols and strings are read in place. A name may have several versions; the one
 * without the hidden bit is the one that a newly linked program would get.
 */
#include "runtime/process/symbol.h"

#include <elf.h>
#include <link.h>

struct tables {
	const Elf64_Sym *symbols;
	const char *strings;
	const uint32_t *hash;
	const Elf64_Half *versions;
};

#define VERSION_HIDDEN 0x8000

static bool begins_with(const char *text, const char *prefix)
{
	while (*prefix && *text == *prefix) {
		text++;
		prefix++;
	}
	return !*prefix;
}

static bool is_same(const char *a, const char *b)
{
	return begins_with(a, b) && begins_with(b, a);
}

static const char *file_of(const char *path)
{
	const char *file = path;

	for (; *path; path++) {
		if (*path == '/')
			file = path + 1;
	}
	return file;
}

static const void *table_at(const struct link_map *object, Elf64_Addr address)
{
	/* Not relocated only if the dynamic section is read-only. */
	return (const void *)(address < object->l_addr ? address + object->l_addr
						       : address);
}

static bool read_tables(const struct link_map *object, struct tables *out)
{
	*out = (struct tables){0};
	for (const Elf64_Dyn *entry = object->l_ld; entry && entry->d_tag != DT_NULL;
		entry++) {
		const void *table = table_at(object, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB: out->symbols = table; break;
		case DT_STRTAB: out->strings = table; break;
		case DT_GNU_HASH: out->hash = table; break;
		case DT_VERSYM: out->versions = table; break;
		default: break;
		}
	}
	return out->symbols && out->strings && out->hash;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static bool is_wanted(const struct tables *t, uint32_t index, const char *name)
{
	const Elf64_Sym *symbol = &t->symbols[index];

	return symbol->st_shndx != SHN_UNDEF &&
	       ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
	       !(t->versions && (t->versions[index] & VERSION_HIDDEN)) &&
	       is_same(t->strings + symbol->st_name, name);
}

/* Layout: bucket count, first hashed symbol, words in the filter, shift; filter; buckets; one
 * hash per symbol, whose lowest bit ends a bucket. */
static const Elf64_Sym *look_up(const struct tables *t, const char *name)
{
	uint32_t buckets = t->hash[0], first = t->hash[1], filter_words = t->hash[2];
	const uint32_t *bucket = t->hash + 4 + 2 * (size_t)filter_words;
	const uint32_t *chain = bucket + buckets;
	uint32_t hash = hash_of(name), index;

	index = buckets ? bucket[hash % buckets] : 0;
	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t other = chain[index - first];

		if ((other | 1) == (hash | 1) && is_wanted(t, index, name))
			return &t->symbols[index];
		if (other & 1)
			return NULL;
	}
}

static void *find(const char *prefix, const char *name)
{
	for (const struct link_map *at = _r_debug.r_map; at; at = at->l_next) {
		const Elf64_Sym *symbol;
		struct tables tables;

		if (!at->l_name || !begins_with(file_of(at->l_name), prefix))
			continue;
		if (!read_tables(at, &tables))
			continue;
		symbol = look_up(&tables, name);
		if (symbol)
			return (void *)(at->l_addr + symbol->st_value);
	}
	return NULL;
}

void *sl_symbol_find_libc(const char *name)
{
	static const char *const libraries[] = {
		"libc.so.6", "libdl.so.2", "libpthread.so.0"};
	void *found = NULL;

	for (size_t i = 0; i < SL_ARRAY_LEN(libraries) && !found; i++)
		found = find(libraries[i], name);
	return found;
}
