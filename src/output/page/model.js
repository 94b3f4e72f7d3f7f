// Counting: the samples that are wanted, merged into a tree and into a list of functions.

const OTHERS = 'others';
const CATEGORIES_MAX = 24;

// By what samples are coloured.
function categoryOf(colour, samples) {
  switch (colour) {
  case 'process': return sample => sample.process;
  case 'thread': { // each for itself, as long as that can be seen
    const threads = new Set(samples.map(sample => sample.thread));
    return threads.size > CATEGORIES_MAX ? sample => sample.threadName : sample => sample.thread;
  }
  default: return sample => sample.category;
  }
}

function isOnCpu(sample) {
  return sample.state === 'running';
}

// By what the graph's first frames tell samples apart.
const ROOT_OF = {
  thread: sample => sample.thread || '[no name]',
  process: sample => sample.process || '[no name]',
};

// choice: {process, thread, state, module}, '' for all; thread is 'name' or 'name/tid', state a
// category or 'on-cpu' or 'off-cpu'.
function keeps(sample, choice) {
  if (choice.process && choice.process !== sample.process)
    return false;
  if (choice.thread && choice.thread !== sample.thread && choice.thread !== sample.threadName)
    return false;
  switch (choice.state) {
  case '': return true;
  case 'on-cpu': return isOnCpu(sample);
  case 'off-cpu': return !isOnCpu(sample);
  default: return sample.category === choice.state || sample.state === choice.state;
  }
}

// The part of a root-first path that a function's own graph shows; null where it is not there. Of a
// recursive one all calls are taken, once.
function pathOf(path, pivot, isInverted) {
  if (pivot >= 0) {
    const at = isInverted ? path.lastIndexOf(pivot) : path.indexOf(pivot);
    if (at < 0)
      return null;
    path = isInverted ? path.slice(0, at + 1) : path.slice(at);
  }
  return isInverted ? path.slice().reverse() : path;
}

// The texts by which samples are coloured, those of most time first, the last for all the others.
function categoriesOf(samples, nameOf) {
  const times = new Map();
  for (const sample of samples)
    times.set(nameOf(sample), (times.get(nameOf(sample)) || 0) + sample.ns);
  const names = [...times.keys()].sort((a, b) => times.get(b) - times.get(a));
  return names.length > CATEGORIES_MAX ? [...names.slice(0, CATEGORIES_MAX - 1), OTHERS] : names;
}

function comparePaths(a, b) {
  const length = Math.min(a.path.length, b.path.length);
  for (let i = 0; i < length; i++) {
    if (a.path[i] !== b.path[i])
      return a.path[i] - b.path[i];
  }
  return a.path.length - b.path.length;
}

// What the page shows for a choice {process, thread, state, module, lines, isInverted, pivot,
// roots, colour, side}.
function aggregate(profile, choice) {
  const table = profile.frameTable(choice.lines);
  const nameOf = categoryOf(choice.colour, profile.samples);
  const rootOf = ROOT_OF[choice.roots];
  const categories = categoriesOf(profile.samples, nameOf);
  const numbers = new Map(categories.map((name, i) => [name, i]));
  const builder = new TreeBuilder(Math.max(categories.length, 1), choice.side);
  const functions = new FunctionList();
  const threads = new Set(), counted = [];
  const totals = {time: 0, before: 0}; // of the function list: also what a pivot leaves out
  for (const sample of profile.samples) {
    if (!keeps(sample, choice))
      continue;
    const path = table.pathOf(sample);
    if (choice.module && !path.some(frame => table.frames[frame].module === choice.module))
      continue;
    let shown = pathOf(path, choice.pivot, choice.isInverted);
    functions.add(path, sample);
    totals.time += sample.time;
    totals.before += sample.before;
    if (!shown)
      continue;
    if (rootOf)
      shown = [table.rootOf(rootOf(sample)), ...shown];
    threads.add(sample.tid || sample.threadName); // one may change its name
    const category = numbers.get(nameOf(sample));
    counted.push({path: shown, sample,
                  category: category === undefined ? categories.length - 1 : category});
  }
  for (const {path, sample, category} of counted.sort(comparePaths))
    builder.addPath(path, sample, category);
  const tree = builder.finish();
  return {tree, categories, totals, threads: threads.size, frames: table.frames,
          functions: functions.all()};
}
