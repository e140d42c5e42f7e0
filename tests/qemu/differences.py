# SPDX-License-Identifier: MIT
"""Where libvgic differs from QEMU's GIC on purpose, and why. docs/CAVEATS.md has these too.

Each entry has a witness: operations, and for those that read what QEMU says and what
libvgic says. qemu-diff executes all of them first: an entry that is no difference
any more is a failure. In random scripts an entry acts in one of three ways:

- masks: register -> bits that are not compared;
- avoids: accesses that the scripts do not make;
- neither: the generator steers clear of it, and says so by steer().

How often each has acted is counted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from script import find_register


@dataclass
class Access:
    """A register access that a random script is about to make."""
    write: bool
    name: str       # of the register; '' where none is
    frame: str
    address: int
    offset: int     # within the array of registers, or in the frame
    width: int
    value: int = 0


@dataclass
class Difference:
    name: str
    reason: str
    witness: str
    masks: dict = field(default_factory=dict)
    avoids: Callable = None
    acted: int = 0

    def steps(self):
        """The witness: (operation, what QEMU says, what libvgic says), the last two None where nothing is read."""
        for line in self.witness.strip().splitlines():
            fields = [part.strip() for part in line.split('|')]
            if len(fields) == 3:
                yield fields[0], int(fields[1], 0), int(fields[2], 0)
            else:
                yield fields[0], None, None


ALL = (1 << 64) - 1

# An ITS with collections 0 and 1 at redistributors 0 and 1, and two events of device 5 in collection 0.
SET_UP = """
    v0 w64 GICR_PROPBASER@0 PROP+0xd; v0 w64 GICR_PROPBASER@1 PROP+0xd
    v0 w64 GICR_PENDBASER@0 PEND@0; v0 w64 GICR_PENDBASER@1 PEND@1
    v0 w32 GICR_CTLR@0 1; v0 w32 GICR_CTLR@1 1
    v0 w64 GITS_BASER DEVTAB+0x8000000000000200; v0 w64 GITS_BASER+8 COLTAB+0x8000000000000200
    v0 w64 GITS_CBASER QUEUE+0x8000000000000000; v0 w32 GITS_CTLR 1
    its0 mapc 0 0; its0 mapc 1 1; its0 mapd 5 ITT@0 4; its0 mapti 5 0 8192 0; its0 mapti 5 1 8193 0
