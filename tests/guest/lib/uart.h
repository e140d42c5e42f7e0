/* SPDX-License-Identifier: MIT */
/* The PL011: text output, and its transmit interrupt as a device with a level-sensitive line. */
#ifndef GUEST_UART_H
#define GUEST_UART_H

#include <stdbool.h>

#define UART_INTID 33u

void uart_init(void);
void uart_put_char(char c);
void uart_put_string(const char *s);

/* Understands %s %c %d %u %x %lu %lx and %#x, %#lx; no widths. */
void uart_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The transmit interrupt. A PL011 raises it when its transmit FIFO has drained, so something must have been sent first;
 * the line to the GIC is high while the interrupt is both raised and unmasked here.
 */
void uart_mask_tx_interrupt(bool mask);
bool uart_tx_interrupt_is_raised(void);

#endif
