/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer, on the files and all files of the
 * directories that are named: with any compiler, as a test of the corpus, or in a
 * debugger on one input. Reports one TAP test for each of its arguments.
 *
 * An input that finds something ends the program: the last "# input" line names it.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* A copy of its own of exactly that size, so that AddressSanitizer sees a read behind its end. */
static bool replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat status;
	uint8_t *data;
	size_t size;

	if (file == NULL || stat(path, &status) != 0) {
		printf("# %s: %s\n", path, strerror(errno));
		if (file)
			fclose(file);
		return false;
	}
	size = (size_t)status.st_size;
	data = malloc(size ? size : 1);
	if (data == NULL)
		abort();
	if (fread(data, 1, size, file) != size) {
		printf("# %s: cannot be read whole\n", path);
		fclose(file);
		free(data);
		return false;
	}
	fclose(file);
	printf("# input %s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return true;
}

static bool replay_directory(const char *path, unsigned *num_inputs)
{
	struct dirent **entries;
	const int num_entries = scandir(path, &entries, NULL, alphasort);
	bool ok = true;

	if (num_entries < 0) {
		printf("# %s: %s\n", path, strerror(errno));
		return false;
	}
	for (int i = 0; i < num_entries; i++) {
		char name[4096];

		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		free(entries[i]);
		if (!is_file(name))
			continue;
		ok = replay_file(name) && ok;
		(*num_inputs)++;
	}
	free(entries);
	return ok;
}

int main(int argc, char **argv)
{
	bool all = true;

	if (argc < 2 || strcmp(argv[1], "--help") == 0) {
		fprintf(argc < 2 ? stderr : stdout,
			"Usage: %s FILE|DIRECTORY...\n\n"
			"Runs the fuzz target on each file, and on each file of each directory. Ends at the first\n"
			"input that finds something; the last \"# input\" line names it.\n",
			argv[0]);
		return argc < 2 ? 2 : 0;
	}
	printf("1..%d\n", argc - 1);
	for (int i = 1; i < argc; i++) {
		unsigned num_inputs = 0;
		bool ok;

		if (is_file(argv[i])) {
			ok = replay_file(argv[i]);
			num_inputs = 1;
		} else {
			ok = replay_directory(argv[i], &num_inputs);
		}
		/* A corpus that has gone missing must not pass as one in which nothing was found. */
		ok = ok && num_inputs > 0;
		printf("%s %d - %u inputs of %s\n", ok ? "ok" : "not ok", i, num_inputs, argv[i]);
		all = all && ok;
	}
	return all ? 0 : 1;
}
