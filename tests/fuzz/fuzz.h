/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share: the entry that libFuzzer and the replay program
 * call, and a reader of the input's bytes.
 *
 * An input is data of whatever length, never wrong: behind its end all is zero,
 * so that a mutation that cuts or extends it is still a sequence of operations.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One input. Aborts, or exits with a status other than 0, if it has found something. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static inline bool input_is_empty(const struct input *input)
{
	return input->size == 0;
}

static inline uint8_t input_u8(struct input *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

/* Little-endian, of @num_bytes. */
static inline uint64_t input_uint(struct input *input, unsigned num_bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < num_bytes; i++)
		value |= (uint64_t)input_u8(input) << (8 * i);
	return value;
}

static inline uint16_t input_u16(struct input *input)
{
	return (uint16_t)input_uint(input, 2);
}

static inline uint32_t input_u32(struct input *input)
{
	return (uint32_t)input_uint(input, 4);
}

static inline uint64_t input_u64(struct input *input)
{
	return input_uint(input, 8);
}

/* The next @size bytes as they are, fewer at the end of the input. Returns how many; *@bytes is in the input. */
static inline size_t input_bytes(struct input *input, size_t size, const uint8_t **bytes)
{
	const size_t num = size < input->size ? size : input->size;

	*bytes = input->data;
	input->data += num;
	input->size -= num;
	return num;
}

#endif /* TESTS_FUZZ_H */
