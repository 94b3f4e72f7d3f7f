// The graph on a canvas that is as large as what is seen of it. Only frames of half a pixel and
// more are drawn, and of a narrower one nothing that stands on it: the work is bounded by the
// screen and not by the profile.

const ROW = 18, CHARACTER_PADDING = 4, NARROWEST = 0.5, NARROWEST_TEXT = 24;
const FONT = '11.5px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';

class Graph {
  constructor(element) {
    this.element = element;
    this.canvas = element.querySelector('canvas');
    this.spacer = element.querySelector('#spacer');
    this.context = this.canvas.getContext('2d');
    this.isIcicle = false;
    this.zoomed = 0;
    this.selected = -1;
    this.matches = null; // by frame, or null: nothing is searched
    this.isPending = false;
    element.addEventListener('scroll', () => this.schedule());
    new ResizeObserver(() => this.resize()).observe(element);
  }

  // {tree, frames, hueOf(node)}; palette.
  show(model, palette) {
    this.model = model;
    this.palette = palette;
    this.zoomed = 0;
    this.selected = -1;
    this.resize(true);
  }

  resize(toRoot) {
    if (!this.model)
      return;
    const height = this.model.tree.height * ROW;
    const fromEnd = this.element.scrollHeight - this.element.scrollTop;
    this.element.style.height = `${height + 2}px`; // the style's max-height cuts it
    this.width = this.element.clientWidth;
    this.height = Math.min(height, this.element.clientHeight);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.font = FONT;
    this.characterWidth = this.context.measureText('m').width;
    this.spacer.style.height = `${Math.max(0, height - this.height)}px`;
    if (toRoot === true)
      this.element.scrollTop = this.isIcicle ? 0 : height;
    else if (!this.isIcicle) // a flame graph stands on its roots
      this.element.scrollTop = this.element.scrollHeight - fromEnd;
    this.draw();
  }

  schedule() {
    if (this.isPending)
      return;
    this.isPending = true;
    requestAnimationFrame(() => {
      this.isPending = false;
      this.draw();
    });
  }

  // Whether `node` is the zoomed one or between it and the root: such are as wide as the graph.
  holdsZoomed(node) {
    return node <= this.zoomed && this.zoomed < this.model.tree.end[node];
  }

  x(node) {
    const {tree} = this.model;
    return this.holdsZoomed(node) ? 0 : (tree.start[node] - tree.start[this.zoomed]) * this.scale();
  }

  nodeWidth(node) {
    return this.holdsZoomed(node) ? this.width : this.model.tree.time[node] * this.scale();
  }

  scale() {
    return this.width / (this.model.tree.time[this.zoomed] || 1);
  }

  y(depth) {
    const top = this.isIcicle ? depth * ROW : (this.model.tree.height - 1 - depth) * ROW;
    return top - this.element.scrollTop;
  }

  draw() {
    if (!this.model)
      return;
    const {tree} = this.model, {context, width, height} = this;
    const scale = this.scale(), lastPixel = new Int32Array(tree.height).fill(-1);
    const zoomedEnd = tree.end[this.zoomed];
    context.fillStyle = this.palette.ground;
    context.fillRect(0, 0, width, height);
    for (let i = 0; i < zoomedEnd;) {
      const isWide = this.holdsZoomed(i);
      if (!isWide && i < this.zoomed) {
        i = tree.end[i];
        continue;
      }
      const x = isWide ? 0 : (tree.start[i] - tree.start[this.zoomed]) * scale;
      const w = isWide ? width : tree.time[i] * scale;
      const y = this.y(tree.depth[i]);
      const isNarrow = w < NARROWEST;
      if (y > -ROW && y < height && !(isNarrow && lastPixel[tree.depth[i]] === Math.floor(x))) {
        this.drawNode(i, x, y, w);
        lastPixel[tree.depth[i]] = Math.floor(x);
      }
      i = isNarrow ? tree.end[i] : i + 1;
    }
    if (this.selected >= 0)
      this.outline(this.selected);
  }

  drawNode(node, x, y, w) {
    const {context, palette} = this;
    const frame = this.model.tree.frame[node];
    const isFound = this.matches && frame >= 0 && this.matches[frame];
    context.globalAlpha = this.matches && !isFound ? 0.45 : 1;
    context.fillStyle = isFound ? palette.found : this.model.colourOf(node, palette);
    context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.5), ROW - 1);
    if (w >= NARROWEST_TEXT) {
      context.fillStyle = isFound ? palette.foundText : palette.text;
      this.drawText(this.model.labelOf(node), x + CHARACTER_PADDING, y + ROW - 5.5,
                    Math.min(w, this.width - x) - 2 * CHARACTER_PADDING);
    }
    context.globalAlpha = 1;
  }

  drawText(text, x, y, room) {
    const count = Math.floor(room / this.characterWidth);
    if (count < 2)
      return;
    const cut = text.length > count ? text.slice(0, count - 1) + '…' : text;
    // Characters of other scripts may be wider than the font's own.
    this.context.fillText(cut, x, y, room);
  }

  outline(node) {
    const y = this.y(this.model.tree.depth[node]), {context} = this;
    context.strokeStyle = this.palette.accent;
    context.lineWidth = 2;
    context.strokeRect(this.x(node) + 1, y + 1, Math.max(this.nodeWidth(node) - 3, 2), ROW - 3);
  }

  // The node at a place of the window, -1: none.
  at(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    const px = clientX - box.left, row = Math.floor((clientY - box.top + this.element.scrollTop) / ROW);
    const {tree} = this.model;
    const depth = this.isIcicle ? row : tree.height - 1 - row;
    if (px < 0 || px >= this.width || depth < 0 || clientY < box.top || clientY >= box.bottom)
      return -1;
    for (let i = 0; i < tree.length;) {
      const x = this.x(i);
      const isOver = this.holdsZoomed(i) ||
        (i > this.zoomed && i < tree.end[this.zoomed] && px >= x && px < x + this.nodeWidth(i));
      if (isOver && tree.depth[i] === depth)
        return i;
      i = isOver ? i + 1 : tree.end[i];
    }
    return -1;
  }

  zoom(node) {
    this.zoomed = node;
    this.select(-1);
  }

  // Brings the node into sight, too.
  select(node) {
    this.selected = node;
    if (node >= 0) {
      const y = this.y(this.model.tree.depth[node]);
      if (y < 0)
        this.element.scrollTop += y;
      else if (y + ROW > this.height)
        this.element.scrollTop += y + ROW - this.height;
    }
    this.draw();
  }

  // Where the node is, in the window.
  place(node) {
    const box = this.canvas.getBoundingClientRect();
    return {x: box.left + Math.max(this.x(node), 0),
            y: box.top + this.y(this.model.tree.depth[node]) + ROW};
  }
}
