/* SPDX-License-Identifier: MIT */
/*
 * The PL011 UART. Transmission takes no time: the transmit FIFO is always empty.
 * No modem lines, no DMA, no errors on the line.
 */
#include "pl011.h"

#include <string.h>

#include "snapshot_file.h"

enum {
	UARTDR = 0x000,
	UARTRSR = 0x004,
	UARTFR = 0x018,
	UARTILPR = 0x020,
	UARTIBRD = 0x024,
	UARTFBRD = 0x028,
	UARTLCR_H = 0x02c,
	UARTCR = 0x030,
	UARTIFLS = 0x034,
	UARTIMSC = 0x038,
	UARTRIS = 0x03c,
	UARTMIS = 0x040,
	UARTICR = 0x044,
	UARTDMACR = 0x048,
	UARTPERIPHID0 = 0xfe0,
};

#define FR_RXFE 0x10u
#define FR_RXFF 0x40u
#define FR_TXFE 0x80u

#define LCR_H_FEN 0x10u

#define CR_UARTEN 0x001u
#define CR_TXE    0x100u
#define CR_RXE    0x200u

#define INT_RX  0x010u
#define INT_TX  0x020u
#define INT_RT  0x040u
#define INT_ALL 0x7ffu

#define IFLS_RESET 0x12u

/* Peripheral and PrimeCell identification: part 0x011, designer Arm, revision 1. */
static const uint8_t identification[8] = { 0x11, 0x10, 0x14, 0x00, 0x0d, 0xf0, 0x05, 0xb1 };

static void update_line(struct pl011 *uart)
{
	const bool level = uart->ris & uart->imsc;

	if (level == uart->line)
		return;
	uart->line = level;
	uart->ops->set_line(uart->owner, level);
}

static unsigned fifo_size(const struct pl011 *uart)
{
	return uart->lcr_h & LCR_H_FEN ? PL011_FIFO_SIZE : 1;
}

/* The receive interrupt's level: with the FIFO on, the fraction that IFLS.RXIFLSEL says. */
static unsigned receive_threshold(const struct pl011 *uart)
{
	static const unsigned char levels[8] = { 2, 4, 8, 12, 14, 14, 14, 14 };

	return uart->lcr_h & LCR_H_FEN ? levels[(uart->ifls >> 3) & 7] : 1;
}

/*
 * RX follows the level. RT says that characters wait that are too few for RX: there is no time on this line, so it is
 * raised as soon as there is any.
 */
static void update_receive(struct pl011 *uart)
{
	uart->ris &= ~(INT_RX | INT_RT);
	if (uart->rx_count >= receive_threshold(uart))
		uart->ris |= INT_RX;
	if (uart->rx_count > 0)
		uart->ris |= INT_RT;
	update_line(uart);
}

void pl011_fill(struct pl011 *uart)
{
	const uint32_t on = CR_UARTEN | CR_RXE;
	bool any = false;

	while ((uart->cr & on) == on && uart->rx_count < fifo_size(uart)) {
		const int c = uart->ops->receive(uart->owner);

		if (c < 0)
			break;
		uart->rx[(uart->rx_first + uart->rx_count++) % PL011_FIFO_SIZE] = (uint8_t)c;
		any = true;
	}
	if (any)
		update_receive(uart);
}

static uint32_t read_data(struct pl011 *uart)
{
	uint32_t c = 0;

	if (uart->rx_count > 0) {
		c = uart->rx[uart->rx_first];
		uart->rx_first = (uart->rx_first + 1) % PL011_FIFO_SIZE;
		uart->rx_count--;
		update_receive(uart);
		/*
		 * A driver that listens by interrupt gets the next character at once. Otherwise it comes with time, as on a
		 * line: drivers empty the FIFO before they begin to listen, and must come to an end.
		 */
		if (uart->imsc & (INT_RX | INT_RT))
			pl011_fill(uart);
	}
	return c;
}

/* Firmware and early consoles write before they enable: what they say is worth seeing. */
static void write_data(struct pl011 *uart, uint32_t value)
{
	uart->ops->transmit(uart->owner, (char)value);
	uart->ris |= INT_TX;
	update_line(uart);
}

static uint32_t read_flags(const struct pl011 *uart)
{
	uint32_t flags = FR_TXFE;

	if (uart->rx_count == 0)
		flags |= FR_RXFE;
	if (uart->rx_count == fifo_size(uart))
		flags |= FR_RXFF;
	return flags;
}

