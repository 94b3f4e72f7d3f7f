// Profiles of objects have no time: one of their types of values, such as bytes in use, is counted
// instead. The unit is the type's number. (src/profile/objects.h)

const WORDS = new Map(Object.entries({
  inuse_space: 'bytes in use', inuse_objects: 'objects in use',
  alloc_space: 'bytes allocated', alloc_objects: 'objects allocated',
  rss: 'resident bytes', faults: 'page faults', threadcreate: 'threads made',
}));

const KINDS = new Map(Object.entries({
  heap: 'allocated memory', allocs: 'allocated memory', growth: 'resident memory',
  threadcreate: 'threads, by what made them',
}));

// Other names are chosen by the program.
function inWords(name, words) {
  return words.get(name) || plain(name);
}

function bytesText(bytes) {
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  if (bytes < 1023.5)
    return `${Math.round(bytes)} B`;
  let unit = 0;
  for (bytes /= 1024; bytes >= 1023.95 && unit < units.length - 1; unit++)
    bytes /= 1024;
  return `${bytes.toFixed(1)} ${units[unit]}`;
}

class ObjectTypes {
  constructor({kind, types, shown}) {
    this.kind = inWords(kind, KINDS);
    this.types = types.map(([name, unit]) => ({name: inWords(name, WORDS), unit}));
    this.main = String(shown);
  }

  // [unit, name], the one that is shown first before the others.
  options() {
    const options = this.types.map(({name}, number) => [String(number), name]).reverse();
    return [...options.filter(([unit]) => unit === this.main),
            ...options.filter(([unit]) => unit !== this.main)];
  }

  name(unit) {
    return this.types[unit].name;
  }

  amount(value, unit) {
    return this.types[unit].unit === 'bytes' ? bytesText(value) : whole(value);
  }

  // Of bytes, the unit that counts what has them; '' of others.
  counter(unit) {
    return this.types[unit].unit === 'bytes' ? String(unit - 1) : '';
  }

  // How many objects have the bytes, in words; '' if the value itself says how many.
  count(count, unit) {
    const counter = this.counter(unit);
    return counter && `${whole(count)} ${this.name(counter)}`;
  }

  text(unit, amount, {elapsed_ns: elapsed, objects: {rate}}) {
    const how = rate > 1 ? `, estimated from one allocation in ${bytesText(rate)} on average` : '';
    return `Widths are ${this.name(unit)}${how}. ` +
      `Shown: ${this.amount(amount, unit)}, in a recording of ${duration(elapsed)}.`;
  }
}

// [what, text] of what is known besides.
function objectRows({objects, stacks}) {
  const {made_lost: made, gone_lost: gone, resident_peak: peak} = objects;
  const {heap_arena: arena, heap_mmap: mapped, heap_used: used, heap_free: free} = objects;
  return [
    ['Seen', `${whole(objects.seen)} objects, ${whole(stacks.length)} stacks`],
    ['Not recorded', (made || gone) &&
      `${whole(made)} that were made, ${whole(gone)} that went and still count as in use`],
    ['Not seen', objects.allocator_is_own &&
      'allocations of the program\'s own allocator: --kind growth shows where its memory grows'],
    ['malloc', (arena || mapped) && `${bytesText(arena + mapped)} from the kernel, ` +
      `${bytesText(used + mapped)} of it in use, ${bytesText(free)} free`],
    ['Resident', peak && `${bytesText(peak)} at most`],
  ];
}
