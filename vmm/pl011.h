/* SPDX-License-Identifier: MIT */
/* An Arm PL011 UART. Its registers are as in the PrimeCell UART (PL011) Technical Reference Manual. */
#ifndef VMM_PL011_H
#define VMM_PL011_H

#include <stdbool.h>
#include <stdint.h>

#define PL011_FIFO_SIZE 16u

struct snapshot_in;
struct snapshot_out;

struct pl011_ops {
	void (*transmit)(void *owner, char c);
	int (*receive)(void *owner); /* the next character, or -1 */
	void (*set_line)(void *owner, bool level);
};

struct pl011 {
	const struct pl011_ops *ops;
	void *owner;
	bool line;

	uint32_t cr;
	uint32_t lcr_h;
	uint32_t ibrd;
	uint32_t fbrd;
	uint32_t ifls;
	uint32_t imsc;
	uint32_t ris;
	uint32_t dmacr;
	uint8_t rx[PL011_FIFO_SIZE];
	unsigned rx_first;
	unsigned rx_count;
};

void pl011_init(struct pl011 *uart, const struct pl011_ops *ops, void *owner);
void pl011_reset(struct pl011 *uart);

/* To and from a saved machine. Loading drives no line: the controller has been saved too. */
void pl011_save(const struct pl011 *uart, struct snapshot_out *out);
void pl011_load(struct pl011 *uart, struct snapshot_in *in);

/* Take what receive() has, as far as there is room. */
void pl011_fill(struct pl011 *uart);

/* Register accesses, for cpu_map_mmio(); @uart is a struct pl011. */
uint64_t pl011_read(void *uart, uint64_t offset, unsigned width);
void pl011_write(void *uart, uint64_t offset, unsigned width, uint64_t value);

#endif /* VMM_PL011_H */
