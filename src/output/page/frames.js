// The distinct frames {name, label, file, line, lines, path, module, flags, shade}, and for each location the frames
// that it stands for, outermost first.
class FrameTable {
  constructor(recordings, withLines) {
    this.withLines = withLines;
    this.isOfTwo = recordings.length > 1;
    this.frames = [];
    this.numbers = new Map();
    this.places = new Map(); // by stack: only one recording has them
    this.ofLocation = new Map(recordings.map(recording =>
      [recording, recording.raw.locations.map(row => this.framesOf(recording.strings, row))]));
  }

  // In two recordings equal names mean the same frame: another build may have it elsewhere.
  keyOf(frame, line) {
    return this.isOfTwo ? `${frame.label}\0${frame.flags & FLAG_ROOT}`
      : `${frame.name}\0${frame.file}\0${line}\0${frame.path}\0${frame.flags}`;
  }

  add(name, file, line, path, flags) {
    const shownLine = this.withLines ? line : 0;
    const frame = {name, file, line, path, flags, lines: null, module: baseName(path),
                   label: shownLine && file ? `${name} (${baseName(file)}:${line})` : name};
    const key = this.keyOf(frame, shownLine);
    let number = this.numbers.get(key);
    if (number === undefined) {
      number = this.frames.length;
      frame.lines = new Set();
      frame.shade = hashOf(frame.label) % 97 / 96;
      this.frames.push(frame);
      this.numbers.set(key, number);
    }
    this.frames[number].lines.add(line);
    return number;
  }

  framesOf(strings, [module, flags, ...rest]) {
    if (typeof rest[0] === 'string')
      return [this.add(plain(rest[0]), '', 0, strings[module], flags | (flags & FLAG_NOTE ? 0 : FLAG_UNNAMED))];
    const numbers = [];
    for (let i = 0; i < rest.length; i += 3) {
      const isInlined = i + 3 < rest.length;
      numbers.unshift(this.add(strings[rest[i]], strings[rest[i + 1]], rest[i + 2],
                               strings[module], flags | (isInlined ? FLAG_INLINED : 0)));
    }
    return numbers;
  }

  // A frame without a function, for the thread or process of the stacks on it.
  rootOf(name) {
    return this.add(name, '', 0, '', FLAG_ROOT);
  }

  // One that is no place in the code.
  note(text) {
    return this.add(text, '', 0, '', FLAG_NOTE);
  }

  // The name of a thread between its stack and that of the one that it waits for.
  threadOf(name) {
    return this.add(name || '[no name]', '', 0, '', FLAG_THREAD);
  }

  // The frame where the stack is in the program's own code; -1: it has no frames.
  programPlaceOf(recording, stack) {
    if (!this.places.has(stack)) {
      const path = this.wholePathOf({recording, stack}), {places = []} = recording.raw;
      this.places.set(stack, path.length ? path.at(-1 - (places[stack] || 0)) : -1);
    }
    return this.places.get(stack);
  }

  // The frames of the sample's stack, root first. Functions of one file that have no names look alike, so a row of
  // them becomes one frame.
  pathOf(sample) {
    const path = this.wholePathOf(sample), {frames} = this;
    return path.filter((frame, i) => frame !== path[i - 1] || !(frames[frame].flags & FLAG_UNNAMED));
  }

  wholePathOf({recording, stack}) {
    const path = [], ofLocation = this.ofLocation.get(recording);
    const locations = recording.raw.stacks[stack];
    for (let i = locations.length - 1; i >= 0; i--) {
      for (const frame of ofLocation[locations[i]])
        path.push(frame);
    }
    return path;
  }
}
