# SPDX-License-Identifier: MIT
"""Random scripts for the KVM oracle, the same for the same seed.

Each kind keeps just enough of a model to steer clear of what is in the file
`differences`; everything else is left to chance, wrong ids and rubbish included.
Each ends by asking for all that can be seen.
"""

import random

KINDS = ['its', 'move', 'lines', 'lines', 'registers', 'attributes', 'save', 'hostile']

EDGE_IDS = [0x10000, 0xffff, 8192, 0x7fffffff, 0xffffffff]


class Script:
    """What is common: a random generator, and lines."""

    def __init__(self, seed, name):
        self.random = random.Random(f'{seed} {name}')
        self.lines = []

    def add(self, *words):
        self.lines.append(' '.join(str(word) for word in words))

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def below(self, end):
        return self.random.randrange(end)

    def word(self, bits):
        """A number with few or many bits, or one of the edges."""
        how = self.below(5)
        if how == 0:
            return 0
        if how == 1:
            return (1 << bits) - 1
        if how == 2:
            return 1 << self.below(bits)
        return self.random.getrandbits(bits)

    def text(self):
        return '\n'.join(self.lines)


# ---- ITS commands and MSIs ----

class Its(Script):
    """Commands on few ids, so that they meet; one in six is wrong."""

    DEVICES = [0, 1, 7, 8191]
    COLLECTIONS = [0, 1, 2, 77]

    def __init__(self, seed, name):
        super().__init__(seed, name)
        self.num_vcpus = 1 + self.below(3)
        self.devices = {}      # DeviceID: bits of EventID
        self.events = {}       # (DeviceID, EventID): [LPI, collection]
        self.collections = {}  # mapped: collection
        self.add(f"machine vcpus={','.join(str(i) for i in range(self.num_vcpus))} its=1")
        self.add('boot')

    def take_all(self):
        for vcpu in range(self.num_vcpus):
            self.add(f'v{vcpu} take')

    def command(self, *words):
        self.add('its0', *words)

    def map_device(self):
        device, bits = self.random.choice(self.DEVICES), 1 + self.below(6)
        if device in self.devices:
            self.take_all()  # KVM leaves pending what was
        self.command('mapd', device, f'ITT@{self.DEVICES.index(device)}', bits)
        self.forget_device(device)
        self.devices[device] = bits

    def unmap_device(self):
        device = self.random.choice(self.DEVICES)
        self.take_all()
        self.command('unmapd', device)
        self.forget_device(device)

    def forget_device(self, device):
        self.devices.pop(device, None)
        self.events = {event: value for event, value in self.events.items() if event[0] != device}

    def map_collection(self):
        collection = self.random.choice(self.COLLECTIONS)
        self.command('mapc', collection, self.below(self.num_vcpus))
        self.collections[collection] = True

    def unmap_collection(self):
        # Events of a collection that goes away are forgotten by KVM: only empty ones.
        empty = [c for c in self.COLLECTIONS if c not in (value[1] for value in self.events.values())]
        if empty:
            collection = self.random.choice(empty)
            self.command('unmapc', collection)
            self.collections.pop(collection, None)

    def map_event(self):
        if not self.devices:
            return
        device = self.random.choice(list(self.devices))
        event = self.below(1 << self.devices[device])
        lpi = 8192 + self.below(40)
        # Live events and shared LPIs are taken differently.
        if (device, event) in self.events or lpi in (value[0] for value in self.events.values()):
            return
        collection = self.random.choice(self.COLLECTIONS)
        self.command('mapti', device, event, lpi, collection)
        self.events[device, event] = [lpi, collection]

    def live_event(self):
        return self.random.choice(list(self.events)) if self.events else (1, 0)

    def discard(self):
        device, event = self.live_event()
        if self.events.get((device, event), [0, None])[1] not in self.collections:
            return  # KVM does not discard it
        self.take_all()
        self.command('discard', device, event)
        self.events.pop((device, event), None)

    def move(self):
        device, event = self.live_event()
        collection = self.random.choice(self.COLLECTIONS)
        old = self.events.get((device, event))
        self.command('movi', device, event, collection)
        if old and old[1] in self.collections and collection in self.collections:
            old[1] = collection

    def move_all(self):
        self.command('movall', self.below(self.num_vcpus), self.below(self.num_vcpus))

    def configure(self):
        lpi = self.below(40)
        self.add(f'ram w8 PROP+{lpi}', hex(self.below(32) << 3 | self.chance(80)))
        how = self.below(4)
        if how == 0:
            self.command('invall', self.random.choice(self.COLLECTIONS))
        elif how == 1:
            self.command('inv', *self.live_event())
        elif how == 2:
            self.add(f'v0 w64 GICR_INVLPIR@{self.below(self.num_vcpus)}', 8192 + lpi)
        else:
            self.add(f'v0 w64 GICR_INVALLR@{self.below(self.num_vcpus)} 0')

    def signal(self):
        device, event = self.live_event()
        if self.chance(20):
            event = self.below(64)
        if self.chance(50):
            self.add(f'msi its0 dev={device} ev={event}')
        else:
            self.command(self.random.choice(['int', 'int', 'clear']), device, event)

    def wrong_command(self):
        edge = self.random.choice(EDGE_IDS)
        kind = self.below(9)
        if kind == 0:
            self.command('mapd', self.random.choice([0x10000, 8192, 0xffffffff]), 'ITT@9', 5)
        elif kind == 1:
            self.command('mapd', 5, 'ITT@9', 17 + self.below(16))
        elif kind == 2:
            self.command('mapc', self.random.choice(self.COLLECTIONS), self.num_vcpus + self.below(70000))
        elif kind == 3:
            self.command('mapc', 8192 + self.below(50000), 0)
        elif kind == 4:
            self.command('mapti', edge, self.below(4), 8192 + self.below(40), 0)
        elif kind == 5 and self.devices:
            device = self.random.choice(list(self.devices))
            if (device, 0) not in self.events:
                self.command('mapti', device, 0, self.random.choice([0, 1023, 8191, 65536, 0xffffffff]), 0)
        elif kind == 6:
            self.command(self.random.choice(['int', 'clear', 'inv', 'discard']), self.random.choice([5, edge]), edge)
        elif kind == 7:
            self.command('movall', self.num_vcpus + self.below(9), 0)
        else:
            self.command('raw', hex(self.random.choice([0, 2, 6, 7, 0x10, 0x21, 0x25, 0x2a, 0x2d, 0xff])
                                    | self.random.getrandbits(32) << 32), *[hex(self.word(64)) for _ in range(3)])

    def step(self):
        steps = [(self.signal, 30), (self.map_event, 14), (self.map_device, 5), (self.map_collection, 6),
                 (self.unmap_device, 1), (self.unmap_collection, 2), (self.discard, 4), (self.move, 8),
                 (self.move_all, 3), (self.configure, 8), (self.wrong_command, 12), (self.take_all, 8)]
        self.random.choices([s[0] for s in steps], [s[1] for s in steps])[0]()

    def make(self, count):
        for _ in range(count):
            self.step()
        self.take_all()
        for event in self.events:
            self.add(f'msi its0 dev={event[0]} ev={event[1]}')
        self.take_all()
        self.add('v0 sweep GITS+0x80 0x180')


