/*
 * symbol - walks the program headers of what is loaded to the GNU hash table
 *
 * The dynamic section of a loaded object holds addresses (glibc relocates them in place), so
 * hash table, symbols and strings can be read where they lie. A name may be there in several
 * versions; the one without the hidden bit is what a newly linked program would get.
 */
#include "runtime/symbol.h"

#include <elf.h>
#include <link.h>
#include <string.h>

struct search {
	const char *prefix;
	const char *name;
	void *found;
};

struct tables {
	const Elf64_Sym *symbols;
	const char *strings;
	const uint32_t *hash;
	const Elf64_Half *versions;
};

#define VERSION_HIDDEN 0x8000

static const void *table_at(const struct dl_phdr_info *object, Elf64_Addr address)
{
	/* Left unrelocated only where the dynamic section is read-only. */
	return (const void *)(address < object->dlpi_addr ? address + object->dlpi_addr
							  : address);
}

static bool read_tables(const struct dl_phdr_info *object, struct tables *out)
{
	const Elf64_Dyn *entry = NULL;

	memset(out, 0, sizeof(*out));
	for (int i = 0; i < object->dlpi_phnum; i++) {
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const Elf64_Dyn *)(object->dlpi_addr +
						    object->dlpi_phdr[i].p_vaddr);
	}
	for (; entry && entry->d_tag != DT_NULL; entry++) {
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
	       strcmp(t->strings + symbol->st_name, name) == 0;
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

static int visit(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct search *search = arg;
	const char *slash = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
	const char *file = slash ? slash + 1 : object->dlpi_name;
	const Elf64_Sym *symbol;
	struct tables tables;

	if (!file || strncmp(file, search->prefix, strlen(search->prefix)) != 0)
		return 0;
	if (!read_tables(object, &tables))
		return 0;
	symbol = look_up(&tables, search->name);
	if (!symbol)
		return 0;
	search->found = (void *)(object->dlpi_addr + symbol->st_value);
	return 1;
}

void *sl_symbol_find(const char *prefix, const char *name)
{
	struct search search = {.prefix = prefix, .name = name};

	(void)dl_iterate_phdr(visit, &search);
	return search.found;
}

void *sl_symbol_find_libc(const char *name)
{
	static const char *const libraries[] = {
		"libc.so.6", "libdl.so.2", "libpthread.so.0"};
	void *found = NULL;

	for (size_t i = 0; i < SL_ARRAY_LEN(libraries) && !found; i++)
		found = sl_symbol_find(libraries[i], name);
	return found;
}
