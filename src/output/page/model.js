// Counting: the wanted samples in a tree and in a list of functions.

const OTHERS = 'others';
const CATEGORIES_MAX = 24;

const NO_LABEL = '[none]';
const OF_LABEL = 'label:';

// The key that a choice such as 'label:route' names; '' if it is another choice.
function labelKeyOf(choice) {
  return choice.startsWith(OF_LABEL) ? choice.slice(OF_LABEL.length) : '';
}

// What samples are coloured by.
function categoryOf(colour, samples) {
  switch (colour) {
  case 'process': return sample => sample.process;
  case 'thread': { // each thread by itself, as long as there are few enough to tell apart
    const threads = new Set(samples.map(sample => sample.thread));
    return threads.size > CATEGORIES_MAX ? sample => sample.threadName : sample => sample.thread;
  }
  default: {
    const key = labelKeyOf(colour);
    return key ? sample => sample.labels.get(key) || NO_LABEL : sample => sample.category;
  }
  }
}

function isOnCpu(sample) {
  return sample.state === 'running';
}

// What the graph's first frames tell samples apart by.
const ROOT_OF = {
  thread: sample => sample.thread || '[no name]',
  process: sample => sample.process || '[no name]',
};

// label: 'key=value'. Either may contain '='.
function hasLabel(sample, label) {
  for (const [key, value] of sample.labels) {
    if (`${key}=${value}` === label)
      return true;
  }
  return false;
}

// choice: {process, thread, state, module, label}, '' for all; label is 'key=value'; thread is 'name', 'name/tid' or
// 'name/goroutine id'; state is a category, 'on-cpu' or 'off-cpu'. hidesIdle: without threads that only waited for work, unless
// they are chosen. times: only samples with time in that range, which is in `amount`.
function keeps(sample, choice, amount) {
  // In thread-seconds, a sample of less than a tick still counts; idle time does not.
  if (!sample.ns && (choice.isElapsed || !sample.ownCount))
    return false;
  if (choice.times && !sample[amount])
    return false;
  if (choice.hidesIdle && sample.isOfIdleThread && !choice.thread)
    return false;
  if (choice.process && choice.process !== sample.process)
    return false;
  if (choice.thread && choice.thread !== sample.thread && choice.thread !== sample.threadName)
    return false;
  if (choice.label && !hasLabel(sample, choice.label))
    return false;
  switch (choice.state) {
  case '': return true;
  case 'on-cpu': return isOnCpu(sample);
  case 'off-cpu': return !isOnCpu(sample);
  default: return sample.category === choice.state;
  }
}

// The part of a root-first path that a function's own graph shows; null if the function is not in it. A recursive function's
// calls are all included, as one.
function pathOf(path, pivot, isInverted) {
  if (pivot) {
    const at = isInverted ? path.findLastIndex(frame => pivot[frame]) : path.findIndex(frame => pivot[frame]);
    if (at < 0)
      return null;
    path = isInverted ? path.slice(0, at + 1) : path.slice(at);
  }
  return isInverted ? path.slice().reverse() : path;
}

// The texts that samples are coloured by, the most time first; the last one stands for all others.
function categoriesOf(samples, nameOf) {
  const times = new Map();
  for (const sample of samples)
    times.set(nameOf(sample), (times.get(nameOf(sample)) || 0) + sample.ns);
  const names = [...times.keys()].sort((a, b) => times.get(b) - times.get(a));
  return names.length > CATEGORIES_MAX ? [...names.slice(0, CATEGORIES_MAX - 1), OTHERS] : names;
}

// The paths of all samples, and what is made of them once for all filters.
class Stacks {
  // table: the FrameTable; makePath(table, sample): the frames of the sample's stack.
  constructor(samples, table, makePath = (table, sample) => table.pathOf(sample)) {
    this.samples = samples;
    this.table = table;
    this.paths = samples.map((sample, i) => makePath(table, sample, i));
    this.functions = this.whole = new Functions(this.paths, table.frames.length); // whole: with what is left out
  }

  // The same without the functions of these names, whose time goes to their callers; the last result is kept. isOwn: without
  // the C and C++ libraries and the functions that start threads and programs, unless nothing is left then.
  without(names, isOwn) {
    const key = [isOwn, ...names].join('\0'), others = FLAG_LIBRARY | FLAG_START | FLAG_KERNEL;
    if (!names.length && !isOwn)
      return this;
    if (this.withoutKey !== key) {
      const isHidden = this.table.frames.map(frame => names.includes(frame.name));
      const isOther = this.table.frames.map(frame => isOwn && frame.flags & others);
      this.rest = new Stacks(this.samples, this.table, (table, sample, i) => {
        const shown = this.paths[i].filter(frame => !isHidden[frame]), own = shown.filter(frame => !isOther[frame]);
        return own.length ? own : shown.slice(-1);
      });
      this.rest.whole = this.functions;
      this.withoutKey = key;
    }
    return this.rest;
  }

  // The frames under a sample's stack. Blamed stacks stand on the name of the owner.
  rootsOf(sample, roots) {
    const key = labelKeyOf(roots);
    const names = key ? [sample.labels.get(key) || NO_LABEL]
                      : ROOT_OF[roots] ? [ROOT_OF[roots](sample)] : [];
    if (sample.waiter && roots !== 'thread')
      names.push(nameOf(sample));
    return names.map(name => this.table.rootOf(name));
  }

