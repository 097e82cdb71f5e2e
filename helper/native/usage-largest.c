/*
 * usage-largest.c: the largest of any number of named things. See usage-largest.h.
 */
#include "usage-largest.h"

#include <stdlib.h>
#include <string.h>

/* Negative when the first is larger. A name decides between equals: prefix and name are compared as one text. */
static int order(const void *first, const void *second)
{
	const struct named *a = first, *b = second;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->files != b->files)
		return a->files > b->files ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void swap(struct named *a, struct named *b)
{
	struct named kept = *a;

	*a = *b;
	*b = kept;
}

/* The heap's first item is new: down with it until nothing smaller is beneath it. */
static void sift_down(struct largest *list)
{
	size_t at = 0;

	for (;;) {
		size_t smallest = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < list->count; child++) {
			if (order(&list->items[child], &list->items[smallest]) > 0)
				smallest = child;
		}
		if (smallest == at)
			return;
		swap(&list->items[at], &list->items[smallest]);
		at = smallest;
	}
}

static void sift_up(struct largest *list)
{
	for (size_t at = list->count - 1; at > 0;) {
		size_t parent = (at - 1) / 2;

		if (order(&list->items[at], &list->items[parent]) <= 0)
			return;
		swap(&list->items[at], &list->items[parent]);
		at = parent;
	}
}

bool largest_open(struct largest *list, size_t max)
{
	*list = (struct largest){.items = calloc(max, sizeof *list->items), .max = max};
	return list->items != NULL;
}

bool largest_add(struct largest *list, const char *prefix, const char *name, uint64_t bytes, uint64_t files)
{
	size_t head = strlen(prefix), tail = strlen(name) + 1;
	struct named item = {.name = malloc(head + tail), .bytes = bytes, .files = files};

	if (item.name == NULL)
		return false;
	memcpy(item.name, prefix, head);
	memcpy(item.name + head, name, tail);
	if (list->count < list->max) {
		list->items[list->count++] = item;
		sift_up(list);
		return true;
	}
	list->dropped = true;
	if (order(&item, &list->items[0]) < 0) {
		swap(&item, &list->items[0]);
		sift_down(list);
	}
	free(item.name);
	return true;
}

void largest_sort(struct largest *list)
{
	qsort(list->items, list->count, sizeof *list->items, order);
}