"""

# Bits 0 and up are those of LPI 8192 and up. EnableLPIs=0 has them written here.
PENDING_0 = 'v0 w32 GICR_CTLR@0 0; dump PEND@0+0x400 1'
PENDING_1 = 'v0 w32 GICR_CTLR@1 0; dump PEND@1+0x400 1'

DIFFERENCES = [
    Difference(
        'unaligned',
        'QEMU splits a misaligned access into aligned ones before a device sees it. Here it reads as zero and is ignored; '
        'to device memory a processor makes none.',
        """
        v0 w32 GICD_ISENABLER+6 0xffffffff
        v0 r32 GICD_ISENABLER+4 | 0x0 | 0x0
        v0 w64 GICD_ISENABLER+4 0xff
        v0 r32 GICD_ISENABLER+4 | 0xff | 0x0
        """,
        avoids=lambda a: a.address % a.width != 0),
    Difference(
        'implementer',
        'Who made it: the IIDRs; and PIDR0, which is another one for redistributors and ITS in QEMU.',
        """
        v0 r32 GICD_IIDR | 0x43b | 0x76001000
        v0 r32 GICR_IIDR | 0x43b | 0x76001000
        v0 r32 GITS_IIDR | 0x43b | 0x76001000
        v0 r32 GICR_PIDR0 | 0x93 | 0x92
        v0 r32 GITS_PIDR0 | 0x94 | 0x92
        """,
        masks={'GICD_IIDR': ALL, 'GICR_IIDR': ALL, 'GITS_IIDR': ALL, 'GICR_PIDR0': 0xff, 'GITS_PIDR0': 0xff}),
    Difference(
        'lines-number',
        'GICD_TYPER.ITLinesNumber is one too small in QEMU 7.2: with 7 there were no INTID above 255, but there are 288.',
        """
        v0 r32 GICD_TYPER | 0x37a0007 | 0x37a0008
        v0 w32 GICD_ISENABLER+0x20 1
        v0 r32 GICD_ISENABLER+0x20 | 1 | 1
        """,
        masks={'GICD_TYPER': 0x1f}),
    Difference(
        'priority-bits',
        "QEMU's distributor and redistributors keep eight bits of a priority, whatever ICC_CTLR_EL1.PRIbits says. Here there "
        'are five.',
        """
        v0 w32 GICD_IPRIORITYR+32 0xffffffff
        v0 r32 GICD_IPRIORITYR+32 | 0xffffffff | 0xf8f8f8f8
        v0 w8 GICR_IPRIORITYR+3 0xff
        v0 r8 GICR_IPRIORITYR+3 | 0xff | 0xf8
        """,
        masks={'GICD_IPRIORITYR': 0x07070707, 'GICR_IPRIORITYR': 0x07070707}),
    Difference(
        'invalidate-registers',
        'GICR_INVLPIR, GICR_INVALLR and GICR_SYNCR are here (GICR_CTLR.IR=1), and are not in QEMU 7.2.',
        """
        v0 r32 GICR_CTLR | 0x2 | 0x6
        """,
        masks={'GICR_CTLR': 1 << 2}),
    Difference(
        'common-lpi-configuration',
        'There is one GICR_PROPBASER here (GICR_TYPER.CommonLPIAff=0), as all redistributors must have the same anyway. QEMU '
        'has one for each, and says that those of one Aff3 are the same.',
        """
        v0 r64 GICR_TYPER | 0x1000001 | 0x1
        v0 w64 GICR_PROPBASER@1 0x4020000d
        v0 r64 GICR_PROPBASER | 0x0 | 0x4020000d
        """,
        masks={'GICR_TYPER': 1 << 24},
        avoids=lambda a: a.write and a.name == 'GICR_PROPBASER'),
    Difference(
        'res0-bits',
        'QEMU keeps bits that are RES0, also PTZ, which reads as zero.',
        """
        v0 w64 GICR_PROPBASER 0xffffffffffffffff
        v0 r64 GICR_PROPBASER | 0xffffffffffffffff | 0x070fffffffffff9f
        v0 w64 GICR_PENDBASER 0xffffffffffffffff
        v0 r64 GICR_PENDBASER | 0xffffffffffffffff | 0x070fffffffff0f80
        v0 w64 GITS_CBASER 0xffffffffffffffff
        v0 r64 GITS_CBASER | 0xffffffffffffffff | 0xb8effffffffffcff
        v0 w64 GICD_IROUTER+0x100 0xffffffffffffffff
        v0 r64 GICD_IROUTER+0x100 | 0xffffffffffffffff | 0xff00ffffff
        """,
        masks={'GICR_PROPBASER': ALL ^ 0x070fffffffffff9f, 'GICR_PENDBASER': ALL ^ 0x070fffffffff0f80,
               'GITS_CBASER': ALL ^ 0xb8effffffffffcff, 'GICD_IROUTER': ALL ^ 0xff00ffffff}),
    Difference(
        'table-entries',
        'An ITT entry has 8 bytes here and 12 in QEMU. GITS_TYPER.CIL: QEMU says that ICIDs have 16 bits, which they also have '
        'without it.',
        """
        v0 r64 GITS_TYPER | 0x1f0001efb1 | 0x1ef71
        """,
        masks={'GITS_TYPER': 0x1f000000f0}),
    Difference(
        'quiescent',
        'GITS_CTLR.Quiescent is always 1 in QEMU. Here it is 1 when the ITS is off and nothing is on its way any more.',
        """
        v0 w64 GITS_CBASER QUEUE+0x8000000000000000
        v0 w64 GITS_BASER DEVTAB+0x8000000000000200
        v0 w64 GITS_BASER+8 COLTAB+0x8000000000000200
        v0 w32 GITS_CTLR 1
        v0 r32 GITS_CTLR | 0x80000001 | 0x1
        v0 w32 GITS_CTLR 0
        v0 r32 GITS_CTLR | 0x80000000 | 0x80000000
        """,
        masks={'GITS_CTLR': 1 << 31}),
    Difference(
        'table-attributes',
        'Out of reset GITS_BASER<n> says inner shareable and inner cacheable here, as KVM does, and nothing in QEMU: both are '
        'allowed. They are written before each script.',
        """
        v0 r64 GITS_BASER | 0x0107000000000200 | 0x1907000000000600
        v0 r64 GITS_BASER+8 | 0x0407000000000200 | 0x1c07000000000600
        """),
    Difference(
        'page-size',
        'Table pages have 64 KiB here, whatever is written. In QEMU they can have 4 or 16 KiB, too.',
        """
        v0 w64 GITS_BASER 0
        v0 r64 GITS_BASER | 0x0107000000000000 | 0x0107000000000200
        """,
        masks={'GITS_BASER': 3 << 8}),
    Difference(
        'indirect-collections',
        'The collection table is flat here.',
        """
        v0 w64 GITS_BASER+8 0x4000000000000200
        v0 r64 GITS_BASER+8 | 0x4407000000000200 | 0x0407000000000200
        """,
        avoids=lambda a: a.write and a.name == 'GITS_BASER' and 8 <= a.offset < 16
        and a.value << 8 * (a.offset % 8) >> 62 & 1),
    Difference(
        'new-queue',
        'A write of GITS_CBASER clears GITS_CREADR, and here GITS_CWRITER too, which the architecture leaves open.',
        """
        v0 w64 GITS_CBASER QUEUE+0x8000000000000000
        v0 w64 GITS_CWRITER 0x40
        v0 w64 GITS_CBASER QUEUE+0x8000000000000000
        v0 r64 GITS_CWRITER | 0x40 | 0x0
        """),
    Difference(
        'creadr-writable',
        'GITS_CREADR is read-only here.',
        """
        v0 w64 GITS_CREADR 0x40
        v0 r64 GITS_CREADR | 0x40 | 0x0
        """,
        avoids=lambda a: a.write and a.name == 'GITS_CREADR'),
    Difference(
        'cwriter-past-the-end',
        'An offset past the end of the queue, or one without a queue, is ignored here. QEMU keeps what is written, and executes '
        'nothing.',
        """
        v0 w64 GITS_CWRITER 0x1000
        v0 r64 GITS_CWRITER | 0x1000 | 0x0
        v0 w64 GITS_CBASER QUEUE+0x8000000000000000
        v0 w64 GITS_CWRITER 0x1000
        v0 r64 GITS_CWRITER | 0x1000 | 0x0
        """,
        avoids=lambda a: a.write and a.name == 'GITS_CWRITER'),
    Difference(
        'enable-without-tables',
        'The ITS can be enabled here only with a queue and both tables.',
        """
        v0 w32 GITS_CTLR 1
        v0 r32 GITS_CTLR | 0x80000001 | 0x80000000
        """,
        avoids=lambda a: a.write and a.name == 'GITS_CTLR' and a.value & 1),
    Difference(
        'tables-in-use',
        'GICR_PROPBASER and GICR_PENDBASER cannot be written here while EnableLPIs is 1 (UNPREDICTABLE).',
        """
        v0 w32 GICR_CTLR@1 1
        v0 w64 GICR_PENDBASER@1 0x40200000
        v0 r64 GICR_PENDBASER@1 | 0x40200000 | 0x0
        """),
    Difference(
        'device-with-events',
        'MAPD of a device that is mapped removes its events and what is pending of them here. QEMU keeps both: software has to '
        'DISCARD them first.',
        SET_UP + f"""
        its0 int 5 0; its0 unmapd 5
        {PENDING_0} | 1 | 0
        """),
    Difference(
        'collection-with-events',
        'A MAPC that maps a collection elsewhere takes along what is pending here, QEMU leaves it. Software has to use MOVALL.',
        SET_UP + f"""
        its0 int 5 0; its0 mapc 0 1
        {PENDING_0} | 1 | 0
        {PENDING_1} | 0 | 1
        """),
    Difference(
        'movall',
        'After MOVALL what comes for LPIs of the redistributor goes to the other one here (as in KVM), in QEMU to where their '
        'collection is mapped. Software maps the collections anew.',
        SET_UP + f"""
        its0 movall 0 1; its0 int 5 0
        {PENDING_0} | 1 | 0
        {PENDING_1} | 0 | 1
        """),
    Difference(
        'unmapped-collection',
        'DISCARD removes an event whose collection is not mapped here, and not in QEMU.',
        SET_UP + f"""
        its0 mapti 5 2 8194 2; its0 discard 5 2; its0 mapc 2 0; its0 int 5 2
        {PENDING_0} | 4 | 0
        """),
    Difference(
        'event-mapped-twice',
        'A MAPTI over a live event removes the LPI that it led to here (UNPREDICTABLE). In QEMU that stays pending.',
        SET_UP + f"""
        its0 int 5 0; its0 mapti 5 0 8194 0
        {PENDING_0} | 1 | 0
        """),
    Difference(
        'lpi-past-the-tables',
        'A MAPTI to an LPI that GICR_PROPBASER.IDbits does not allow is refused here. QEMU maps it, and drops what comes for it.',
        SET_UP + f"""
        its0 mapti 5 0 0x4000 0; its0 int 5 0
        {PENDING_0} | 0 | 1
        """),
    Difference(
        'two-events-of-one-lpi',
        'Of two events on one LPI the last mapping decides its target here (UNPREDICTABLE). In QEMU each has its own.',
        SET_UP + f"""
        its0 mapti 5 2 8192 1; its0 int 5 0
        {PENDING_0} | 1 | 0
        {PENDING_1} | 0 | 1
        """),
    Difference(
        'move-while-off',
        'A MOVI from a redistributor whose EnableLPIs is 0: the bit in its pending table is that of an LPI that is elsewhere, and '
        'counts for nobody here when the table is read again. In QEMU it stays one of this redistributor.',
        SET_UP + f"""
        its0 int 5 0; v0 w32 GICR_CTLR@0 0; its0 movi 5 0 1; v0 w32 GICR_CTLR@0 1
        {PENDING_0} | 1 | 0
        """),
]

BY_NAME = {difference.name: difference for difference in DIFFERENCES}


def explain(address, width, qemu, libvgic):
    """Are two values of a register the same but for bits that may differ?"""
    register, offset, _ = find_register(address)
    if not register:
        return False
    left = qemu ^ libvgic
    for difference in DIFFERENCES:
        mask = difference.masks.get(register.name)
        if mask is None or not left:
            continue
        mask = mask >> 8 * (offset % register.size) & (1 << 8 * width) - 1
        if left & mask:
            difference.acted += 1
            left &= ~mask
    return not left


def allows(access):
    """May a random script make this access?"""
    for difference in DIFFERENCES:
        if difference.avoids and difference.avoids(access):
            difference.acted += 1
            return False
    return True


def steer(name):
    """The generator has kept off the difference of that name."""
    BY_NAME[name].acted += 1