  // The tree's shape for a choice {pivot, isInverted, roots}; the last one is kept. pivot: for each frame whether it belongs to
  // the function; null: all frames.
  shapeOf({pivot, isInverted, roots}) {
    const key = [pivot && pivot.findIndex(Boolean), isInverted, roots].join();
    if (this.shapeKey === key)
      return this.shape;
    this.shape = new Shape(this.paths.map((path, i) => {
      const shown = pathOf(path, pivot, isInverted);
      return shown && [...this.rootsOf(this.samples[i], roots), ...shown];
    }));
    this.shapeKey = key;
    return this.shape;
  }

  // For each sample, whether a filter keeps it. amount: 'time', or 'before' of what is compared.
  kept(choice, amount = 'time') {
    const isOfModule = choice.module &&
      this.table.frames.map(frame => frame.module === choice.module);
    return this.samples.map((sample, i) =>
      keeps(sample, choice, amount) && (!isOfModule || this.whole.hasAny(i, isOfModule)));
  }
}

// The samples of the strip: of all times and threads, also of a thread that is chosen and hidden.
function stripKept(stacks, choice) {
  const all = stacks.kept({...choice, thread: '', times: null});
  const own = choice.thread ? stacks.kept({...choice, times: null}) : all;
  return stacks.samples.map((sample, i) => (all[i] || own[i]) && isOfWaits(sample, choice));
}

// The samples with the times of two filters, after and before. isNormalized: the latter is scaled to the same total.
function comparedSamples(samples, after, before, isNormalized) {
  const sum = (kept, amount) => samples.reduce((sum, sample, i) => sum + (kept[i] ? sample[amount] : 0), 0);
  const scale = isNormalized ? sum(after, 'time') / (sum(before, 'before') || 1) : 1;
  // They are copied, as an object becomes slow once it is a prototype.
  return samples.map((sample, i) => Object.assign(Object.create(Object.getPrototypeOf(sample)), sample, {
    time: after[i] ? sample.time : 0, count: after[i] ? sample.count : 0,
    before: before[i] ? sample.before * scale : 0, countBefore: before[i] ? sample.countBefore : 0}));
}

// How much of the waits that are chosen is left out of the graph: that of owners that are not known.
function unknownOwners(samples, filtered, choice) {
  return choice.waiting === 'blame'
    ? samples.reduce((sum, sample, i) => sum + (filtered[i] && !sample.wait?.blamed &&
                                                isOfWaits(sample, {...choice, waiting: 'wait'}) ? sample.time : 0), 0)
    : 0;
}

// What the page shows for a choice {process, thread, state, module, label, times, hidesIdle, lines, isInverted, pivot, hidden,
// isOwn, roots, colour, side, waiting, chosen, compared, isNormalized}. compared: the filters that differ in the selection
// compared with; null: nothing.
function aggregate(profile, choice) {
  const stacks = (choice.waiting === 'blame' ? profile.blamedStacks(choice.lines)
                                             : profile.stacks(choice.lines)).without(choice.hidden, choice.isOwn);
  const {frames} = stacks.table, ofAfter = stacks.kept(choice);
  const ofBefore = choice.compared && stacks.kept({...choice, ...choice.compared}, 'before');
  const samples = ofBefore ? comparedSamples(stacks.samples, ofAfter, ofBefore, choice.isNormalized) : stacks.samples;
  const filtered = ofBefore ? ofAfter.map((isKept, i) => isKept || ofBefore[i]) : ofAfter;
  const nameOf = categoryOf(choice.colour, samples);
  const categories = categoriesOf(samples, nameOf);
  const numbers = new Map(categories.map((name, i) => [name, i]));
  const categoryOfSample = samples.map(sample =>
    numbers.get(nameOf(sample)) ?? categories.length - 1);
  const shape = stacks.shapeOf(choice);
  const kept = samples.map((sample, i) => filtered[i] && isOfWaits(sample, choice));
  const totals = {time: 0, before: 0}; // for the function list: includes what a pivot leaves out
  samples.forEach((sample, i) => {
    totals.time += kept[i] ? sample.time : 0;
    totals.before += kept[i] ? sample.before : 0;
  });
  const threads = new Set(); // a thread may change its name
  for (const i of shape.order) {
    if (kept[i] && !samples[i].isIdle)
      threads.add(samples[i].tid || samples[i].threadName);
  }
  const tree = new Tree(shape, samples, kept, choice.side, categoryOfSample, categories.length);
  const functionsIn = node => stacks.functions.count(samples, samplesIn(shape, node, kept))
    .filter(row => !(frames[row.frame].flags & FLAG_THREAD));
  return {tree, categories, totals, threads: threads.size, frames, unknownOwners: unknownOwners(samples, filtered, choice),
          stripKept: () => stripKept(stacks, choice),
          threadRows: node => countThreads(stacks, samplesIn(shape, node, stacks.kept({...choice, thread: ''}).map(
            (isKept, i) => isKept && isOfWaits(stacks.samples[i], choice)))),
          waitRows: node => countWaits(stacks, samplesIn(shape, node, ofAfter)),
          functions: functionsIn(0), functionsIn};
}

// Those of the kept samples that pass through a node.
function samplesIn({order, first, last}, node, kept) {
  if (!node)
    return kept;
  const made = new Array(kept.length).fill(false);
  for (let i = first[node]; i < last[node]; i++)
    made[order[i]] = kept[order[i]];
  return made;
}
