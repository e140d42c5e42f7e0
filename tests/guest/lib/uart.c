/* SPDX-License-Identifier: MIT */
/*
 * A PL011 driver that polls, with the little formatting that TAP needs. Only the
 * boot CPU prints, except for a CPU that gives up.
 */
#include "uart.h"

#include <stdarg.h>

#include "arch.h"

#define UART_BASE  0x09000000ul
#define UART_DR    (UART_BASE + 0x000)
#define UART_FR    (UART_BASE + 0x018)
#define UART_LCR_H (UART_BASE + 0x02c)
#define UART_CR    (UART_BASE + 0x030)
#define UART_IMSC  (UART_BASE + 0x038)
#define UART_RIS   (UART_BASE + 0x03c)
#define UART_ICR   (UART_BASE + 0x044)

#define UART_FR_TXFF      (1u << 5)
#define UART_LCR_H_FEN    (1u << 4)
#define UART_LCR_H_8BIT   (3u << 5)
#define UART_CR_UARTEN    (1u << 0)
#define UART_CR_TXE       (1u << 8)
#define UART_INTERRUPT_TX (1u << 5)

void uart_init(void)
{
	mmio_write32(UART_CR, 0);
	mmio_write32(UART_IMSC, 0);
	mmio_write32(UART_ICR, 0x7ff);
	mmio_write32(UART_LCR_H, UART_LCR_H_8BIT | UART_LCR_H_FEN);
	mmio_write32(UART_CR, UART_CR_UARTEN | UART_CR_TXE);
}

void uart_put_char(char c)
{
	while (mmio_read32(UART_FR) & UART_FR_TXFF)
		cpu_relax();
	mmio_write32(UART_DR, (uint8_t)c);
}

void uart_put_string(const char *s)
{
	while (*s)
		uart_put_char(*s++);
}

void uart_mask_tx_interrupt(bool mask)
{
	mmio_write32(UART_IMSC, mask ? 0 : UART_INTERRUPT_TX);
	dsb();
}

bool uart_tx_interrupt_is_raised(void)
{
	return mmio_read32(UART_RIS) & UART_INTERRUPT_TX;
}

static void put_number(uint64_t value, unsigned base)
{
	char digits[20];
	unsigned n = 0;

	do {
		digits[n++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (n)
		uart_put_char(digits[--n]);
}

/* One conversion; @format points behind the '%'. Returns where the text goes on. */
static const char *put_conversion(const char *format, va_list *args)
{
	bool alternate = *format == '#';

	format += alternate;
	bool is_long = *format == 'l';

	format += is_long;
	switch (*format) {
	case 's':
		uart_put_string(va_arg(*args, const char *));
		break;
	case 'c':
		uart_put_char((char)va_arg(*args, int));
		break;
	case 'd': {
		int value = va_arg(*args, int);

		if (value < 0)
			uart_put_char('-');
		put_number(value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
		break;
	}
	case 'u':
		put_number(is_long ? va_arg(*args, unsigned long) : va_arg(*args, unsigned), 10);
		break;
	case 'x':
		if (alternate)
			uart_put_string("0x");
		put_number(is_long ? va_arg(*args, unsigned long) : va_arg(*args, unsigned), 16);
		break;
	default:
		uart_put_char(*format);
	}
	return format + 1;
}

void uart_printf(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	while (*format) {
		if (*format == '%')
			format = put_conversion(format + 1, &args);
		else
			uart_put_char(*format++);
	}
	va_end(args);
}
