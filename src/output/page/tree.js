// What is counted in a shape, for the samples that a filter keeps. For each node:
//
//   time, count, self                 of all samples that pass through it; of those that end in it
//   before, countBefore, selfBefore   the same of the earlier recording, if two are compared
//   width                             what is shown: time or before
//
// A node's samples are consecutive, so what is counted in it is the difference of two running sums
// over the samples: a filter costs one pass over the samples and one over the nodes.

class Tree {
  // kept: for each sample, whether a filter keeps it; side: 'time' or 'before'; categories: the
  // number of each sample's category, below categoryCount.
  constructor(shape, samples, kept, side, categories, categoryCount) {
    const {frame, parent, depth, end, first, selfEnd, last, length, order} = shape;
    Object.assign(this, {shape, frame, parent, depth, end, length});
    const amounts = key => {
      const made = new Float64Array(order.length);
      for (let i = 0; i < order.length; i++)
        made[i] = kept[order[i]] ? samples[order[i]][key] : 0;
      return made;
    };
    const time = sumsOf(amounts('time')), before = sumsOf(amounts('before'));
    this.time = between(time, first, last);
    this.self = between(time, first, selfEnd);
    this.count = between(sumsOf(amounts('count')), first, last);
    this.before = between(before, first, last);
    this.selfBefore = between(before, first, selfEnd);
    this.countBefore = between(sumsOf(amounts('countBefore')), first, last);
    this.width = this[side];
    this.height = this.heightOf();
    this.tops = new Uint8Array(length);
    const shown = amounts(side), ofSample = order.map(i => categories[i]);
    this.categorySums = Array.from({length: categoryCount}, (_, category) =>
      sumsOf(shown.map((amount, i) => ofSample[i] === category ? amount : 0)));
  }

  // Whether the filter keeps anything of the node. Samples with a short time may have no count.
  has(node) {
    return this.time[node] > 0 || this.before[node] > 0;
  }

  heightOf() {
    let height = 1;
    for (let node = 0; node < this.length; node++) {
      if (this.depth[node] >= height && this.has(node))
        height = this.depth[node] + 1;
    }
    return height;
  }

  // The part of a node's width that is in a category.
  share(node, category) {
    const {first, last} = this.shape, sums = this.categorySums[category];
    return sums[last[node]] - sums[first[node]];
  }

  // The category with most of the node. Called again and again while drawing.
  top(node) {
    if (!this.tops[node]) {
      const shares = this.categorySums.map((_, category) => this.share(node, category));
      this.tops[node] = 1 + Math.max(0, shares.indexOf(Math.max(...shares)));
    }
    return this.tops[node] - 1;
  }
}

// Element i is the sum of the amounts before the i-th.
function sumsOf(amounts) {
  const sums = new Float64Array(amounts.length + 1);
  for (let i = 0; i < amounts.length; i++)
    sums[i + 1] = sums[i] + amounts[i];
  return sums;
}

// For each node, the sum over its samples from begin[node] up to end[node].
function between(sums, begin, end) {
  const made = new Float64Array(begin.length);
  if (sums.at(-1) === 0) // no other recording
    return made;
  for (let i = 0; i < made.length; i++)
    made[i] = sums[end[i]] - sums[begin[i]];
  return made;
}
