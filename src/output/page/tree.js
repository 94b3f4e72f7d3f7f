// The tree is rows of arrays, the nodes in the order of a walk from the root (0): what lies over
// node i are the nodes up to end[i]. So drawing skips all of a narrow node at once.
//
//   frame, parent, depth, end   -1 for the root's frame and parent
//   time, count, self           of all samples that pass through it; of those that end in it
//   before, countBefore, selfBefore   the same of the other recording, where two are compared
//   width, start                what is shown: time or before; and where it begins
//   childrenEnd                 where its children end
//   shares, top                 `width` by category, categoryCount a node; the largest one

// Takes paths in their order, so that equal beginnings follow each other and nothing is looked up.
class TreeBuilder {
  // side: 'time' or 'before', which is shown.
  constructor(categoryCount, side) {
    this.categoryCount = categoryCount;
    this.side = side;
    this.shares = new Float64Array(1024 * categoryCount); // of node `number` from there on
    this.nodeCount = 0;
    this.height = 1;
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
    return {frame, number, time: 0, count: 0, self: 0, before: 0, countBefore: 0, selfBefore: 0,
            children: null, parent: -1, depth: 0, start: 0};
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
    node.selfBefore += sample.before;
    this.height = Math.max(this.height, path.length + 1);
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
    node.before += sample.before;
    node.countBefore += sample.countBefore;
    this.shares[node.number * this.categoryCount + category] += sample[this.side];
  }

  finish() {
    const n = this.nodeCount, side = this.side;
    const tree = {length: n, categoryCount: this.categoryCount, height: this.height,
                  shares: new Float64Array(n * this.categoryCount), top: new Uint8Array(n)};
    for (const name of ['frame', 'parent', 'depth', 'end'])
      tree[name] = new Int32Array(n);
    for (const name of ['time', 'count', 'self', 'before', 'countBefore', 'selfBefore', 'start',
                        'childrenEnd'])
      tree[name] = new Float64Array(n);
    tree.width = tree[side];
    const stack = [this.root]; // no recursion: stacks may be deep
    for (let i = 0; stack.length; i++) {
      const node = stack.pop();
      this.fill(tree, i, node);
      tree.childrenEnd[i] = node.start;
      if (!node.children)
        continue;
      // The widest child first.
      node.children.sort((a, b) => b[side] - a[side] || a.frame - b.frame);
      for (const child of node.children) {
        child.parent = i;
        child.depth = node.depth + 1;
        child.start = tree.childrenEnd[i];
        tree.childrenEnd[i] += child[side];
      }
      for (let j = node.children.length - 1; j >= 0; j--)
        stack.push(node.children[j]);
    }
    for (let i = n - 1; i >= 0; i--) {
      tree.end[i] = Math.max(tree.end[i], i + 1);
      if (i)
        tree.end[tree.parent[i]] = Math.max(tree.end[tree.parent[i]], tree.end[i]);
    }
    return tree;
  }

  fill(tree, i, node) {
    tree.frame[i] = node.frame;
    tree.parent[i] = node.parent;
    tree.depth[i] = node.depth;
    tree.start[i] = node.start;
    tree.time[i] = node.time;
    tree.count[i] = node.count;
    tree.self[i] = node.self;
    tree.before[i] = node.before;
    tree.countBefore[i] = node.countBefore;
    tree.selfBefore[i] = node.selfBefore;
    let top = 0;
    const from = node.number * this.categoryCount, to = i * this.categoryCount;
    for (let j = 0; j < this.categoryCount; j++) {
      tree.shares[to + j] = this.shares[from + j];
      top = this.shares[from + j] > this.shares[from + top] ? j : top;
    }
    tree.top[i] = top;
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
      row.totalBefore += sample.before;
    }
    if (row) {
      row.self += sample.time;
      row.selfBefore += sample.before;
    }
  }

  row(frame) {
    let row = this.rows.get(frame);
    if (!row)
      this.rows.set(frame, row = {frame, self: 0, total: 0, selfBefore: 0, totalBefore: 0,
                                  round: 0});
    return row;
  }
}
