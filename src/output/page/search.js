// Which frames a regular expression finds, and how much of the time is in them.

// Without a capital letter, capitals and small ones are the same. What is no regular expression is
// looked for as it stands.
function matcherOf(text) {
  const flags = /[A-Z]/.test(text) ? 'u' : 'iu';
  try {
    return {expression: new RegExp(text, flags), isValid: true};
  } catch {
    const literal = text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
    return {expression: new RegExp(literal, flags.replace('u', '')), isValid: false};
  }
}

function matchesOf(frames, expression) {
  return Uint8Array.from(frames, frame => expression.test(frame.label) ? 1 : 0);
}

// The nodes of matched frames.
class Found {
  constructor(tree, matches) {
    this.before = new Int32Array(tree.length + 1); // how many are found among those before a node
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

// The time in matched frames, one that stands on another counted once.
function matchedTime(tree, found) {
  let time = 0;
  for (let i = 1; i < tree.length;) {
    const isFound = found.isFound(i);
    time += isFound ? tree.width[i] : 0;
    i = isFound ? tree.end[i] : i + 1;
  }
  return time;
}
