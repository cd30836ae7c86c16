/*
 * elffile - see elffile.h
 *
 * The dynamic section is found through the program headers, as the loader finds it: section headers
 * may be stripped. A library has one table of the versions that it needs, which is read, and
 * another of those that it defines, which is not. (libsluice.so defines dlsym under several of
 * glibc's versions.)
 */
#include "base/elffile.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* More entries than any library has; ends a cycle of links. */
#define NEEDS_MAX 4096u

struct image {
	const char *data;
	size_t size;
	Elf64_Ehdr head;
	uint64_t strings, strings_bytes, soname,
		needs; /* addresses; soname is an offset */
	bool has_soname;
};

/* Copies unaligned bytes out of the file. False beyond its end. */
static bool take(const struct image *image, uint64_t at, void *to, size_t bytes)
{
	if (at > image->size || bytes > image->size - at)
		return false;
	memcpy(to, image->data + at, bytes);
	return true;
}

static bool header(const struct image *image, unsigned int i, Elf64_Phdr *row)
{
	uint64_t step = (uint64_t)i * sizeof(*row);

	return image->head.e_phoff <= image->size &&
	       take(image, image->head.e_phoff + step, row, sizeof(*row));
}

/* The offset in the file of the byte that is loaded at address; UINT64_MAX if none is. */
static uint64_t offset_of(const struct image *image, uint64_t address)
{
	Elf64_Phdr row;

	for (unsigned int i = 0; i < image->head.e_phnum && header(image, i, &row); i++)
		if (row.p_type == PT_LOAD && address >= row.p_vaddr &&
			address - row.p_vaddr < row.p_filesz)
			return row.p_offset + (address - row.p_vaddr);
	return UINT64_MAX;
}

/* The text at an offset of the string table; NULL unless it ends within the table. */
static const char *string(const struct image *image, uint64_t at)
{
	uint64_t table = offset_of(image, image->strings);

	if (table >= image->size || image->strings_bytes > image->size - table ||
		at >= image->strings_bytes ||
		!memchr(image->data + table + at, '\0', image->strings_bytes - at))
		return NULL;
	return image->data + table + at;
}

static void keep(struct image *image, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_STRTAB: image->strings = entry->d_un.d_ptr; break;
	case DT_STRSZ: image->strings_bytes = entry->d_un.d_val; break;
	case DT_VERNEED: image->needs = entry->d_un.d_ptr; break;
	case DT_SONAME:
		image->soname = entry->d_un.d_val;
		image->has_soname = true;
		break;
	default: break;
	}
}

/* False if there is no dynamic section or if it has no end. */
static bool read_dynamic(struct image *image)
{
	Elf64_Phdr row;

	for (unsigned int i = 0; i < image->head.e_phnum && header(image, i, &row); i++) {
		Elf64_Dyn entry;
		uint64_t at = row.p_offset;

		if (row.p_type != PT_DYNAMIC)
			continue;
		for (; take(image, at, &entry, sizeof(entry)); at += sizeof(entry)) {
			if (entry.d_tag == DT_NULL)
				return true;
			keep(image, &entry);
		}
		return false;
	}
	return false;
}

static bool raise_glibc(const struct image *image, uint64_t name, unsigned int *highest)
{
	static const char mark[] = "GLIBC_2.";
	const char *text = string(image, name);

	if (!text)
		return false;
	if (!strncmp(text, mark, strlen(mark))) {
		unsigned long minor = strtoul(text + strlen(mark), NULL, 10);

		if (minor > *highest && minor < 1000)
			*highest = (unsigned int)minor;
	}
	return true;
}

/* Follows two levels of links: files, and the needed versions of each. */
static bool read_needs(const struct image *image, unsigned int *highest)
{
	uint64_t at = offset_of(image, image->needs);
	unsigned int left = NEEDS_MAX;
	Elf64_Verneed file = {0};

	do {
		Elf64_Vernaux version = {0};
		uint64_t inner;

		if (!take(image, at, &file, sizeof(file)))
			return false;
		inner = at + file.vn_aux;
		do {
			if (!left-- || !take(image, inner, &version, sizeof(version)) ||
				!raise_glibc(image, version.vna_name, highest))
				return false;
			inner += version.vna_next;
		} while (version.vna_next);
		at += file.vn_next;
	} while (file.vn_next);
	return true;
}

static int read_image(struct image *image, struct sl_elf *out)
{
	const char *soname = "";

	if (!take(image, 0, &image->head, sizeof(image->head)) ||
		memcmp(image->head.e_ident, ELFMAG, SELFMAG))
		return SL_ELF_NONE;
	if (image->head.e_ident[EI_CLASS] != ELFCLASS64 ||
		image->head.e_machine != SL_ELF_MACHINE)
		return SL_ELF_FOREIGN;
	if (image->head.e_type != ET_DYN)
		return SL_ELF_NO_LIBRARY;
	if (image->head.e_phentsize != sizeof(Elf64_Phdr) || !read_dynamic(image))
		return SL_ELF_DAMAGED;
	if (image->has_soname)
		soname = string(image, image->soname);
	if (!soname || (image->needs && !read_needs(image, &out->needs_glibc)))
		return SL_ELF_DAMAGED;
	/* A longer name is not this library's. */
	if (strlen(soname) < sizeof(out->soname))
		strcpy(out->soname, soname);
	return SL_ELF_OK;
}

/* Maps the file instead of reading it: most of a library is code, which is not needed. */
int sl_elf_read(const char *path, struct sl_elf *out)
{
	sl_cleanup(sl_closep) int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct image image = {0};
	struct stat st;
	void *data;
	int r;

	*out = (struct sl_elf){0};
	if (fd < 0 || fstat(fd, &st))
		return sl_err_origin(-errno);
	image.size = (size_t)st.st_size;
	if (!image.size)
		return SL_ELF_NONE;
	data = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return sl_err_origin(-errno);
	image.data = data;
	r = read_image(&image, out);
	(void)munmap(data, image.size);
	return r;
}