uint64_t pl011_read(void *owner, uint64_t offset, unsigned width)
{
	struct pl011 *uart = owner;

	(void)width;
	if (offset >= UARTPERIPHID0 && offset < UARTPERIPHID0 + 4 * sizeof(identification))
		return identification[(offset - UARTPERIPHID0) / 4];
	switch (offset) {
	case UARTDR:
		return read_data(uart);
	case UARTFR:
		return read_flags(uart);
	case UARTIBRD:
		return uart->ibrd;
	case UARTFBRD:
		return uart->fbrd;
	case UARTLCR_H:
		return uart->lcr_h;
	case UARTCR:
		return uart->cr;
	case UARTIFLS:
		return uart->ifls;
	case UARTIMSC:
		return uart->imsc;
	case UARTRIS:
		return uart->ris;
	case UARTMIS:
		return uart->ris & uart->imsc;
	case UARTDMACR:
		return uart->dmacr;
	default: /* UARTRSR: no errors; UARTILPR: no IrDA; the rest is reserved */
		return 0;
	}
}

void pl011_write(void *owner, uint64_t offset, unsigned width, uint64_t value)
{
	struct pl011 *uart = owner;
	const uint32_t v = (uint32_t)value;

	(void)width;
	switch (offset) {
	case UARTDR:
		write_data(uart, v & 0xff);
		break;
	case UARTIBRD:
		uart->ibrd = v & 0xffff;
		break;
	case UARTFBRD:
		uart->fbrd = v & 0x3f;
		break;
	case UARTLCR_H:
		uart->lcr_h = v & 0xff;
		update_receive(uart);
		break;
	case UARTCR:
		uart->cr = v & 0xffff;
		pl011_fill(uart);
		break;
	case UARTIFLS:
		uart->ifls = v & 0x3f;
		update_receive(uart);
		break;
	case UARTIMSC:
		uart->imsc = v & INT_ALL;
		update_line(uart);
		break;
	case UARTICR:
		uart->ris &= ~(v & INT_ALL);
		update_receive(uart); /* what still waits is signalled again */
		break;
	case UARTDMACR:
		uart->dmacr = v & 7;
		break;
	default:
		break;
	}
}

void pl011_reset(struct pl011 *uart)
{
	uart->cr = CR_RXE | CR_TXE;
	uart->lcr_h = 0;
	uart->ibrd = 0;
	uart->fbrd = 0;
	uart->ifls = IFLS_RESET;
	uart->imsc = 0;
	uart->ris = 0;
	uart->dmacr = 0;
	uart->rx_first = 0;
	uart->rx_count = 0;
	update_line(uart);
}

void pl011_init(struct pl011 *uart, const struct pl011_ops *ops, void *owner)
{
	memset(uart, 0, sizeof(*uart));
	uart->ops = ops;
	uart->owner = owner;
	pl011_reset(uart);
}

void pl011_save(const struct pl011 *uart, struct snapshot_out *out)
{
	put_u32(out, uart->cr);
	put_u32(out, uart->lcr_h);
	put_u32(out, uart->ibrd);
	put_u32(out, uart->fbrd);
	put_u32(out, uart->ifls);
	put_u32(out, uart->imsc);
	put_u32(out, uart->ris);
	put_u32(out, uart->dmacr);
	put_u8(out, uart->line);
	put_u8(out, (uint8_t)uart->rx_count);
	for (unsigned i = 0; i < uart->rx_count; i++)
		put_u8(out, uart->rx[(uart->rx_first + i) % PL011_FIFO_SIZE]);
}

/* Each register can be anything: the functions above mask what they use. */
void pl011_load(struct pl011 *uart, struct snapshot_in *in)
{
	unsigned count;

	uart->cr = get_u32(in);
	uart->lcr_h = get_u32(in);
	uart->ibrd = get_u32(in);
	uart->fbrd = get_u32(in);
	uart->ifls = get_u32(in);
	uart->imsc = get_u32(in);
	uart->ris = get_u32(in);
	uart->dmacr = get_u32(in);
	uart->line = get_bool(in);
	count = get_u8(in);
	if (count > PL011_FIFO_SIZE) {
		snapshot_in_wrong(in, "there are more characters than the FIFO holds");
		return;
	}
	uart->rx_first = 0;
	uart->rx_count = count;
	get_data(in, uart->rx, count);
	if (uart->line != !!(uart->ris & uart->imsc))
		snapshot_in_wrong(in, "the interrupt line is not as the registers say");
}
