// The profile's tables (src/output/html.c says what is in them), made ready for counting: each
// sample with its labels as texts, each location with the frames that it stands for.

const FLAG_KERNEL = 1, FLAG_JIT = 2, FLAG_NOTE = 4; // as html.c writes them
const FLAG_INLINED = 8;

// A name is the target's: marks that turn the direction of what follows would show another name.
function plain(text) {
  return text.replace(/[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

class Profile {
  constructor(raw) {
    this.raw = raw;
    this.strings = raw.strings.map(text => text === 0 ? '' : plain(text));
    this.elapsed = raw.elapsed_ns;
    this.samples = raw.samples.map(row => this.sampleOf(row));
    this.frameTables = new Map(); // by whether lines are told apart
  }

  sampleOf([stack, name, tid, state, call, channel, count, time]) {
    const threadName = this.strings[name];
    return {
      stack, count, time, tid, before: 0, countBefore: 0,
      threadName,
      thread: tid ? `${threadName}/${tid}` : threadName,
      state: this.raw.states[state],
      category: this.categoryOf(this.raw.states[state], this.strings[call], this.strings[channel]),
    };
  }

  // What a sleeper waits in says more than that it sleeps.
  categoryOf(state, call, channel) {
    if (state === 'sleeping')
      return call || 'sleeping';
    if (state === 'uninterruptible')
      return 'uninterruptible' + (channel || call ? `: ${channel || call}` : '');
    return state;
  }

  // The frames {name, file, line, module, flags}, each once, and for each location those that it
  // stands for, outermost first.
  frameTable(withLines) {
    let table = this.frameTables.get(withLines);
    if (!table) {
      table = {frames: [], numbers: new Map(), ofLocation: []};
      for (const location of this.raw.locations)
        table.ofLocation.push(this.framesOf(location, table, withLines));
      this.frameTables.set(withLines, table);
    }
    return table;
  }

  framesOf([module, flags, ...rest], table, withLines) {
    const add = (name, file, line, flag) => {
      const shownLine = withLines ? line : 0;
      const key = `${name}\0${file}\0${shownLine}\0${module}\0${flag}`;
      let number = table.numbers.get(key);
      if (number === undefined) {
        number = table.frames.length;
        const label = shownLine && file ? `${name} (${baseName(file)}:${line})` : name;
        table.frames.push({name, label, file, line, lines: new Set(), flags: flag,
                           path: this.strings[module], module: baseName(this.strings[module])});
        table.numbers.set(key, number);
      }
      table.frames[number].lines.add(line);
      return number;
    };
    if (typeof rest[0] === 'string')
      return [add(plain(rest[0]), '', 0, flags)];
    const numbers = [];
    for (let i = 0; i < rest.length; i += 3) {
      const isInlined = i + 3 < rest.length;
      numbers.unshift(add(this.strings[rest[i]], this.strings[rest[i + 1]], rest[i + 2],
                          flags | (isInlined ? FLAG_INLINED : 0)));
    }
    return numbers;
  }

  // The stack's frames, root first.
  frames(stack, table) {
    const path = [];
    const locations = this.raw.stacks[stack];
    for (let i = locations.length - 1; i >= 0; i--)
      path.push(...table.ofLocation[locations[i]]);
    return path;
  }
}
