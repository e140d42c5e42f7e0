# SPDX-License-Identifier: MIT
"""Random scripts, the same for the same seed. They keep off what is known to differ (differences.py)."""

import random

import differences
from script import BASES, COMMANDS, GICR_SIZE, LPI_BITS, NUM_SPIS, NUM_VCPUS, REGISTERS, name_of

FRAME_SIZES = {'GICD': 0x10000, 'GICR': 0x20000, 'GITS': 0x20000}


class Script:
    """Operations, and what is to be looked at behind them. Prologue and epilogue are not shortened when something differs."""

    kind = None

    def __init__(self, seed, number):
        self.random = random.Random(f'{self.kind} {seed} {number}')
        self.name = f'{self.kind}-{seed}-{number}'
        self.prologue = []
        self.operations = []
        self.epilogue = []
        self.make()

    def add(self, *words):
        self.operations.append(' '.join(str(word) for word in words))

    def join(self, since):
        """The operations from that index on belong together: a shorter script has all of them, or none."""
        self.operations[since:] = ['; '.join(self.operations[since:])]

    def below(self, end):
        return self.random.randrange(end)

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def one_of(self, weighted):
        """Calls one of (function, weight)."""
        self.random.choices([item[0] for item in weighted], [item[1] for item in weighted])[0]()

    def word(self, bits):
        """A value of so many bits that is interesting more often than a random one."""
        kind = self.below(6)
        if kind == 0:
            return 0
        if kind == 1:
            return (1 << bits) - 1
        if kind == 2:
            return 1 << self.below(bits)
        if kind == 3:
            return self.random.getrandbits(bits) & self.random.getrandbits(bits) & self.random.getrandbits(bits)
        return self.random.getrandbits(bits)

    def access(self, address, width, write, value=0):
        """A register access, if it is none of those that are known to differ."""
        register, offset, _ = differences.find_register(address)
        frame = 'GICR' if address >= BASES['GICR'] else 'GITS' if address >= BASES['GITS'] else 'GICD'
        if not differences.allows(differences.Access(write, register.name if register else '', frame, address, offset, width, value)):
            return
        if write:
            self.add(f'v0 w{8 * width}', name_of(address), hex(value))
        else:
            self.add(f'v0 r{8 * width}', name_of(address))


