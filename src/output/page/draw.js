// The graph on a canvas that is as large as the visible part.

const ROW = 18, CHARACTER_PADDING = 4, NARROWEST_TEXT = 24;
const OTHERS_ALPHA = 0.4; // of frames that a search does not find
const FONT = '11.5px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';

class Graph {
  constructor(element) {
    this.element = element;
    this.canvas = element.querySelector('canvas');
    this.rows = element.querySelector('#rows'); // as high as all rows; the canvas stays in sight
    this.mark = new Mark(element.querySelector('#mark'));
    this.context = this.canvas.getContext('2d');
    this.isIcicle = false;
    this.zoomed = 0;
    this.selected = -1;
    this.hovered = -1; // under the mouse
    this.found = null;
    this.top = 0; // of the visible part; asking the browser in each frame may cause layouts
    this.isPending = false;
    element.addEventListener('scroll', () => this.schedule());
    new ResizeObserver(() => this.resize()).observe(element);
  }

  // model: {tree, labelOf(node), colourOf(node, palette)}; found: the matches of a search, null
  // without a search. The zoom stays if the nodes are the same ones and it still shows something.
  show(model, palette, found) {
    const {shape, width} = model.tree;
    if (!this.model || this.model.tree.shape !== shape || !width[this.zoomed])
      this.zoomed = 0;
    Object.assign(this, {model, palette, found});
    this.selected = this.hovered = -1;
    this.resize(this.zoomed === 0);
  }

  resize(toRoot) {
    if (!this.model)
      return;
    const height = this.model.tree.height * ROW;
    const fromEnd = this.element.scrollHeight - this.element.scrollTop;
    this.rows.style.height = `${height}px`;
    this.width = this.element.clientWidth;
    this.height = Math.min(height, this.element.clientHeight);
    this.sizeCanvas(window.devicePixelRatio || 1);
    if (toRoot === true)
      this.element.scrollTop = this.isIcicle ? 0 : height;
    else if (!this.isIcicle) // a flame graph stands on its roots
      this.element.scrollTop = this.element.scrollHeight - fromEnd;
    this.top = this.element.scrollTop;
    this.layOut();
  }

  // Setting a canvas's size clears it, even if the size is unchanged.
  sizeCanvas(ratio) {
    const {canvas, context} = this;
    const width = Math.round(this.width * ratio), height = Math.round(this.height * ratio);
    if (canvas.width === width && canvas.height === height)
      return;
    canvas.style.height = `${this.height}px`;
    canvas.width = width;
    canvas.height = height;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    this.characterWidth = context.measureText('m').width;
  }

  layOut() {
    this.layout = new Layout(this.model.tree, this.zoomed, this.width);
    this.draw();
    this.showMark(this.selected);
  }

  schedule() {
    if (this.isPending)
      return;
    this.isPending = true;
    requestAnimationFrame(() => {
      this.isPending = false;
      this.top = this.element.scrollTop;
      this.draw();
    });
  }

  // Measured from the top of all rows.
  rowTop(depth) {
    return (this.isIcicle ? depth : this.model.tree.height - 1 - depth) * ROW;
  }

  draw() {
    if (!this.layout)
      return;
    const {context, width, height, layout} = this;
    context.fillStyle = this.palette.ground;
    context.fillRect(0, 0, width, height);
    context.globalAlpha = this.found ? OTHERS_ALPHA : 1;
    for (let depth = 0; depth < this.model.tree.height; depth++) {
      const y = this.rowTop(depth) - this.top;
      if (y <= -ROW || y >= height)
        continue;
      for (const box of layout.row(depth)) {
        this.drawBox(box, y);
        if (this.found && box.isBlock)
          this.drawFoundIn(box, y);
      }
    }
    context.globalAlpha = 1;
  }

  drawBox({node, x, w, isBlock}, y) {
    const {context, palette, found} = this, alpha = context.globalAlpha;
    const isFound = found !== null && found.isFound(node) && !isBlock;
    if (isFound)
      context.globalAlpha = 1;
    context.fillStyle = isFound ? palette.found : this.model.colourOf(node, palette);
    context.fillRect(x, y, w > 3 ? w - 1 : Math.max(w, 0.5), ROW - 1);
    if (w >= NARROWEST_TEXT && !isBlock) {
      context.globalAlpha = 1; // only the frame under the text is pale
      context.fillStyle = isFound ? palette.foundText : found ? palette.otherText : palette.text;
      this.drawText(this.model.labelOf(node), x + CHARACTER_PADDING, y + ROW - 5.5,
                    Math.min(w, this.width - x) - 2 * CHARACTER_PADDING);
    }
    context.globalAlpha = alpha;
  }

  // Draws a line for each narrow frame that matches the search, or has a match on top of it; at
  // most one line per pixel.
  drawFoundIn(block, y) {
    const {tree} = this.model, {context, found} = this, parent = tree.parent[block.node];
    let last = -1;
    if (!found.has(parent + 1, tree.end[parent]))
      return;
    context.globalAlpha = 1;
    context.fillStyle = this.palette.found;
    this.layout.inBlock(block, (node, left) => {
      const x = Math.floor(left);
      if (x !== last && found.has(node, tree.end[node]))
        context.fillRect(last = x, y, 1, ROW - 1);
    });
    context.globalAlpha = OTHERS_ALPHA;
  }

  drawText(text, x, y, room) {
    const count = Math.floor(room / this.characterWidth);
    if (count < 2)
      return;
    const cut = text.length > count ? text.slice(0, count - 1) + '…' : text;
    // Characters of other scripts may be wider than the font's own.
    this.context.fillText(cut, x, y, room);
  }

  // The node at a place in the window; -1: none.
  at(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    if (!this.layout || clientY < box.top || clientY >= box.bottom || clientX < box.left)
      return -1;
    const row = Math.floor((clientY - box.top + this.element.scrollTop) / ROW);
    return this.layout.at(clientX - box.left,
                          this.isIcicle ? row : this.model.tree.height - 1 - row);
  }

  zoom(node) {
    this.zoomed = node;
    this.selected = this.hovered = -1;
    this.layOut();
  }

  // Selects the node and brings it into sight.
  select(node) {
    this.selected = node;
    this.showMark(node);
    if (node < 0)
      return;
    const y = this.rowTop(this.model.tree.depth[node]) - this.element.scrollTop;
    if (y < 0)
      this.element.scrollTop += y;
    else if (y + ROW > this.height)
      this.element.scrollTop += y + ROW - this.height;
  }

  // Shows the mark around a node; -1: around none.
  showMark(node) {
    const place = node < 0 ? null : this.layout.placeOf(node);
    if (place)
      this.mark.show(place.x, this.rowTop(this.model.tree.depth[node]), place.w, ROW - 1);
    else
      this.mark.hide();
  }

  // The left end of a node's lower edge, in window coordinates.
  pointOf(node) {
    const box = this.canvas.getBoundingClientRect();
    const y = this.rowTop(this.model.tree.depth[node]) - this.element.scrollTop;
    return {x: box.left + this.layout.placeOf(node).x, y: box.top + y + ROW};
  }
}