class Move(Its):
    """The same, moved to the other side in between, with LPIs pending."""

    def name_all_collections(self):
        # KVM remembers a collection that was named once.
        for collection in self.COLLECTIONS:
            if collection not in self.collections and collection not in (v[1] for v in self.events.values()):
                self.command('mapc', collection, 0)
                self.collections[collection] = True

    def make(self, count):
        for _ in range(count):
            self.step()
        self.name_all_collections()
        # What MOVALL has moved is not in the tables: back to the collections.
        for collection in self.collections:
            self.command('mapc', collection, self.below(self.num_vcpus))
        # Afterwards the configuration is read again: of what was changed in memory the ITS shall know.
        for vcpu in range(self.num_vcpus):
            self.add(f'v0 w64 GICR_INVALLR@{vcpu} 0')
        for event in list(self.events)[:3]:
            self.add(f'msi its0 dev={event[0]} ev={event[1]}')
        self.add('migrate')
        self.clear_pending_tables()
        for _ in range(count // 2):
            self.step()
        super().make(0)

    def clear_pending_tables(self):
        """What was saved there has been read. KVM reads it once more at each MAPTI."""
        for vcpu in range(self.num_vcpus):
            self.add(f'fill PEND@{vcpu} 0x2000 0')


class Save(Move):
    """The same, then saved, restored into an empty ITS, and used again."""

    def make(self, count):
        for _ in range(count):
            self.step()
        # What is left of old entries differs, and does not matter.
        self.take_all()
        for table, size in (('DEVTAB', 0x10000), ('COLTAB', 0x10000), ('ITT@0', 0x1000), ('ITT@1', 0x1000),
                            ('ITT@2', 0x1000), ('ITT@3', 0x1000)):
            self.add('fill', table, hex(size), 0)
        self.name_all_collections()
        for event in list(self.events)[:2]:
            self.add(f'msi its0 dev={event[0]} ev={event[1]}')
        for what in ('its0', 'pending'):
            self.add('save', what)
        self.add('dump DEVTAB 0x10000')
        for device in self.devices:
            self.add(f'dump ITT@{self.DEVICES.index(device)} 0x400')
        for vcpu in range(self.num_vcpus):
            self.add(f'dump PEND@{vcpu} 0x2000')
        for register in ('GITS_CBASER', 'GITS_CREADR', 'GITS_CWRITER', 'GITS_BASER0', 'GITS_BASER1'):
            self.add('get its0', register)
        self.restore()
        self.clear_pending_tables()
        self.take_all()
        for _ in range(count // 2):
            self.step()
        Its.make(self, 0)

    def restore(self):
        self.take_all()
        self.add('set its0 GITS_CTLR 0')
        self.add('reset its0')
        self.add('set its0 GITS_CBASER QUEUE@0+0x8000000000000000')
        self.add('set its0 GITS_BASER0 DEVTAB@0+0x8000000000000200')
        self.add('set its0 GITS_BASER1 COLTAB@0+0x8000000000000200')
        self.add('restore its0')
        self.add('set its0 GITS_CTLR 1')


class Hostile(Save):
    """Saved tables in which bits are changed: is what is restored refused alike?"""

    def entry(self):
        """Where an entry is, and a bit to change: none of those that are taken differently (known_restore)."""
        if self.chance(40) or not self.events:
            if not self.devices:
                return 'DEVTAB', 63
            return f'DEVTAB+{8 * self.random.choice(list(self.devices))}', self.random.choice([*range(49), 63])
        device, event = self.random.choice(list(self.events))
        return f'ITT@{self.DEVICES.index(device)}+{8 * event}', self.random.choice([*range(16, 32), *range(48, 64)])

    def make(self, count):
        for _ in range(count):
            self.step()
        self.take_all()
        for table, size in (('DEVTAB', 0x10000), ('COLTAB', 0x10000), ('ITT@0', 0x1000), ('ITT@1', 0x1000),
                            ('ITT@2', 0x1000), ('ITT@3', 0x1000)):
            self.add('fill', table, hex(size), 0)
        self.name_all_collections()
        self.add('save its0')
        self.clear_pending_tables()
        self.add('set its0 GITS_CTLR 0')
        for _ in range(count // 2):
            address, bit = self.entry()
            self.add('reset its0')
            self.add('set its0 GITS_CBASER QUEUE@0+0x8000000000000000')
            self.add('set its0 GITS_BASER0 DEVTAB@0+0x8000000000000200')
            self.add('set its0 GITS_BASER1 COLTAB@0+0x8000000000000200')
            self.add('ram x64', address, hex(1 << bit))
            self.add('restore its0')
            self.add('ram x64', address, hex(1 << bit))
        self.add('reset its0')
        self.restore()
        Its.make(self, 0)


# ---- SGIs, PPIs, SPIs ----

class Lines(Script):
    """Four interrupts, as many as KVM has list registers for. Each has priorities of its own: equal ones have no order."""

    def __init__(self, seed, name):
        super().__init__(seed, name)
        self.num_vcpus = 1 + self.below(3)
        self.spis = [32 + self.below(32) for _ in range(2)]
        if self.spis[0] == self.spis[1]:
            self.spis[1] = 32 + (self.spis[0] - 31) % 32
        self.ppi = self.random.choice([16, 19, 20, 22, 29, 31])
        self.sgi = self.below(16)
        self.high = {}
        # Priorities of active interrupts do not change: one is UNPREDICTABLE then. In half of the scripts nothing stays active.
        self.nests = self.chance(50)
        self.moves = self.chance(50)
        self.add(f"machine vcpus={','.join(str(i) for i in range(self.num_vcpus))} its={self.below(2)}")
        self.add('boot gic')
        self.edge = {spi: self.chance(50) for spi in self.spis}
        self.add('v0 w32 GICD_ICFGR+8', hex(self.configuration(32)))
        self.add('v0 w32 GICD_ICFGR+12', hex(self.configuration(48)))
        for spi in self.spis:
            self.set_priority(spi)
            self.add('v0 w32 GICD_ISENABLER+4', hex(1 << (spi - 32)))
        for vcpu in range(self.num_vcpus):
            self.add(f'v{vcpu} w32 GICR_ISENABLER0@{vcpu}', hex(1 << self.ppi))
            for intid in (self.ppi, self.sgi):
                self.set_priority(intid, vcpu)
            self.add(f'v{vcpu} msr BPR1', self.below(8))
            self.add(f'v{vcpu} msr CTLR', self.random.choice([0, 0, 0, 2]))

    def configuration(self, first):
        return sum(2 << 2 * (spi - first) for spi in self.spis if first <= spi < first + 16 and self.edge[spi])

    def set_priority(self, intid, vcpu=0):
        # Of 32 priorities, those that are this interrupt's.
        which = ([self.ppi, self.sgi] + self.spis).index(intid)
        priority = hex((self.below(7) * 4 + which) << 3)
        if intid >= 32:
            self.add(f'v0 w8 GICD_IPRIORITYR+{intid}', priority)
        else:
            self.add(f'v0 w8 GICR_IPRIORITYR@{vcpu}+{intid}', priority)

    def vcpu(self):
        return self.below(self.num_vcpus)

    def any(self):
        return self.random.choice(self.spis + [self.ppi, self.sgi])

    def write_bit(self, register):
        """A bit of ISENABLER and the like, of any of the four."""
        intid, vcpu = self.any(), self.vcpu()
        if intid >= 32:
            self.add(f'v{vcpu} w32 GICD_{register}+4', hex(1 << (intid - 32)))
        else:
            self.add(f'v{vcpu} w32 GICR_{register}0@{self.vcpu()}', hex(1 << intid))

    def lower_levels(self):
        """A level-sensitive line that stays high is taken for ever."""
        for (intid, vcpu), high in self.high.items():
            if high and not self.edge.get(intid):
                self.high[intid, vcpu] = False
                self.add(*(('spi', intid, 0) if intid >= 32 else ('ppi', f'v{vcpu}', intid, 0)))

    def set_pending(self):
        """By ISPENDR: of what is edge-triggered. KVM clears the latch of another at the wrong time."""
        spis = [spi for spi in self.spis if self.edge[spi]]
        if spis and self.chance(50):
            self.add(f'v{self.vcpu()} w32 GICD_ISPENDR+4', hex(1 << (self.random.choice(spis) - 32)))
        else:
            self.add(f'v{self.vcpu()} w32 GICR_ISPENDR0@{self.vcpu()}', hex(1 << self.sgi))

    def reprioritize(self):
        if not self.nests:
            self.set_priority(self.any(), self.vcpu())

    def drive(self):
        intid, vcpu = self.random.choice(self.spis + [self.ppi]), self.vcpu()
        key = (intid, vcpu if intid < 32 else 0)
        self.high[key] = not self.high.get(key, False)
        if intid < 32:
            self.add('ppi', f'v{vcpu}', intid, int(self.high[key]))
        else:
            self.add('spi', intid, int(self.high[key]))

    def send(self):
        targets = self.below(1 << self.num_vcpus)
        if self.chance(20):
            self.add(f'v{self.vcpu()} msr SGI1R', hex(1 << 40 | self.sgi << 24))
        else:
            self.add(f'v{self.vcpu()} msr SGI1R', hex(self.sgi << 24 | targets))

    def route(self):
        spi = self.random.choice(self.spis)
        self.add(f'v0 w64 GICD_IROUTER+{8 * spi}', self.vcpu())

    def handle(self):
        vcpu = self.vcpu()
        what = self.below(10)
        if what < 5 and self.nests:
            self.add(f'v{vcpu} ack')
        elif what < 4:
            self.lower_levels()
            self.add(f'v{vcpu} take')
        elif what < 9 and self.nests:
            self.add(f'v{vcpu} end')
        else:
            self.add(f'v{vcpu} lines')

    def mask(self):
        vcpu = self.vcpu()
        if self.chance(60):
            self.add(f'v{vcpu} msr PMR', hex(self.random.choice([0xf8, 0xf8, 0x80, 0x40, 0, 0xff])))
        else:
            self.add(f'v{vcpu} msr IGRPEN1', int(self.chance(70)))

    def look(self):
        vcpu = self.vcpu()
        self.add(f'v{vcpu} mrs', self.random.choice(['RPR', 'HPPIR1', 'AP1R0', 'PMR', 'BPR1']))

    def look_at_all(self):
        for register in ('ISENABLER', 'ISPENDR', 'ISACTIVER'):
            self.add(f'v0 r32 GICD_{register}+4')
            for vcpu in range(self.num_vcpus):
                self.add(f'v0 r32 GICR_{register}0@{vcpu}')

    def step(self):
        steps = [(self.handle, 34), (self.drive, 14), (self.send, 8), (self.route, 4), (self.mask, 5), (self.look, 8),
                 (self.reprioritize, 5), (self.set_pending, 8), (lambda: self.write_bit('ICPENDR'), 4),
                 (lambda: self.write_bit('ISENABLER'), 6), (lambda: self.write_bit('ICENABLER'), 3),
                 (lambda: self.write_bit('ISACTIVER'), 2), (lambda: self.write_bit('ICACTIVER'), 4),
                 (self.look_at_all, 2)]
        self.random.choices([s[0] for s in steps], [s[1] for s in steps])[0]()

    def make(self, count):
        for number in range(count):
            self.step()
            if self.moves and number == count // 2:
                self.add('migrate')
        self.look_at_all()


# ---- Registers ----

class Registers(Script):
    """Anything into any register at any width, without interrupts being taken."""

    # Where registers are, per frame: (begin, end). Without those that differ, and those that start something.
    RANGES = [('GICD', 0x14, 0x40), ('GICD', 0x80, 0x1100), ('GICD', 0x6000, 0x6340), ('GICD', 0xffd0, 0x10000),
              ('GICR', 0x4, 0x40), ('GICR', 0x60, 0x100), ('GICR', 0x10000, 0x10e80), ('GICR', 0xffd0, 0x10000),
              ('GITS', 0x4, 0x80), ('GITS', 0x90, 0x180), ('GITS', 0xffd0, 0x10000), ('GITS', 0x10000, 0x10080)]

    def __init__(self, seed, name):
        super().__init__(seed, name)
        self.add('machine vcpus=0,1 its=1')

    def access(self):
        frame, begin, end = self.random.choice(self.RANGES)
        width = self.random.choice([1, 2, 4, 4, 4, 8, 8])
        offset = self.random.randrange(begin, end) // width * width
        if offset < begin:
            return
        name = f'{frame}@1+{offset:#x}' if frame == 'GICR' and self.chance(50) else f'{frame}+{offset:#x}'
        if self.chance(40):
            self.add(f'v0 r{8 * width}', name)
        else:
            self.add(f'v{self.below(2)} w{8 * width}', name, hex(self.word(8 * width)))

    def make(self, count):
        for _ in range(4 * count):
            self.access()
        for frame, begin, end in self.RANGES:
            self.add(f'v0 sweep {frame}+{begin:#x}', hex(end - begin))


class Attributes(Script):
    """Attributes of every group, and what the guest sees of them."""

    DIST = ['ISENABLER', 'ICENABLER', 'ISPENDR', 'ICPENDR', 'ISACTIVER', 'ICACTIVER', 'IGROUPR']
    ICC = ['PMR', 'BPR0', 'BPR1', 'AP0R0', 'AP1R0', 'SRE', 'IGRPEN0', 'IGRPEN1']

    def __init__(self, seed, name):
        super().__init__(seed, name)
        self.add('machine vcpus=0,1 its=1')
        self.add('set its0 GITS_CBASER QUEUE@0+0x8000000000000000')
        # KVM has no valid value there before the vCPU runs.
        for vcpu in range(2):
            self.add(f'set cpu v{vcpu} BPR0 2')
            self.add(f'set cpu v{vcpu} BPR1 3')

    def one(self):
        vcpu = f'v{self.below(2)}'
        kind = self.below(8)
        if kind == 0:
            self.both('dist', f'GICD_{self.random.choice(self.DIST)}+{4 * (1 + self.below(2))}', self.word(32))
        elif kind == 1:
            self.both('dist', f'GICD_IPRIORITYR+{4 * self.below(24)}', self.word(32))
        elif kind == 2:
            self.both('dist', self.random.choice([f'GICD_ICFGR+{4 * self.below(6)}', 'GICD_CTLR', 'GICD_TYPER']),
                      self.word(32))
        elif kind == 3:
            self.both('dist', f'GICD_IROUTER+{8 * (32 + self.below(64)) + 4 * self.below(2)}', self.below(3))
        elif kind == 4:
            self.both(f'redist {vcpu}', f'GICR_{self.random.choice(self.DIST)}0', self.word(32) & 0x77fffff)
        elif kind == 5:
            self.both(f'redist {vcpu}', self.random.choice([f'GICR_IPRIORITYR+{4 * self.below(8)}', 'GICR_ICFGR+4',
                      'GICR_PROPBASER', 'GICR_PENDBASER', 'GICR_PENDBASER+4', 'GICR_TYPER', 'GICR_WAKER']),
                      self.word(32))
        elif kind == 6:
            register = self.random.choice(self.ICC)
            value = {'PMR': self.below(32) << 3, 'BPR0': 2 + self.below(6), 'BPR1': 3 + self.below(5), 'SRE': 7,
                     'AP0R0': 0, 'AP1R0': 1 << self.below(32)}.get(register, self.below(2))
            self.both(f'cpu {vcpu}', register, value)
        else:
            self.both('its0', self.random.choice(['GITS_BASER0', 'GITS_BASER1', 'GITS_TYPER', 'GITS_CWRITER']),
                      self.word(64) & ~(1 << 63))

    def both(self, group, name, value):
        if self.chance(60):
            self.add('set', group, name, hex(value))
        if self.chance(60):
            self.add('get', group, name)

    def make(self, count):
        for _ in range(2 * count):
            self.one()
        self.add('v0 sweep GICD+0x14 0x800')
        for vcpu in range(2):
            self.add(f'v0 sweep GICR@{vcpu} 0x100')
            self.add(f'v0 sweep GICR@{vcpu}+0x10000 0xd00')
            for register in ('PMR', 'BPR0', 'BPR1', 'AP1R0', 'IGRPEN0', 'IGRPEN1', 'RPR'):
                self.add(f'v{vcpu} mrs', register)


CLASSES = {'hostile': Hostile, 'its': Its, 'move': Move, 'save': Save, 'lines': Lines, 'registers': Registers, 'attributes': Attributes}


def generate(seed, count, steps=60):
    """(name, text) of as many scripts; a script depends on the seed and its own number only."""
    scripts = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        name = f'random-{kind}-{seed}-{number}'
        script = CLASSES[kind](seed, name)
        script.make(steps)
        scripts.append((name, script.text()))
    return scripts
