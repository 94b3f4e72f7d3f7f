// The visible part of the tree at a zoom, as boxes {node, x, w, isBlock} in rows by depth. It is
// rebuilt when the zoom or the width changes, and a row is made on demand. So the work is bounded
// by the screen and not by the profile.

const NARROWEST = 0.5; // pixels

// On a box are its visible children, the widest first, followed by a block: one box that stands
// for all narrow children, with one of them as its `node` and nothing on it.
class Layout {
  constructor(tree, zoomed, width) {
    this.tree = tree;
    this.scale = width / (tree.width[zoomed] || 1);
    this.rows = []; // the rows that were asked for
    // The zoomed node and all nodes between it and the root are as wide as the graph.
    for (let node = zoomed; node >= 0; node = tree.parent[node])
      this.rows[tree.depth[node]] = [{node, x: 0, w: width, isBlock: false}];
  }

  row(depth) {
    const {rows} = this;
    while (rows.length <= depth) {
      const row = [];
      for (const box of rows.at(-1)) {
        if (!box.isBlock)
          this.placeChildren(box, row);
      }
      rows.push(row);
    }
    return rows[depth] || []; // there is nothing below the root
  }

  placeChildren({node, x}, row) {
    const {scale, tree: {width, end}} = this, wide = [];
    let narrowWidth = 0, narrow = -1;
    for (let child = node + 1; child < end[node]; child = end[child]) {
      if (width[child] * scale >= NARROWEST) {
        wide.push(child);
      } else if (width[child] > 0) {
        narrowWidth += width[child];
        narrow = narrow >= 0 && width[narrow] >= width[child] ? narrow : child;
      }
    }
    for (const child of wide.sort((a, b) => width[b] - width[a] || a - b)) {
      const w = width[child] * scale;
      row.push({node: child, x, w, isBlock: false});
      x += w;
    }
    if (narrow >= 0)
      row.push({node: narrow, x, w: narrowWidth * scale, isBlock: true});
  }

  // Calls visit(node, x, w) for each node of a block, until one call returns true.
  inBlock(block, visit) {
    const {scale, tree: {width, end, parent}} = this, base = parent[block.node];
    let x = block.x;
    for (let node = base + 1; node < end[base]; node = end[node]) {
      const w = width[node] * scale;
      if (w === 0 || w >= NARROWEST)
        continue;
      if (visit(node, x, w))
        return;
      x += w;
    }
  }

  // The node at a place; -1: none.
  at(x, depth) {
    const row = this.row(depth);
    let low = 0, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row[middle].x <= x)
        low = middle + 1;
      else
        high = middle;
    }
    const box = row[low - 1];
    if (!box || x >= box.x + box.w)
      return -1;
    let found = box.node;
    if (box.isBlock) {
      this.inBlock(box, (node, left, w) => {
        found = node;
        return x < left + w;
      });
    }
    return found;
  }

  // Where a node is, {x, w}; null if it is not visible.
  placeOf(node) {
    const {tree} = this, row = this.row(tree.depth[node]);
    const own = row.find(box => box.node === node && !box.isBlock);
    const block = row.find(box => box.isBlock && tree.parent[box.node] === tree.parent[node]);
    let place = null;
    if (own || !block)
      return own || null;
    this.inBlock(block, (other, x, w) => {
      place = other === node ? {x, w} : null;
      return place;
    });
    return place;
  }

  // The children that are boxes of their own.
  childrenOf(node) {
    const {tree} = this;
    return this.row(tree.depth[node] + 1)
      .filter(box => !box.isBlock && tree.parent[box.node] === node).map(box => box.node);
  }
}
