/* SPDX-License-Identifier: MIT */
/*
 * its_layout.h - where things are in the guest memory of its_lockstep, and of the fuzz
 * targets whose inputs are made from what that has recorded.
 */
#ifndef TESTS_ITS_LAYOUT_H
#define TESTS_ITS_LAYOUT_H

#include <stdint.h>

#define RAM_BASE UINT64_C(0x40000000)
#define RAM_SIZE 0x200000u

#define PROPERTY_TABLE      (RAM_BASE + 0x10000)
#define PENDING_TABLE(v)    (RAM_BASE + 0x20000 + 0x10000ull * (v))
#define QUEUE(i)            (RAM_BASE + 0xa0000 + 0x10000ull * (i))
#define DEVICE_TABLE(i)     (RAM_BASE + 0xc0000 + 0x20000ull * (i))
#define COLLECTION_TABLE(i) (RAM_BASE + 0x100000 + 0x20000ull * (i))
#define LEVEL2_TABLE(n)     (RAM_BASE + 0x140000 + 0x10000ull * (n))
#define ITT                 (RAM_BASE + 0x180000)

#endif /* TESTS_ITS_LAYOUT_H */
