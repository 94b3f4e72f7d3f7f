// The line around the frame under the mouse, or the one selected by keys. It is an element over the
// canvas, so that moving it redraws nothing.

class Mark {
  constructor(box) {
    this.box = box;
  }

  hide() {
    this.box.hidden = true;
  }

  // In pixels from the upper left of all rows.
  show(x, y, width, height) {
    this.box.hidden = false;
    this.box.style.transform = `translate(${x}px, ${y}px)`;
    this.box.style.width = `${Math.max(width - 1, 2)}px`;
    this.box.style.height = `${height}px`;
  }
}
