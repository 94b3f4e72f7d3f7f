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

// The time in matched frames, one that stands on another counted once.
function matchedTime(tree, matches) {
  let time = 0;
  for (let i = 1; i < tree.length;) {
    const isFound = matches[tree.frame[i]];
    time += isFound ? tree.time[i] : 0;
    i = isFound ? tree.end[i] : i + 1;
  }
  return time;
}
