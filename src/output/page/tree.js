// The tree is rows of arrays, the nodes in the order of a walk from the root (0): what lies over
// node i are the nodes up to end[i]. So drawing skips all of a narrow node at once.
//
//   frame, parent, depth, end   -1 for the root's frame and parent
//   time, count, self           of all samples that pass through it; of those that end in it
//   before, countBefore, selfBefore   the same of the other recording, where two are compared
//   width, start                what is shown: time or before; and where it begins
//   childrenEnd                 where its children end
//   shares, top                 `width` by category, categoryCount a node; the largest one

const WHOLE_COLUMNS = ['frame', 'parent', 'depth', 'end'];
const TIME_COLUMNS = ['time', 'count', 'self', 'before', 'countBefore', 'selfBefore', 'start',
                      'childrenEnd'];
const COLUMNS = [...WHOLE_COLUMNS, ...TIME_COLUMNS];

function grown(column) {
  const made = new column.constructor(2 * column.length);
  made.set(column);
  return made;
}

// The rows of `size` values in another order: row order[i] becomes the i-th.
function permuted(column, order, size = 1) {
  const made = new column.constructor(order.length * size);
  for (let i = 0, to = 0; i < order.length; i++) {
    for (let j = 0, from = order[i] * size; j < size; j++)
      made[to++] = column[from++];
  }
  return made;
}

// Takes paths in their order, so that equal beginnings follow each other and nothing is looked up.
class TreeBuilder {
  // side: 'time' or 'before', which is shown.
  constructor(categoryCount, side) {
    this.categoryCount = categoryCount;
    this.side = side;
    this.length = 0;
    this.capacity = 1024;
    this.nodes = {shares: new Float64Array(this.capacity * categoryCount)};
    for (const name of WHOLE_COLUMNS)
      this.nodes[name] = new Int32Array(this.capacity);
    for (const name of TIME_COLUMNS)
      this.nodes[name] = new Float64Array(this.capacity);
    this.branch = [this.add(-1, -1, 0)]; // the nodes of the path added last, the root first
    this.branchDepth = 0;
  }

  add(frame, parent, depth) {
    const node = this.length++;
    if (this.length > this.capacity) {
      this.capacity *= 2;
      for (const name of [...COLUMNS, 'shares'])
        this.nodes[name] = grown(this.nodes[name]);
    }
    this.nodes.frame[node] = frame;
    this.nodes.parent[node] = parent;
    this.nodes.depth[node] = depth;
    return node;
  }

  addPath(path, sample, category) {
    const {branch} = this, depth = path.length;
    let common = 0; // how many frames are those of the path before
    while (common < depth && common < this.branchDepth &&
           this.nodes.frame[branch[common + 1]] === path[common])
      common++;
    for (let i = common; i < depth; i++)
      branch[i + 1] = this.add(path[i], branch[i], i + 1);
    this.branchDepth = depth;
    const {time, count, before, countBefore, shares, self, selfBefore} = this.nodes;
    const width = sample[this.side];
    for (let i = 0; i <= depth; i++) {
      const node = branch[i];
      time[node] += sample.time;
      count[node] += sample.count;
      before[node] += sample.before;
      countBefore[node] += sample.countBefore;
      shares[node * this.categoryCount + category] += width;
    }
    self[branch[depth]] += sample.time;
    selfBefore[branch[depth]] += sample.before;
  }

  finish() {
    const order = this.placed(), length = order.length, number = new Int32Array(length);
    const tree = {length, categoryCount: this.categoryCount};
    for (const name of COLUMNS)
      tree[name] = permuted(this.nodes[name], order);
    tree.shares = permuted(this.nodes.shares, order, this.categoryCount);
    tree.width = tree[this.side];
    for (let i = 0; i < length; i++)
      number[order[i]] = i;
    const {parent, end, depth} = tree;
    tree.height = 1;
    for (let i = length - 1; i > 0; i--) {
      parent[i] = number[parent[i]];
      end[i] = Math.max(end[i], i + 1);
      end[parent[i]] = Math.max(end[parent[i]], end[i]);
      tree.height = Math.max(tree.height, depth[i] + 1);
    }
    end[0] = length;
    tree.top = this.tops(tree.shares);
    return tree;
  }

  // The nodes in the order of a walk that takes the widest child first. Sets where they begin.
  placed() {
    const {parent, frame, start, childrenEnd} = this.nodes, width = this.nodes[this.side];
    const firstChild = new Int32Array(this.length), next = new Int32Array(this.length); // 0: none
    for (let node = this.length - 1; node > 0; node--) {
      next[node] = firstChild[parent[node]];
      firstChild[parent[node]] = node;
    }
    const order = new Int32Array(this.length), stack = [0]; // no recursion: stacks may be deep
    for (let i = 0; stack.length; i++) {
      const node = order[i] = stack.pop(), first = stack.length;
      let at = start[node], isSorted = true;
      for (let child = firstChild[node]; child; child = next[child]) {
        isSorted = isSorted && (stack.length === first || width[stack.at(-1)] >= width[child]);
        stack.push(child);
      }
      if (!isSorted) {
        const children = stack.splice(first);
        for (const child of children.sort((a, b) => width[b] - width[a] || frame[a] - frame[b]))
          stack.push(child);
      }
      for (let j = first; j < stack.length; j++) {
        start[stack[j]] = at;
        at += width[stack[j]];
      }
      childrenEnd[node] = at;
      for (let low = first, high = stack.length - 1; low < high; low++, high--)
        [stack[low], stack[high]] = [stack[high], stack[low]];
    }
    return order;
  }

  // The category of most width, for each node.
  tops(shares) {
    const tops = new Uint8Array(this.length), size = this.categoryCount;
    for (let node = 0; node < this.length; node++) {
      let top = 0;
      for (let j = 1; j < size; j++)
        top = shares[node * size + j] > shares[node * size + top] ? j : top;
      tops[node] = top;
    }
    return tops;
  }
}

// Each function's own time and that of all it calls; one that calls itself counts once a sample.
class FunctionList {
  constructor() {
    this.rows = []; // by frame
    this.round = 0; // the sample that is added
  }

  add(path, sample) {
    this.round++;
    let row;
    for (const frame of path) {
      row = this.rows[frame] ??=
        {frame, self: 0, total: 0, selfBefore: 0, totalBefore: 0, round: 0};
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

  all() {
    return this.rows.filter(Boolean);
  }
}