class Registers(Script):
    """Anything into any register, and into what is between them, at any width and alignment."""

    kind = 'registers'

    def any_address(self):
        frame = self.random.choices(['GICD', 'GICR', 'GITS'], [5, 4, 2])[0]
        base = BASES[frame] + (self.below(NUM_VCPUS) * GICR_SIZE if frame == 'GICR' else 0)
        if self.chance(12):
            return base + self.below(FRAME_SIZES[frame]), self.random.choice([1, 2, 4, 8])
        register = self.random.choice([r for r in REGISTERS if r.frame == frame])
        # Of long arrays mostly what there is.
        count = register.count
        if frame == 'GICD' and count > 16 and self.chance(85):
            count = max(1, count * (32 + NUM_SPIS + 40) // 1020)
        offset = register.offset + register.size * self.below(count)
        if self.chance(80):
            width = self.random.choice(register.widths)
            return base + offset + self.below(register.size // width) * width, width
        return base + offset + self.below(register.size), self.random.choice([1, 2, 4, 8])

    def share_properties(self):
        """All redistributors have the same GICR_PROPBASER."""
        differences.steer('common-lpi-configuration')
        if self.lpis_enabled:
            differences.steer('tables-in-use')
            return
        value, since = hex(self.word(64)), len(self.operations)
        for vcpu in range(NUM_VCPUS):
            self.add(f'v0 w64 GICR_PROPBASER@{vcpu}', value)
        self.join(since)

    def make(self):
        self.lpis_enabled = set()
        for _ in range(20 + self.below(60)):
            if self.chance(2):
                self.share_properties()
            address, width = self.any_address()
            self.any_access(address, width, self.chance(65), self.word(8 * width))

    def any_access(self, address, width, write, value):
        register, _, which = differences.find_register(address)
        name = register.name if write and register else ''
        if name == 'GICR_PENDBASER' and which in self.lpis_enabled:
            differences.steer('tables-in-use')
            return
        if name == 'GICR_CTLR' and width == 4:
            (self.lpis_enabled.add if value & 1 else self.lpis_enabled.discard)(which)
        self.access(address, width, write, value)


class Interrupts(Script):
    """A few SPIs, PPIs and SGIs: their lines, and every bank."""

    kind = 'interrupts'
    BANKS = ['ISENABLER', 'ICENABLER', 'ISPENDR', 'ISPENDR', 'ICPENDR', 'ICPENDR', 'ISACTIVER', 'ICACTIVER', 'IGROUPR']

    def make(self):
        self.spis = [32 + self.below(NUM_SPIS) for _ in range(4)]
        self.privates = [self.below(16)] + [16 + self.below(16) for _ in range(2)]
        for _ in range(20 + self.below(80)):
            self.one_of([(self.drive, 30), (self.bank, 40), (self.configure, 10), (self.prioritize, 4), (self.route, 4),
                         (self.control, 4), (self.look, 12)])

    def any(self):
        return self.random.choice(self.spis) if self.chance(60) else self.random.choice(self.privates)

    def drive(self):
        if self.chance(60):
            self.add('spi', self.random.choice(self.spis), self.below(2))
        else:
            self.add('ppi', f'v{self.below(NUM_VCPUS)}', self.random.choice(self.privates[1:]), self.below(2))

    def bank_address(self, bank, intid, bits):
        """The register of this bank with that INTID."""
        per_word = 32 // bits
        if intid >= 32:
            return f'GICD_{bank}+{intid // per_word * 4:#x}'
        name = f'GICR_{bank}' + ('0' if bits == 1 else '') + f'@{self.below(NUM_VCPUS)}'
        return name + (f'+{intid // per_word * 4:#x}' if bits > 1 else '')

    def bank(self):
        intid = self.any()
        value = 1 << intid % 32 if self.chance(70) else self.word(32)
        self.add('v0 w32', self.bank_address(self.random.choice(self.BANKS), intid, 1), hex(value))

    def configure(self):
        intid = self.any()
        value = 2 << 2 * (intid % 16) if self.chance(50) else self.word(32)
        self.add('v0 w32', self.bank_address('ICFGR', intid, 2), hex(value))

    def prioritize(self):
        self.add('v0 w32', self.bank_address('IPRIORITYR', self.any(), 8), hex(self.word(32)))

    def route(self):
        """To a PE that there is mostly, by all of the register or by half of it. The upper one has Aff3."""
        register = f'GICD_IROUTER+{8 * self.random.choice(self.spis):#x}'
        aff3 = self.random.choice([0, 0, 1, 0xff])
        if self.chance(50):
            self.add('v0 w64', register, hex(aff3 << 32 | self.below(NUM_VCPUS + 1)))
        elif self.chance(50):
            self.add('v0 w32', register, self.below(NUM_VCPUS + 1))
        else:
            self.add('v0 w32', register + '+0x4', hex(aff3))

    def control(self):
        self.add('v0 w32 GICD_CTLR', self.below(4))

    def look(self):
        bank, bits = self.random.choice([('ISPENDR', 1), ('ISACTIVER', 1), ('ISENABLER', 1), ('ICFGR', 2), ('IPRIORITYR', 8)])
        self.add('v0 r32', self.bank_address(bank, self.any(), bits))


class Its(Script):
    """LPIs by commands and by MSIs: an ITS that is set up, used, and told nonsense now and then."""

    kind = 'its'
    FLAT_DEVICES = [0, 1, 2, 7, 100, 8191]
    # In two pages of level 2. The second one may come later.
    INDIRECT_DEVICES = [0, 1, 2, 8191, 8195, 16383]
    FIRST_OF_PAGE_1 = 8192
    COLLECTIONS = [0, 1, 2, 3, 9, 8191]
    # One device at a time has so many events that an EventID can be an LPI's INTID.
    BIG_BITS = 14

    def make(self):
        self.devices, self.events, self.collections = {}, {}, {}
        self.pending_tables = []    # of each redistributor, by name
        self.indirect = self.chance(40)
        self.device_ids = self.INDIRECT_DEVICES if self.indirect else self.FLAT_DEVICES
        self.page_1 = not self.indirect or self.chance(50)
        self.lpi_bits = self.random.choices([LPI_BITS, 15, 16, LPI_BITS - 1], [80, 5, 10, 5])[0]
        self.set_up()
        for _ in range(10 + self.below(60)):
            self.step()
        for vcpu in range(NUM_VCPUS):
            self.epilogue += [f'v0 w32 GICR_CTLR@{vcpu} 0; {self.look_at_table("PEND", vcpu)}',
                              self.look_at_table('PEND2', vcpu)]

    def set_up(self):
        differences.steer('common-lpi-configuration')
        differences.steer('page-size')
        for vcpu in range(NUM_VCPUS):
            self.add('v0 w64', f'GICR_PROPBASER@{vcpu}', f'PROP+{self.lpi_bits - 1:#x}')
            self.add('v0 w64', f'GICR_PENDBASER@{vcpu}', f'PEND@{vcpu}')
            self.pending_tables.append('PEND')
        self.add('fill PROP 0x10000', hex(self.random.choice([0, 1, 0xa1])))
        self.add('v0 w64 GITS_CBASER QUEUE+0x8000000000000000')
        if self.indirect:
            self.add('ram w64 DEVTAB L2+0x8000000000000000')
            if self.page_1:
                self.add('ram w64 DEVTAB+0x8 L2@1+0x8000000000000000')
        self.add('v0 w64 GITS_BASER', f'DEVTAB+{(0xc000000000000200 if self.indirect else 0x8000000000000200):#x}')
        self.add('v0 w64 GITS_BASER+8 COLTAB+0x8000000000000200')
        self.add('v0 w32 GITS_CTLR 1')
        self.prologue += self.operations
        self.operations = []
        # What is mapped before LPIs are enabled, and bits of the pending table that are set before.
        early = self.chance(50)
        if early:
            self.first_mappings()
        for vcpu in range(NUM_VCPUS):
            if early and self.chance(30):
                self.preset_pending(vcpu)
            self.add(f'v0 w32 GICR_CTLR@{vcpu} 1')
        if not early:
            self.first_mappings()
        if self.chance(30):
            self.come_to_the_end_of_the_queue()

    def look_at_table(self, table, vcpu):
        """The operation that reads a pending table, without the part that no LPI has."""
        return f'dump {table}@{vcpu}+0x400 {(1 << max(self.lpi_bits, LPI_BITS)) // 8 - 0x400:#x}'

    def first_mappings(self):
        for icid in range(2):
            self.map_collection(icid, self.below(NUM_VCPUS))
        for device in self.random.sample(self.device_ids, 2):
            self.map_device(device)
        for _ in range(4):
            self.map_event()

    def come_to_the_end_of_the_queue(self):
        """Its next commands are the first ones again. What lies behind the end must not be executed: it would be seen."""
        behind = 'QUEUE+0x1000'
        for key in list(self.events)[:2]:
            for i, doubleword in enumerate(COMMANDS['int'](*key)):
                self.add(f'ram w64 {behind}+{8 * i:#x}', hex(doubleword))
            behind += '+0x20'
        self.add('its0 skip', 100 + self.below(20))

    def preset_pending(self, vcpu):
        """A bit that is set in the pending table, of an LPI that is mapped to this redistributor."""
        if self.lpi_bits < LPI_BITS:
            differences.steer('lpi-past-the-tables')
            return
        lpis = [lpi for lpi, icid in self.events.values() if self.collections.get(icid) == vcpu]
        if lpis:
            lpi = self.random.choice(lpis)
            self.add(f'ram w8 {self.pending_tables[vcpu]}@{vcpu}+{lpi // 8:#x}', hex(1 << lpi % 8))

    # ---- Well-formed commands ----

    def command(self, *words):
        self.add('its0', *words)

    def events_of(self, device):
        return [key for key in self.events if key[0] == device]

    def events_in(self, icid):
        return [key for key in self.events if self.events[key][1] == icid]

    def is_placed(self, key):
        """Is the collection of this event mapped?"""
        return self.events[key][1] in self.collections

    def discard(self, key):
        if not self.is_placed(key):
            differences.steer('unmapped-collection')
            return
        self.command('discard', *key)
        del self.events[key]

    def empty_device(self, device):
        """Before it is mapped anew, or unmapped. False if that cannot be."""
        events = self.events_of(device)
        if events:
            differences.steer('device-with-events')
        if not all(self.is_placed(key) for key in events):
            return False
        for key in events:
            self.discard(key)
        return True

    def map_device(self, device):
        since = len(self.operations)
        if device >= self.FIRST_OF_PAGE_1 and not self.page_1:
            self.wrong_device(device, 4)
            return
        if not self.empty_device(device):
            return
        bits, where, size = 1 + self.below(9), f'ITT@{self.device_ids.index(device)}', 0x2000
        if self.chance(10) and self.BIG_BITS not in [self.devices[d] for d in self.devices if d != device]:
            bits, where, size = self.BIG_BITS, 'BIGITT', 0x40000
        self.add('fill', where, hex(size), 0)
        self.command('mapd', device, where, bits)
        self.join(since)
        self.devices[device] = bits

    def add_page(self):
        """Level 1 of the device table leads to its second page from now on."""
        if not self.page_1:
            self.add('ram w64 DEVTAB+0x8 L2@1+0x8000000000000000')
            self.page_1 = True

    def unmap_device(self):
        device, since = self.random.choice(self.device_ids), len(self.operations)
        if not self.empty_device(device):
            return
        self.command('unmapd', device)
        self.join(since)
        self.devices.pop(device, None)

    def map_collection(self, icid, rd):
        old = self.collections.get(icid)
        if self.events_in(icid) and rd != old and old is not None:
            differences.steer('collection-with-events')
            self.move_redistributor(old, rd)
            return
        self.command('mapc', icid, rd)
        self.collections[icid] = rd

    def move_redistributor(self, old, new):
        """MOVALL, and the collections after it, as the architecture wants it."""
        differences.steer('movall')
        since = len(self.operations)
        self.command('movall', old, new)
        for icid in [i for i, rd in self.collections.items() if rd == old]:
            self.command('mapc', icid, new)
            self.collections[icid] = new
        self.join(since)

    def unmap_collection(self):
        icid, since = self.random.choice(self.COLLECTIONS), len(self.operations)
        for key in self.events_in(icid):
            if icid in self.collections:
                differences.steer('collection-with-events')
                self.command('clear', *key)
        self.command('unmapc', icid)
        self.join(since)
        self.collections.pop(icid, None)

    def map_event(self):
        if not self.devices:
            return
        device = self.random.choice(list(self.devices))
        event = self.below(1 << self.devices[device])
        lpi = (1 << 13) + self.below(64 if self.chance(80) else max(64, (1 << self.lpi_bits) - (1 << 13)))
        icid = self.random.choice(list(self.collections) or self.COLLECTIONS)
        if self.chance(5):
            icid = self.random.choice(self.COLLECTIONS)
        by_mapi = self.devices[device] == self.BIG_BITS and self.chance(50)
        if by_mapi:
            event = lpi
        if (device, event) in self.events:
            differences.steer('event-mapped-twice')
            return
        if lpi in [e[0] for e in self.events.values()]:
            differences.steer('two-events-of-one-lpi')
            return
        if by_mapi:
            self.command('mapi', device, event, icid)
        else:
            self.command('mapti', device, event, lpi, icid)
        self.events[device, event] = (lpi, icid)

    def use_event(self, may_move=True):
        if not self.events:
            return
        key = self.random.choice(list(self.events))
        kind = self.random.choices(['int', 'clear', 'inv', 'discard', 'movi'], [10, 4, 2, 2, 4])[0]
        if kind == 'discard':
            self.discard(key)
        elif kind == 'movi':
            if not may_move:
                differences.steer('move-while-off')
                return
            icid = self.random.choice(self.COLLECTIONS)
            self.command('movi', *key, icid)
            if self.is_placed(key) and icid in self.collections:
                self.events[key] = (self.events[key][0], icid)
        else:
            self.command(kind, *key)

    def signal(self):
        keys = [key for key in self.events if key[0] == 0]
        event = self.random.choice(keys)[1] if keys and self.chance(85) else self.below(1 << 10)
        self.add(f'msi its0 dev=0 ev={event}')

    def move_all(self):
        old, new = self.below(NUM_VCPUS), self.below(NUM_VCPUS)
        if old != new:
            self.move_redistributor(old, new)
        else:
            self.command('movall', old, new)

    def others(self):
        what = self.below(4)
        if what == 0:
            self.command('invall', self.random.choice(self.COLLECTIONS))
        elif what == 1:
            self.command('sync', self.below(NUM_VCPUS))
        elif what == 2:
            self.add(f'fill PROP+{self.below(64)} 1', hex(self.word(8)))
        else:
            self.move_all()

    # ---- Nonsense ----

    def nonsense(self):
        device = self.random.choice([*self.device_ids, 3, 20000, 0x10000, 0xffffffff])
        event = self.random.choice([0, 5, 0x3ff, 0xffff, 0x10000, 0xffffffff])
        icid = self.random.choice([*self.COLLECTIONS, 4, 0xffff])
        mapped = self.random.choice(list(self.devices)) if self.devices else 0
        past = 1 << self.devices.get(mapped, 0)
        self.random.choice([
            lambda: self.wrong_event('mapti', mapped, past, 8300, 0),
            lambda: self.wrong_event('mapti', mapped, self.random.choice([past + 1, 0xffff, 0x10000, 0xffffffff]), 8300, 0),
            lambda: self.wrong_event('mapti', mapped, 0, self.random.choice([0, 31, 1023, 8191, 0x10000, 0xffffffff]), 0),
            lambda: self.wrong_event('mapti', 3, event, 8300, 0),
            lambda: self.past_the_tables(mapped, past - 1),
            lambda: self.wrong_event('mapti', mapped, 0, 8300, 0xffff),
            lambda: self.wrong_event('mapi', mapped, 0, 0),
            lambda: self.wrong_device(self.random.choice([20000, 0x10000, 0xffffffff]), 4),
            lambda: self.wrong_device(mapped, 17 + self.below(16)),
            lambda: self.command('mapc', self.random.choice(self.COLLECTIONS), 4 + self.below(1000)),
            lambda: self.command('mapc', 0xffff, 0),
            lambda: self.command('unmapc', 0xffff),
            lambda: self.command('unmapd', 0xffffffff),
            lambda: self.command('movall', self.below(NUM_VCPUS), 4 + self.below(1000)),
            lambda: self.command('movall', 4 + self.below(1000), self.below(NUM_VCPUS)),
            lambda: self.command('invall', icid),
            lambda: self.command('sync', 4 + self.below(1000)),
            lambda: self.unmapped(device, event, icid),
            lambda: self.unmapped(mapped, self.below(past), icid),
            lambda: self.command('raw', *(hex(self.opcode(i)) for i in range(4))),
        ])()

    def wrong_event(self, command, device, event, *rest):
        """A mapping that is refused, and then a signal that would show it."""
        since = len(self.operations)
        self.command(command, device, event, *rest)
        self.command('int', device, event)
        self.join(since)

    def past_the_tables(self, device, event):
        """An LPI that GICR_PROPBASER.IDbits does not allow."""
        if (device, event) in self.events:
            differences.steer('lpi-past-the-tables')
            return
        self.wrong_event('mapti', device, event, 1 << self.lpi_bits, 0)

    def wrong_device(self, device, bits):
        """A MAPD that is refused. A device that is mapped keeps its events."""
        since = len(self.operations)
        self.command('mapd', device, 'ITT@9', bits)
        if device not in self.devices:
            self.command('mapti', device, 1, 8301, 0)
            self.command('int', device, 1)
        elif self.events_of(device):
            self.command('int', *self.random.choice(self.events_of(device)))
        self.join(since)

    def unmapped(self, device, event, icid):
        """A command about an event that is not there."""
        if (device, event) in self.events:
            return
        kind = self.random.choice(['int', 'clear', 'inv', 'discard', 'movi'])
        self.command(kind, device, event, *([icid] if kind == 'movi' else []))

    def opcode(self, i):
        """Of a raw command: no opcode that there is."""
        return self.random.choice([0, 2, 6, 7, 0x10, *range(0x20, 0x40), 0x80, 0xff]) if i == 0 else self.word(64)

    # ---- Registers ----

    def look_at_pending(self):
        """
        EnableLPIs=0 writes the pending table here; in QEMU it is always up to date. While it is off LPIs are lost on both,
        and EnableLPIs=1 reads the table, in which a bit may have been set meanwhile.
        """
        vcpu, since = self.below(NUM_VCPUS), len(self.operations)
        self.add(f'v0 w32 GICR_CTLR@{vcpu} 0')
        self.add(self.look_at_table(self.pending_tables[vcpu], vcpu))
        if self.chance(30):
            self.use_event(may_move=False)
        if self.chance(20):
            self.preset_pending(vcpu)
        self.add(f'v0 w32 GICR_CTLR@{vcpu} 1')
        self.join(since)

    def change_pending_table(self):
        """To the other one, emptied: what is pending in the old one stays there. PTZ says that the new one is empty."""
        vcpu, since = self.below(NUM_VCPUS), len(self.operations)
        new = 'PEND2' if self.pending_tables[vcpu] == 'PEND' else 'PEND'
        self.pending_tables[vcpu] = new
        self.add(f'v0 w32 GICR_CTLR@{vcpu} 0')
        # Bits that are left of earlier times can be those of LPIs that are elsewhere by now.
        differences.steer('move-while-off')
        self.add(f'fill {new}@{vcpu} 0x2000 0')
        if self.chance(50):
            self.add('v0 w64', f'GICR_PENDBASER@{vcpu}', f'{new}@{vcpu}+0x4000000000000000')
        else:
            self.add('v0 w64', f'GICR_PENDBASER@{vcpu}', f'{new}@{vcpu}')
            self.preset_pending(vcpu)
        self.add(f'v0 w32 GICR_CTLR@{vcpu} 1')
        self.join(since)

    def switch(self):
        """Commands that are written while the ITS is off are executed when it is on again; MSIs are lost."""
        since = len(self.operations)
        self.add('v0 w32 GITS_CTLR 0')
        for _ in range(self.below(6)):
            self.one_of([(self.use_event, 6), (self.signal, 3), (self.map_event, 2), (self.others, 1)])
        self.add('v0 w32 GITS_CTLR 1')
        self.join(since)

    def look(self):
        self.add(f"v0 r64 GITS_{self.random.choice(['CREADR', 'CWRITER', 'CBASER', 'BASER', 'BASER+0x8'])}")

    def step(self):
        self.one_of([(self.use_event, 40), (self.map_event, 14), (self.signal, 10), (self.others, 8), (self.nonsense, 14),
                     (lambda: self.map_device(self.random.choice(self.device_ids)), 4), (self.unmap_device, 2), (self.add_page, 2), (self.change_pending_table, 2),
                     (lambda: self.map_collection(self.random.choice(self.COLLECTIONS), self.below(NUM_VCPUS)), 4),
                     (self.unmap_collection, 2), (self.look_at_pending, 5), (self.switch, 3), (self.look, 4)])


class Queue(Script):
    """The ITS's registers, on and off, with a queue of commands that do nothing."""

    kind = 'queue'

    def make(self):
        self.add('v0 w64 GITS_BASER DEVTAB+0x8000000000000200')
        self.add('v0 w64 GITS_BASER+8 COLTAB+0x8000000000000200')
        self.base()
        for _ in range(10 + self.below(40)):
            self.one_of([(self.base, 4), (self.writer, 10), (self.switch, 5), (self.table, 3), (self.look, 12)])

    def base(self):
        value = 1 << 63 | BASES_OF_QUEUES[self.below(2)] | self.below(4) | (self.word(64) & 0x78e0000000000c00)
        self.add('v0 w64 GITS_CBASER', hex(value))
        differences.steer('new-queue')
        self.add('v0 w64 GITS_CWRITER 0')

    def writer(self):
        offset = 32 * self.below(128)
        self.add(f'v0 w{self.random.choice([32, 64])} GITS_CWRITER', hex(offset))

    def switch(self):
        self.add('v0 w32 GITS_CTLR', self.below(2))

    def table(self):
        which = self.below(8)
        self.access(BASES['GITS'] + 0x100 + 8 * which, 8, True, self.word(64) | 1 << 63)

    def look(self):
        width = self.random.choice([4, 8])
        self.access(BASES['GITS'] + self.random.choice([0, 8, 0x80, 0x88, 0x90, 0x84, 0x8c, 0x94, 0x100, 0x108, 0x110]), width,
                    False)


BASES_OF_QUEUES = [0x40250000, 0x40254000]
KINDS = [Registers, Interrupts, Its, Queue]


def generate(seed, first, count):
    """Scripts number @first and on; each depends on the seed and its own number only."""
    return [KINDS[number % len(KINDS)](seed, number) for number in range(first, first + count)]
