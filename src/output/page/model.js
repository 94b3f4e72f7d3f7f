// Counting: the samples that are wanted, merged into a tree and into a list of functions.
//
// The tree is rows of arrays, the nodes in the order of a walk from the root (0): what lies over
// node i are the nodes up to end[i]. So drawing skips all of a narrow node at once. `second` has
// room for another profile's value, of a comparison.

const OTHERS = 'others';
const CATEGORIES_MAX = 24;

function isOnCpu(sample) {
  return sample.state === 'running';
}

// choice: {thread, state, module}, '' for all; thread is 'name' or 'name/tid', state a category or
// 'on-cpu' or 'off-cpu'.
function keeps(sample, choice) {
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
function categoriesOf(samples, categoryOf) {
  const times = new Map();
  for (const sample of samples)
    times.set(categoryOf(sample), (times.get(categoryOf(sample)) || 0) + sample.time);
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

// Takes paths in their order, so that equal beginnings follow each other and nothing is looked up.
class TreeBuilder {
  constructor(categoryCount) {
    this.categoryCount = categoryCount;
    this.shares = new Float64Array(1024 * categoryCount); // of node `number` from there on
    this.nodeCount = 0;
    this.root = this.node(-1);
    this.branch = []; // the nodes of the path added last
  }

  node(frame) {
    const number = this.nodeCount++;
    if (this.nodeCount * this.categoryCount > this.shares.length) {
      const grown = new Float64Array(2 * this.shares.length);
      grown.set(this.shares);
      this.shares = grown;
    }
    return {frame, number, time: 0, count: 0, self: 0, second: 0, children: null};
  }

  add(path, sample, category) {
    this.leaveUncommon(path);
    let node = this.root;
    this.count(node, sample, category);
    for (let i = 0; i < path.length; i++) {
      if (i === this.branch.length) {
        this.branch.push(this.node(path[i]));
        (node.children ??= []).push(this.branch[i]);
      }
      node = this.branch[i];
      this.count(node, sample, category);
    }
    node.self += sample.time;
  }

  // The branch is that of the path before, and becomes that part of it which both have.
  leaveUncommon(path) {
    let common = 0;
    while (common < path.length && common < this.branch.length &&
           this.branch[common].frame === path[common])
      common++;
    this.branch.length = common;
  }

  count(node, sample, category) {
    node.time += sample.time;
    node.count += sample.count;
    this.shares[node.number * this.categoryCount + category] += sample.time;
  }

  // The widest child first; without recursion, as stacks may be deep.
  finish() {
    const n = this.nodeCount, c = this.categoryCount;
    const tree = {
      length: n, categoryCount: c, height: 0,
      frame: new Int32Array(n), parent: new Int32Array(n), depth: new Int32Array(n),
      end: new Int32Array(n), start: new Float64Array(n), time: new Float64Array(n),
      count: new Float64Array(n), self: new Float64Array(n), second: new Float64Array(n),
      shares: new Float64Array(n * c), top: new Uint8Array(n),
    };
    const stack = [{node: this.root, parent: -1, depth: 0, start: 0}];
    for (let i = 0; stack.length; i++) {
      const {node, parent, depth, start} = stack.pop();
      tree.frame[i] = node.frame;
      tree.parent[i] = parent;
      tree.depth[i] = depth;
      tree.start[i] = start;
      tree.time[i] = node.time;
      tree.count[i] = node.count;
      tree.self[i] = node.self;
      tree.second[i] = node.second;
      const shares = this.shares.subarray(node.number * c, (node.number + 1) * c);
      tree.shares.set(shares, i * c);
      tree.top[i] = shares.reduce((top, time, j) => time > shares[top] ? j : top, 0);
      tree.height = Math.max(tree.height, depth + 1);
      if (!node.children)
        continue;
      const children = node.children.sort((a, b) => b.time - a.time || a.frame - b.frame);
      let at = start;
      const placed = children.map(child => {
        at += child.time;
        return {node: child, parent: i, depth: depth + 1, start: at - child.time};
      });
      while (placed.length)
        stack.push(placed.pop());
    }
    for (let i = n - 1; i >= 0; i--) {
      tree.end[i] = Math.max(tree.end[i], i + 1);
      if (i)
        tree.end[tree.parent[i]] = Math.max(tree.end[tree.parent[i]], tree.end[i]);
    }
    return tree;
  }
}

// Each function's own time and that of all it calls; one that calls itself counts once a sample.
class FunctionList {
  constructor() {
    this.rows = new Map();
    this.round = 0; // the sample that is added
  }

  add(path, sample) {
    this.round++;
    let row;
    for (const frame of path) {
      row = this.row(frame);
      if (row.round === this.round)
        continue;
      row.round = this.round;
      row.total += sample.time;
      row.count += sample.count;
    }
    if (row)
      row.self += sample.time;
  }

  row(frame) {
    let row = this.rows.get(frame);
    if (!row)
      this.rows.set(frame, row = {frame, self: 0, total: 0, count: 0, round: 0});
    return row;
  }
}

// What the page shows for a choice {thread, state, module, lines, isInverted, pivot, colour}.
function aggregate(profile, choice) {
  const table = profile.frameTable(choice.lines);
  const categoryOf = choice.colour === 'thread' ? sample => sample.threadName
                                                : sample => sample.category;
  const categories = categoriesOf(profile.samples, categoryOf);
  const numbers = new Map(categories.map((name, i) => [name, i]));
  const builder = new TreeBuilder(Math.max(categories.length, 1));
  const functions = new FunctionList();
  const threads = new Set(), counted = [];
  for (const sample of profile.samples) {
    if (!keeps(sample, choice))
      continue;
    const path = profile.frames(sample.stack, table);
    if (choice.module && !path.some(frame => table.frames[frame].module === choice.module))
      continue;
    const shown = pathOf(path, choice.pivot, choice.isInverted);
    functions.add(path, sample);
    if (!shown)
      continue;
    threads.add(sample.tid || sample.threadName); // one may change its name
    const category = numbers.get(categoryOf(sample));
    counted.push({path: shown, sample,
                  category: category === undefined ? categories.length - 1 : category});
  }
  for (const {path, sample, category} of counted.sort(comparePaths))
    builder.add(path, sample, category);
  const tree = builder.finish();
  return {tree, categories, threads: threads.size, frames: table.frames,
          functions: [...functions.rows.values()]};
}
