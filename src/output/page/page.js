// Brings the parts together: a choice is counted, then shown.

class Page {
  constructor(raw) {
    this.profile = new Profile(raw);
    this.graph = new Graph(byId('graph'));
    this.tip = new Tip(byId('tip'));
    this.table = new FunctionTable(byId('functions'), (frame, isInverted) =>
      this.showFunction(frame, isInverted));
    this.choices = new Choices(this.profile, id => this.changed(id));
    this.theme = new Theme(byId('theme'), () => this.repaint());
    fillFooter(raw);
    byId('search').addEventListener('input', () => this.search(true));
    byId('help-button').addEventListener('click', () => this.toggleHelp());
    bindMouse(this);
    bindKeys(this);
    this.count();
  }

  changed(id) {
    if (id === 'view') {
      this.graph.isIcicle = this.choices.get('view') === 'icicle';
      this.graph.resize(true);
    } else if (id === 'unit') {
      this.describe();
    } else {
      this.count();
    }
  }

  count() {
    const choice = this.choices.counted(this.profile);
    this.model = aggregate(this.profile, choice);
    this.hues = this.model.categories.map(choice.colour === 'thread' ? hueOfName : hueOfState);
    this.byModule = choice.colour === 'module';
    this.model.shades = this.model.frames.map(frame => hashOf(frame.label) % 97 / 96);
    this.model.moduleHues = this.model.frames.map(frame => hueOfName(frame.module));
    this.model.labelOf = node => this.labelOf(node);
    this.model.colourOf = (node, palette) => this.colourOf(node, palette);
    this.graph.found = null;
    this.graph.show(this.model, this.theme.palette);
    this.search();
    this.showPath();
    this.showLegend();
  }

  repaint() {
    if (!this.model)
      return;
    this.graph.palette = this.theme.palette;
    this.graph.draw();
    this.showLegend();
  }

  labelOf(node) {
    const frame = this.model.tree.frame[node];
    return frame < 0 ? `all: ${this.amount(this.model.tree.time[node])}`
                     : this.model.frames[frame].label;
  }

  colourOf(node, palette) {
    const {tree, moduleHues, shades} = this.model, frame = tree.frame[node];
    if (frame < 0)
      return palette.css({hue: 60, saturation: 4}, 0.6, 1);
    if (this.byModule)
      return palette.css(moduleHues[frame], shades[frame], 1);
    const top = tree.top[node];
    const share = tree.shares[node * tree.categoryCount + top] / (tree.time[node] || 1);
    return palette.css(this.hues[top], shades[frame], share);
  }

  amount(ns) {
    return amount(ns, this.choices.get('unit'), this.profile.elapsed);
  }

  // All texts that depend on the unit, the filter or the zoom.
  describe(isTyped = false) {
    const {tree, threads} = this.model, unit = this.choices.get('unit');
    byId('total').textContent = `${this.amount(tree.time[0])}, ${whole(tree.count[0])} samples`;
    byId('unit-text').textContent = unitText(unit, tree.time[0], this.profile.elapsed, threads);
    this.graph.draw();
    this.table.show(this.model, {total: tree.time[0], amount: ns => this.amount(ns)},
                    this.matches, isTyped);
  }

  search(isTyped = false) {
    const text = byId('search').value, {tree, frames} = this.model;
    const {expression, isValid} = matcherOf(text);
    this.matches = text ? matchesOf(frames, expression) : null;
    this.graph.found = text ? new Found(tree, this.matches) : null;
    byId('search').classList.toggle('invalid', !isValid);
    const share = text ? matchedTime(tree, this.graph.found) / (tree.time[0] || 1) : 0;
    byId('matched').textContent =
      text && `${percent(share)} matched${isValid ? '' : ' (no regular expression: as text)'}`;
    this.describe(isTyped);
  }

  zoom(node) {
    this.tip.hide();
    this.graph.zoom(node);
    this.showPath();
  }

  zoomOut() {
    if (this.graph.zoomed > 0)
      this.zoom(this.model.tree.parent[this.graph.zoomed]);
    else if (this.choices.pivot)
      this.showFunction(-1, this.choices.get('stacks') === 'callers');
  }

  // The graph of one function alone; of all for -1.
  showFunction(frame, isInverted) {
    this.choices.pivot = frame < 0 ? null : this.model.frames[frame];
    byId('stacks').value = frame >= 0 && isInverted ? 'callers' : 'callees';
    this.count();
    byId('graph').scrollIntoView({block: 'nearest'});
  }

  showPath() {
    const {tree} = this.model, buttons = [];
    for (let node = this.graph.zoomed; node >= 0; node = tree.parent[node]) {
      const button = element('button', node ? this.labelOf(node) : 'all');
      button.addEventListener('click', () => this.zoom(node));
      buttons.unshift(button);
    }
    if (this.choices.pivot) {
      const what = this.choices.get('stacks') === 'callers' ? 'callers' : 'callees';
      const button = element('button', '✕ all functions');
      button.addEventListener('click', () => this.showFunction(-1, false));
      buttons[0].textContent = `${what} of ${this.choices.pivot.label}`;
      buttons.unshift(button);
    }
    byId('path').replaceChildren(...buttons);
    byId('path').scrollLeft = byId('path').scrollWidth;
  }

  showLegend() {
    const {tree, categories} = this.model, {palette} = this.theme;
    const parts = this.byModule ? this.moduleParts() : categories.map((name, i) =>
      ({name: name || '[no name]', hue: this.hues[i], time: tree.shares[i]}));
    byId('legend').replaceChildren(...parts.filter(part => part.time > 0).slice(0, 16)
      .sort((a, b) => b.time - a.time).map(part => {
        const item = element('span'), swatch = element('i');
        swatch.style.background = palette.solid(part.hue);
        item.append(swatch, element('b', part.name),
                    element('small', percent(part.time / (tree.time[0] || 1))));
        return item;
      }));
  }

  // By the functions' own time, which adds up to all.
  moduleParts() {
    const times = new Map();
    for (const row of this.model.functions) {
      const {module} = this.model.frames[row.frame];
      times.set(module, (times.get(module) || 0) + row.self);
    }
    return [...times].sort((a, b) => b[1] - a[1])
      .map(([module, time]) => ({name: module || '[no module]', hue: hueOfName(module), time}));
  }

  showTip(node, x, y) {
    const {tree, frames, categories} = this.model, time = tree.time[node];
    const frame = tree.frame[node] < 0 ? null : frames[tree.frame[node]];
    const of = (other, text) => `${percent(time / (tree.time[other] || 1))} ${text}`;
    const parent = tree.parent[node];
    const shares = categories.map((name, i) => ({
      name, time: tree.shares[node * tree.categoryCount + i],
      colour: this.theme.palette.solid(this.hues[i])}));
    const facts = [this.amount(time), `${whole(tree.count[node])} samples`, of(0, 'of all')];
    if (parent >= 0)
      facts.push(of(parent, 'of the parent'));
    facts.push(`self ${this.amount(tree.self[node])}`);
    this.tip.show([element('div', this.labelOf(node), {class: 'name'}),
                   element('div', frame ? whereOf(frame) : '', {class: 'where'}),
                   element('div', facts.join(' · '))], shareLines(shares, time || 1), x, y);
  }

  toggleHelp() {
    const help = byId('help');
    help.hidden = !help.hidden;
    byId('help-button').setAttribute('aria-expanded', String(!help.hidden));
  }
}

performance.mark('fgprof-begin');
new Page(JSON.parse(byId('profile').textContent));
performance.measure('fgprof-render', 'fgprof-begin');
