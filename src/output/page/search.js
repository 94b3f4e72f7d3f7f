// Which frames a regular expression finds, and how much of the time is in them.

// Without a capital letter, case is ignored. A text that is not a valid regular expression is
// searched for literally.
function matcherOf(text) {
  const flags = /[A-Z]/.test(text) ? 'u' : 'iu';
  try {
    return {expression: new RegExp(text, flags), isValid: true};
  } catch {
    const literal = text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
    return {expression: new RegExp(literal, flags.replace('u', '')), isValid: false};
  }
}

// The expression that finds this name alone.
function exactly(name) {
  return `^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
}

// A label also has the line, if lines are shown.
function matchesOf(frames, expression) {
  return Uint8Array.from(frames, frame =>
    expression.test(frame.label) || expression.test(frame.name) ? 1 : 0);
}

// The nodes of matched frames.
class Found {
  constructor(tree, matches) {
    this.before = new Int32Array(tree.length + 1); // how many nodes before each node are found
    for (let i = 0; i < tree.length; i++) {
      const isFound = tree.frame[i] >= 0 && matches[tree.frame[i]] && tree.has(i);
      this.before[i + 1] = this.before[i] + (isFound ? 1 : 0);
    }
  }

  isFound(node) {
    return this.has(node, node + 1);
  }

  // Whether one of the nodes from `first` up to `end` is found.
  has(first, end) {
    return this.before[end] > this.before[first];
  }
}

// The time in matched frames; a matched frame on top of another counts once.
function matchedTime(tree, found) {
  let time = 0;
  for (let i = 1; i < tree.length;) {
    const isFound = found.isFound(i);
    time += isFound ? tree.width[i] : 0;
    i = isFound ? tree.end[i] : i + 1;
  }
  return time;
}
