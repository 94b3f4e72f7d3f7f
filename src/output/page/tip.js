// What is shown for the frame under the mouse, or the one selected by keys.

class Tip {
  constructor(box) {
    this.box = box;
  }

  hide() {
    this.box.hidden = true;
  }

  show(lines, bar, x, y) {
    this.box.replaceChildren(...lines);
    if (bar)
      this.box.append(bar);
    this.box.hidden = false;
    this.box.style.left = '0'; // at the right edge it would be as narrow as the room left there
    const {width, height} = this.box.getBoundingClientRect();
    const {clientWidth, clientHeight} = document.documentElement; // without scroll bars
    const right = clientWidth - width - 6, below = clientHeight - height - 6;
    this.box.style.left = `${Math.max(4, Math.min(x + 12, right))}px`;
    this.box.style.top = `${Math.max(4, y + 16 <= below ? y + 16 : y - height - 10)}px`;
  }
}

function whereOf(frame) {
  const lines = [...frame.lines].filter(Boolean).sort((a, b) => a - b);
  const shown = lines.length > 6 ? `${lines.slice(0, 6).join(', ')} …` : lines.join(', ');
  const kinds = [[FLAG_INLINED, 'inlined'], [FLAG_KERNEL, 'kernel'], [FLAG_JIT, 'JIT'],
                 [FLAG_NOTE, 'a note, not code'], [FLAG_UNNAMED, 'functions without names'],
                 [FLAG_ROOT, 'all its stacks'], [FLAG_THREAD, 'a thread that waits']];
  return [frame.file && (shown ? `${frame.file}:${shown}` : frame.file), frame.path,
          ...kinds.map(([flag, name]) => frame.flags & flag ? name : '')]
    .filter(Boolean).join(' · ');
}

// How the frame's time is divided among the categories. `isPlain`: their colours are not the
// graph's.
function shareLines(shares, total, isPlain) {
  const box = element('div'), bar = element('div', '', {class: 'bar'});
  bar.hidden = isPlain;
  const parts = shares.filter(part => part.time > 0).sort((a, b) => b.time - a.time);
  for (const part of parts) {
    const piece = element('i');
    piece.style.width = `${100 * part.time / total}%`;
    piece.style.background = part.colour;
    bar.append(piece);
  }
  const names = parts.slice(0, 4).map(part => `${part.name} ${percent(part.time / total)}`);
  box.append(bar, element('div', names.join(', ') + (parts.length > 4 ? ' …' : '')));
  return box;
}
