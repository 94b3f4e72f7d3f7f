// What is seen of the tree at a zoom, as rectangles in rows by their depth. It is made when the
// zoom or the width changes; drawing, and looking for what is under the mouse, only read it. So
// their work is bounded by the screen and not by the profile.

const NARROWEST = 0.5; // pixels

// A node that is narrower than that stands for all of its siblings that follow: as the widest child
// comes first, they are narrow, too. One rectangle has them all, with nothing on it.
class Layout {
  constructor(tree, zoomed, width) {
    this.tree = tree;
    this.zoomed = zoomed;
    this.scale = width / (tree.width[zoomed] || 1);
    const nodes = this.wideNodes();
    this.node = new Int32Array(nodes.length);
    this.x = new Float64Array(nodes.length);
    this.w = new Float64Array(nodes.length);
    this.row = new Int32Array(tree.height + 1); // of depth d are rectangles row[d] to row[d + 1]
    for (const node of nodes)
      this.row[tree.depth[node] + 1]++;
    for (let depth = 0; depth < tree.height; depth++)
      this.row[depth + 1] += this.row[depth];
    const next = this.row.slice();
    for (const node of nodes) { // from left to right, in each row
      const at = next[tree.depth[node]]++;
      this.node[at] = node;
      this.x[at] = this.xOf(node);
      this.w[at] = this.isBlock(node) ? this.blockEnd(node) - this.x[at] : this.widthOf(node);
    }
  }

  wideNodes() {
    const {tree, zoomed} = this, nodes = [], end = tree.end[zoomed];
    for (let i = tree.parent[zoomed]; i >= 0; i = tree.parent[i])
      nodes.push(i);
    for (let i = zoomed; i < end;) {
      nodes.push(i);
      i = this.isBlock(i) ? tree.end[tree.parent[i]] : i + 1;
    }
    return nodes;
  }

  isBlock(node) {
    return node > this.zoomed && this.tree.width[node] * this.scale < NARROWEST;
  }

  blockEnd(node) {
    const {tree} = this;
    return (tree.childrenEnd[tree.parent[node]] - tree.start[this.zoomed]) * this.scale;
  }

  // The zoomed node, and those between it and the root, are as wide as the graph.
  xOf(node) {
    const {tree, zoomed} = this;
    return node <= zoomed ? 0 : (tree.start[node] - tree.start[zoomed]) * this.scale;
  }

  widthOf(node) {
    const {tree, zoomed} = this;
    return tree.width[Math.max(node, zoomed)] * this.scale;
  }

  isSeen(node) {
    const {tree, zoomed} = this;
    return node < zoomed ? zoomed < tree.end[node] : node < tree.end[zoomed];
  }

  // The node at a place, -1: none.
  at(x, depth) {
    if (depth < 0 || depth >= this.tree.height)
      return -1;
    let low = this.row[depth], high = this.row[depth + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.x[middle] <= x)
        low = middle + 1;
      else
        high = middle;
    }
    const found = low - 1;
    if (found < this.row[depth] || x >= this.x[found] + this.w[found])
      return -1;
    return this.isBlock(this.node[found]) ? this.inBlock(this.node[found], x) : this.node[found];
  }

  inBlock(first, x) {
    const {tree} = this, end = tree.end[tree.parent[first]];
    let node = first;
    while (tree.end[node] < end && this.xOf(tree.end[node]) <= x)
      node = tree.end[node];
    return node;
  }
}
