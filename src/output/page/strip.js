// The strip of time above the graph: what all threads did, then a row for each of the busiest threads, and the selected time.

const STRIP_AXIS = 16, STRIP_ALL = 44, STRIP_GAP = 4, STRIP_ROW = 15;
const STRIP_ROWS = 6, STRIP_ROWS_MAX = 384; // at first; a canvas has a greatest height
const STRIP_STEPS = 100; // of a key, in the recording
const LABEL_APART = 70; // pixels
const DRAG_LEAST = 3;

// {begin, end} as "3.1-4.25", in seconds.
function timesText({begin, end}) {
  return [begin, end].map(ns => String(Number((ns / 1e9).toFixed(6)))).join('-');
}

// The times that a text names, within the recording; null: none.
function timesOf(text, lengthNs) {
  const [, begin, end] = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text || '') || [];
  const times = {begin: 1e9 * begin, end: Math.min(1e9 * end, lengthNs)};
  return times.end > times.begin ? times : null;
}

// A step of the axis in ns, such that about `count` fit: 1, 2 or 5 of a power of ten.
function axisStep(lengthNs, count) {
  const least = lengthNs / Math.max(1, count), power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find(factor => factor * power >= least);
}

function axisText(ns, step) {
  const digits = Math.max(0, -Math.floor(Math.log10(step / 1e9) + 1e-9));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

class Strip {
  // onTime(times, isCompared): selects {begin, end} in ns, null: all; isCompared: to compare with the time selected before.
  // onThread(sample): filters by its thread.
  constructor(section, profile, tip, onTime, onThread) {
    Object.assign(this, {section, timeline: profile.timeline, samples: profile.samples, tip, onTime, onThread});
    this.lengthNs = profile.after.elapsed;
    this.box = section.querySelector('#strip-time');
    this.canvas = section.querySelector('canvas');
    this.context = this.canvas.getContext('2d');
    this.chosen = section.querySelector('#strip-chosen');
    this.rowsShown = STRIP_ROWS;
    this.threads = this.timeline.threads.filter(thread => this.sampleOf(thread));
    this.deadlock = profile.after.raw.deadlocks ? this.timeline.firstOf(numbersInCircles(this.samples)) : -1;
    section.hidden = false;
    byId('strip-more').addEventListener('click', () => {
      this.rowsShown = Math.min(4 * this.rowsShown, STRIP_ROWS_MAX);
      this.show(this.model, this.palette);
    });
    byId('strip-all').addEventListener('click', () => this.onTime(null));
    this.bindMouse();
    this.box.addEventListener('keydown', event => this.press(event));
    new ResizeObserver(() => {
      if (this.model && this.width !== this.widthOfBox())
        this.show(this.model, this.palette);
    }).observe(this.box);
  }

  widthOfBox() {
    return Math.max(1, Math.floor(this.box.clientWidth));
  }

  // Any sample of the thread, which has its name.
  sampleOf(thread) {
    return this.samples[this.timeline.firstSampleOf(thread)] || null;
  }

  // model: {kept(): of each sample, whether it counts; thread: the one that is filtered by, or ''}.
  show(model, palette) {
    Object.assign(this, {model, palette});
    this.width = this.widthOfBox();
    const kept = model.kept();
    const categories = categoriesOf(this.samples, sample => sample.category);
    const numbers = new Map(categories.map((name, i) => [name, i]));
    this.categories = categories;
    this.hues = huesOfStates(categories);
    this.ofSample = Int32Array.from(this.samples, ({category}, i) =>
      kept[i] ? numbers.get(category) ?? categories.length - 1 : -1);
    // Those that want a CPU are at the bottom.
    const rank = name => ['running', 'runnable'].indexOf(name) + 1 || 3;
    this.order = [...categories.keys()].sort((a, b) => rank(categories[a]) - rank(categories[b]) || a - b);
    this.all = this.pixelsOf(this.threads);
    this.most = this.all[0] ? this.all[0].reduce((most, _, x) => Math.max(most, this.heightAt(this.all, x)), 0) : 0;
    this.chooseRows();
    this.nameRows();
    this.draw();
  }

  pixelsOf(threads) {
    const pixels = new Pixels(this.width, this.categories.length);
    for (const thread of threads)
      this.timeline.addThread(thread, this.ofSample, pixels);
    return pixels.finish();
  }

  heightAt(parts, x) {
    return parts.reduce((sum, part) => sum + part[x], 0);
  }

  // The threads with the most time on a CPU or waiting for one; the one that is filtered by first.
  chooseRows() {
    const {until, sample} = this.timeline, busy = this.samples.map(({state}) =>
      state === 'running' || state === 'runnable');
    const rows = [];
    for (const thread of this.threads) {
      const row = {thread, sample: this.sampleOf(thread), busy: 0, time: 0};
      for (let run = thread.first, begin = thread.begin; run < thread.last; begin = until[run++]) {
        if (sample[run] < 0 || this.ofSample[sample[run]] < 0)
          continue;
        row.time += until[run] - begin;
        row.busy += busy[sample[run]] ? until[run] - begin : 0;
      }
      row.isChosen = [row.sample.thread, row.sample.threadName].includes(this.model.thread);
      if (row.time)
        rows.push(row);
    }
    rows.sort((a, b) => b.isChosen - a.isChosen || b.busy - a.busy || b.time - a.time);
    this.rowCount = rows.length;
    // One thread alone is what all threads did.
    this.rows = rows.length > 1 || rows[0]?.isChosen ? rows.slice(0, this.rowsShown) : [];
    for (const row of this.rows)
      row.parts = this.pixelsOf([row.thread]);
  }

  nameRows() {
    const names = this.rows.map(({sample, isChosen}) => {
      const name = element('button', sample.thread || '[no name]', {
        'aria-pressed': String(isChosen), title: `${sample.process} ${sample.thread}`});
      name.addEventListener('click', () => this.onThread(isChosen ? null : sample));
      return name;
    });
    const most = Math.round(this.most * 10) / 10;
    const all = element('span', `${most} ${most === 1 ? 'thread' : 'threads'}`,
                        {title: 'The most threads at a time that are shown'});
    const focused = [...byId('strip-names').children].indexOf(document.activeElement);
    byId('strip-names').replaceChildren(all, ...names);
    if (focused >= 0)
      byId('strip-names').children[focused]?.focus({preventScroll: true});
    const left = this.rows.length && this.rowCount - this.rows.length;
    byId('strip-more').hidden = !left || this.rowsShown >= STRIP_ROWS_MAX;
    byId('strip-more').textContent = `${whole(left)} more threads`;
  }

  top(row) {
    return STRIP_AXIS + STRIP_ALL + STRIP_GAP + row * STRIP_ROW;
  }

  xOf(ns) {
    return ns / this.lengthNs * this.width;
  }

  draw() {
    const {canvas, context, palette} = this, ratio = window.devicePixelRatio || 1;
    this.height = this.top(this.rows.length);
    canvas.style.height = `${this.height}px`;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, this.width, this.height);
    this.drawAxis();
    this.drawParts(this.all, STRIP_AXIS, STRIP_ALL, this.most);
    this.rows.forEach(({parts}, i) => this.drawParts(parts, this.top(i), STRIP_ROW - 2, 1));
    this.drawMarks();
    this.showTimes(this.times || null, this.compared || null);
  }

  drawAxis() {
    const {context, palette} = this, step = axisStep(this.lengthNs, this.width / LABEL_APART);
    for (let ns = 0; ns <= this.lengthNs; ns += step) {
      const x = Math.floor(this.xOf(ns)), text = axisText(ns, step);
      context.fillStyle = palette.line;
      context.fillRect(x, 0, 1, this.height);
      context.fillStyle = palette.otherText;
      if (x + context.measureText(text).width + 3 < this.width)
        context.fillText(text, x + 3, 11);
    }
  }

  // Neighbours of the same height are one rectangle.
  drawParts(parts, top, height, most) {
    const {context, width} = this, scale = most ? height / most : 0, base = new Float64Array(width).fill(top + height);
    for (const category of this.order) {
      const part = parts[category];
      context.fillStyle = this.palette.solid(this.hues[category]);
      for (let x = 0, first = 0; x < width; x++) {
        if (x + 1 < width && part[x + 1] === part[first] && base[x + 1] === base[first])
          continue;
        const h = part[first] * scale, y = base[first];
        if (h > 0)
          context.fillRect(first, y - h, x + 1 - first, h);
        for (; first <= x; first++)
          base[first] = y - h;
      }
    }
  }

  drawMarks() {
    const {context, timeline} = this, x = grains => Math.floor(grains / timeline.length * this.width);
    if (this.deadlock >= 0) {
      context.fillStyle = this.palette.alarm;
      context.fillRect(x(this.deadlock), 0, 2, this.height);
      context.fillText('deadlock', x(this.deadlock) + 5, STRIP_AXIS + 12);
    }
    if (timeline.endedEarly) {
      context.fillStyle = this.palette.otherText;
      context.fillText('not recorded from here on', x(timeline.endedEarly) + 5, STRIP_AXIS + 26);
    }
  }

  // ---- The selection ----

  // compared: the time that it is compared with.
  showTimes(times, compared = this.compared) {
    Object.assign(this, {times, compared});
    this.showBox(this.chosen, times);
    this.showBox(byId('strip-compared'), compared);
    byId('strip-all').hidden = !times;
    byId('strip-text').textContent = times
      ? `${(times.begin / 1e9).toFixed(3)} s to ${(times.end / 1e9).toFixed(3)} s selected: ${duration(times.end - times.begin)}`
      : 'Drag to select a time.';
  }

  showBox(box, times) {
    box.hidden = !times;
    if (!times)
      return;
    box.style.left = `${this.xOf(times.begin)}px`;
    box.style.width = `${Math.max(1, this.xOf(times.end - times.begin))}px`;
    box.style.height = `${this.height}px`;
  }

  // The time under the mouse.
  timeAt(event) {
    const share = (event.clientX - this.canvas.getBoundingClientRect().left) / this.width;
    return Math.max(0, Math.min(1, share)) * this.lengthNs;
  }

  bindMouse() {
    const {canvas} = this;
    let from = null, x = 0;
    const timesTo = event => {
      const [begin, end] = [from, this.timeAt(event)].sort((a, b) => a - b);
      return Math.abs(event.clientX - x) < DRAG_LEAST ? null : {begin, end};
    };
    canvas.addEventListener('pointerdown', event => {
      if (event.button)
        return;
      [from, x] = [this.timeAt(event), event.clientX];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => {
      if (from === null)
        return this.showTip(event);
      this.tip.hide();
      this.showTimes(timesTo(event));
    });
    canvas.addEventListener('pointerup', event => {
      if (from !== null)
        this.onTime(timesTo(event), event.shiftKey);
      from = null;
    });
    canvas.addEventListener('pointercancel', () => {
      from = null;
    });
    canvas.addEventListener('pointerleave', () => this.tip.hide());
  }

  // The arrow keys move the selection, with Shift its end; the first of them makes it.
  press(event) {
    const step = this.lengthNs / STRIP_STEPS, move = {ArrowLeft: -step, ArrowRight: step}[event.key];
    const {begin, end} = this.times || {begin: 0, end: 0}, length = this.lengthNs;
    if (event.key === 'Escape' && this.times)
      this.onTime(null);
    else if (event.key === 'Home' || event.key === 'End')
      this.onTime(event.key === 'Home' ? {begin: 0, end: (end - begin) || step}
                                       : {begin: length - ((end - begin) || step), end: length});
    else if (move && !this.times)
      this.onTime(move > 0 ? {begin: 0, end: step} : {begin: length - step, end: length});
    else if (move && event.shiftKey)
      this.onTime({begin, end: Math.min(length, Math.max(begin + step, end + move))});
    else if (move)
      this.moveBy(Math.max(-begin, Math.min(length - end, move)));
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  }

  moveBy(ns) {
    this.onTime({begin: this.times.begin + ns, end: this.times.end + ns});
  }

  // What all threads did in that pixel, or one of them.
  showTip(event) {
    const box = this.canvas.getBoundingClientRect(), x = Math.floor(event.clientX - box.left);
    const row = Math.floor((event.clientY - box.top - this.top(0)) / STRIP_ROW);
    const parts = row < 0 ? this.all : this.rows[row]?.parts;
    if (!parts || x < 0 || x >= this.width)
      return this.tip.hide();
    const shares = this.categories.map((name, i) => (
      {name, time: parts[i][x], colour: this.palette.solid(this.hues[i])}));
    const total = this.heightAt(parts, x), at = `${(this.timeAt(event) / 1e9).toFixed(3)} s`;
    this.tip.show([element('div', row < 0 ? threadsText(total) : this.rows[row].sample.thread, {class: 'name'}),
                   element('div', at, {class: 'where'})], total ? shareLines(shares, total, false) : null,
                  event.clientX, event.clientY);
  }
}
