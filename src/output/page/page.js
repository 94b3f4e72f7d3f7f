// Brings the parts together: a choice is counted, then shown.

const LIBRARY_PALE = 0.4; // of frames that are not the program's own

class Page {
  constructor(raw) {
    this.profile = new Profile(raw);
    this.graph = new Graph(byId('graph'));
    this.tip = new Tip(byId('tip'));
    this.table = new FunctionTable(byId('functions'), (frame, isInverted) =>
      this.showFunction(frame, isInverted), (column, row) => this.filterByCell(column, row));
    this.waits = new WaitTable(byId('waits'), this.profile.samples,
                               this.profile.after.raw.deadlocks || [],
                               chosen => this.showWait(chosen), name => this.searchFor(name));
    this.strip = this.profile.timeline && new Strip(byId('strip'), this.profile, this.tip,
      (times, isCompared) => this.showTimes(times, isCompared), sample => this.showThread(sample));
    this.choices = new Choices(this.profile, id => this.changed(id));
    this.theme = new Theme(byId('theme'), () => this.repaint());
    this.amounts = {
      after: ns => this.amountText(this.inUnit(ns, 'elapsed')),
      before: ns => this.amountText(this.inUnit(ns, 'elapsedBefore')),
      difference: (after, before) =>
        signed(this.inUnit(after, 'elapsed') - this.inUnit(before, 'elapsedBefore'),
               value => this.amountText(value)),
      tone: difference => toneOfDifference(difference, this.profile.after.raw.period_ns || 1),
    };
    this.threads = new ThreadTable(byId('threads'), row => this.showThread(row),
      row => this.compare(row && {...this.choices.filters(), thread: this.threadValue(row)}),
      (id, value) => id === 'search' ? this.searchFor(value) : this.choices.toggleFilter(id, value),
      row => this.showChain(row));
    if (this.profile.hasThreadTable)
      this.tabs = new Tabs(byId('tabs'), () => this.fillTabs());
    fillFooter(this.profile);
    fillFindings(this.profile.after.raw, name => this.searchFor(name));
    this.choices.apply(valuesOfFragment(location.hash));
    this.graph.isIcicle = this.choices.get('view') === 'icicle';
    if (byId('normalized').checked !== this.profile.isNormalized)
      this.profile.normalize(byId('normalized').checked);
    Object.assign(this.profile, {times: this.choices.times, compared: this.choices.compared});
    this.profile.measure(this.unit());
    if (!this.profile.before) {
      byId('subject').textContent = subjectText(this.profile);
      document.title = `${byId('subject').textContent} \u2013 fgprof-c`;
      byId('command').textContent = byId('command').title = commandText(this.profile.after.raw);
    }
    byId('idle').hidden = !this.profile.idleThreads.length;
    byId('idle').addEventListener('click', () => this.choices.toggleIdle());
    byId('kind').textContent = this.kindText();
    byId('compare').addEventListener('click', () => this.toggleCompare());
    for (const [id, action] of [['focus', () => this.focusFrame()], ['hide', () => this.hideFrame()],
                                ['unhide', () => this.hideFrame(null)]])
      byId(id).addEventListener('click', action);
    byId('search').addEventListener('input', () => this.search());
    byId('help-button').addEventListener('click', () => this.toggleHelp());
    document.querySelector('.skip').addEventListener('click', event => {
      event.preventDefault(); // what is behind # is the view
      byId('graph').focus();
    });
    addEventListener('hashchange', () => location.reload()); // another view of the same page
    bindMouse(this);
    bindKeys(this);
    this.count();
    this.showStrip();
  }

  // Two recordings are compared, or two choices of one.
  get isDifference() {
    return this.profile.before !== null || this.choices.compared !== null;
  }

  changed(id) {
    if (id === 'normalized')
      this.profile.normalize(byId(id).checked);
    if (id === 'view') {
      this.tip.hide();
      this.graph.isIcicle = this.choices.get('view') === 'icicle';
      this.graph.resize(true);
      this.keepAddress();
    } else if (id === 'unit' && !this.profile.objects &&
               this.profile.isElapsed === (this.unit() === 'elapsed')) {
      this.graph.draw();
      this.describe();
      this.showLegend();
      this.keepAddress();
    } else {
      if (id === 'unit')
        this.profile.measure(this.unit());
      if (id === 'times' || id === 'reset' || id === 'compare') {
        this.profile.isNormalized = byId('normalized').checked;
        this.profile.select(this.choices.times, this.choices.compared);
      }
      if (id === 'waiting' && !this.choices.get(id))
        this.choices.chosen = null;
      if (id === 'reset')
        this.graph.zoomed = 0;
      this.count();
      if (id !== 'times')
        this.showStrip();
    }
  }

  // It shows all time, whatever is selected.
  showStrip() {
    this.strip?.show({kept: this.model.stripKept, thread: this.choices.get('thread')}, this.theme.palette);
  }

  // null: all. isCompared: it is compared with the time that was shown.
  showTimes(times, isCompared) {
    if (isCompared && !this.choices.compared)
      this.choices.compare(this.choices.filters());
    this.choices.times = times;
    this.choices.balance();
    this.changed('times');
  }

  // Filters, of which what is chosen becomes the other side; null: no comparison.
  compare(filters) {
    this.choices.compare(filters);
    this.changed('compare');
  }

  toggleCompare() {
    if (this.profile.hasThreadTable)
      this.compare(this.choices.compared ? null : this.choices.filters());
  }

  count() {
    this.tip.hide();
    const choice = this.choices.counted(this.profile);
    this.model = aggregate(this.profile, choice);
    this.colour = choice.colour;
    this.lines = choice.lines;
    const isOfNames = ['thread', 'process'].includes(this.colour) || labelKeyOf(this.colour);
    this.hues = (isOfNames ? huesOfNames : huesOfStates)(this.model.categories);
    this.differences = differencesOf(this.model.tree, this.colour === 'differenceSelf');
    this.modules = moduleParts(this.model);
    const hueOf = new Map(this.modules.map(({module, hue}) => [module, hue]));
    this.model.moduleHues = this.model.frames.map(frame => hueOf.get(frame.module) || GREY);
    this.model.isOwner = choice.waiting === 'blame' ? ownersOf(this.model, choice.isInverted) : null;
    this.model.labelOf = node => this.labelOf(node);
    this.model.colourOf = (node, palette) => this.colourOf(node, palette);
    this.graph.show(this.model, this.theme.palette, this.find());
    this.describe();
    this.showPath();
    this.showLegend();
    this.showIdle();
    this.showCompared();
    this.strip?.showTimes(this.choices.times, this.choices.compared && this.choices.compared.times);
    this.keepAddress();
  }

  showIdle() {
    const {hidesIdle} = this.choices;
    byId('idle').textContent = idleText(this.profile.idleThreads, hidesIdle);
    byId('idle').setAttribute('aria-pressed', String(hidesIdle));
  }

  showCompared() {
    const {compared} = this.choices;
    byId('compare').textContent = compared ? '✕ Compare' : 'Compare';
    byId('compare').setAttribute('aria-pressed', String(compared !== null));
  }

  // A blob: page or a frame's srcdoc may not change its address, and no page may too often: then
  // the address only lacks the view.
  keepAddress() {
    const fragment = fragmentOf(this.choices.changes()), [own] = location.href.split('#');
    try {
      history.replaceState(null, '', fragment ? `${own}#${fragment}` : own);
    } catch { /* see above */ }
  }

  repaint() {
    if (!this.model)
      return;
    this.graph.palette = this.theme.palette;
    this.graph.draw();
    this.showLegend();
    this.showStrip();
  }

  unit() {
    return this.choices.get('unit');
  }

  kindText() {
    const {objects, after: {raw}} = this.profile;
    if (this.profile.before)
      return `how two recordings ${objects ? `of ${objects.kind} ` : ''}differ`;
    return [objects && objects.kind, plain(raw.reason || '')].filter(Boolean).join(': ');
  }

  // A value in the unit, as text.
  amountText(value) {
    const {objects} = this.profile;
    return objects ? objects.amount(value, this.unit()) : unitAmount(value, this.unit());
  }

  // How many samples, or objects, in words; '' if the amount says it.
  countText(count) {
    const {objects} = this.profile;
    return objects ? objects.count(count, this.unit()) : samplesText(count);
  }

  // What the amounts and the counts are called.
  names() {
    const {objects} = this.profile;
    if (!objects)
      return {amount: 'time', count: 'samples'};
    const counter = objects.counter(this.unit());
    return {amount: objects.name(this.unit()), count: counter && objects.name(counter)};
  }

  inUnit(ns, elapsed) {
    const {profile} = this;
    return inUnit(ns, this.unit(), elapsed === 'elapsed' ? profile.length
                                                         : profile.elapsedBefore);
  }

  // The amount on the side that sets the widths.
  shown(ns) {
    const {before, after} = this.amounts;
    return this.choices.get('width') === 'before' ? before(ns) : after(ns);
  }

  labelOf(node) {
    const frame = this.model.tree.frame[node];
    return frame < 0 ? `all: ${this.shown(this.model.tree.width[node])}`
                     : this.model.frames[frame].label;
  }

  colourOf(node, palette) {
    const {tree, frames, moduleHues} = this.model, frame = tree.frame[node];
    if (frame < 0)
      return palette.css({hue: 60, saturation: 4}, 0.6, 1);
    if (this.colour.startsWith('difference'))
      return palette.difference(this.differences.of(node) / Math.max(this.differences.largest, 1));
    if (this.colour === 'module')
      return palette.css(moduleHues[frame], frames[frame].shade, 1);
    if (this.model.isOwner && this.model.isOwner[node])
      return palette.css(OWNER_HUE, frames[frame].shade, 1);
    if (frames[frame].flags & FLAG_START)
      return palette.css(GREY, frames[frame].shade, 0.5);
    const isLibrary = frames[frame].flags & (FLAG_LIBRARY | FLAG_KERNEL);
    const top = tree.top(node), share = tree.share(node, top) / (tree.width[node] || 1);
    return palette.css(this.hues[top], frames[frame].shade, isLibrary ? share * LIBRARY_PALE : share);
  }

  // Updates all texts that depend on the unit, the filter or the zoom.
  describe(isTyped = false) {
    const {tree} = this.model, {amounts} = this;
    byId('total').textContent = this.isDifference
      ? `${amounts.before(tree.before[0])} before, ${amounts.after(tree.time[0])} after: ` +
        amounts.difference(tree.time[0], tree.before[0])
      : [amounts.after(tree.time[0]), this.countText(tree.count[0])].filter(Boolean).join(', ');
    byId('unit-text').textContent = this.isDifference ? this.differenceText() : this.unitText();
    byId('width-name').textContent = this.names().amount;
    this.fillTables(isTyped);
  }

  // The tables show what the graph is zoomed to. isLate: that may come a moment later.
  fillTables(isLate) {
    clearTimeout(this.timer);
    this.table.show(this.model, this.graph.zoomed, this.amounts, this.matches, this.unit(), isLate, this.isDifference);
    if (isLate)
      this.timer = setTimeout(() => this.fillTabs(), PAUSE_MS);
    else
      this.fillTabs();
  }

  // The tables that are in sight.
  fillTabs() {
    if (!byId('threads').hidden)
      this.threads.show(this.model.threadRows(this.graph.zoomed), this.amounts, this.choices.get('thread'),
                        this.choices.compared ? this.choices.compared.thread : '');
    if (!byId('waits').hidden)
      this.waits.show(this.model.waitRows(this.graph.zoomed), this.profile.after, this.profile.stacks(this.lines).table,
                      this.amounts, this.choices.chosen, this.chains());
  }

  // null: there is no order of time.
  chains() {
    const {timeline, times} = this.profile, {table} = this.profile.stacks(this.lines), known = this.knownChains;
    if (timeline && !(known && known.table === table && known.times === times))
      this.knownChains = new Chains(this.profile, table);
    return this.knownChains || null;
  }

  unitText() {
    const {objects, after} = this.profile, time = this.model.tree.time[0];
    return objects ? objects.text(this.unit(), time, after.raw)
      : unitText(this.unit(), time, this.profile.length, after.elapsed, this.model.threads) +
        waitingText(this.choices.get('waiting'), this.model.unknownOwners && this.amounts.after(this.model.unknownOwners),
                    this.amounts.after(time + this.model.unknownOwners));
  }

  differenceText() {
    const {tree} = this.model, side = this.choices.get('width') === 'before' ? 'before' : 'after';
    const other = side === 'after' ? 'before' : 'after';
    const unseen = unseenTime(tree);
    const text = other === 'before' ? this.amounts.before(unseen) : this.amounts.after(unseen);
    return this.comparedText() + `Widths are the ${this.names().amount} ${side}. Red has grown, blue has shrunk. ` +
      (unseen ? `${text} is in stacks that are only ${other}: set Width to ${other} to see it. ` : '') +
      (this.profile.isNormalized ? 'Before is scaled to the same total as after. ' : '');
  }

  // Of one recording: what is compared.
  comparedText() {
    const {compared} = this.choices;
    if (!compared)
      return '';
    const [before, after] = [compared, this.choices.filters()].map(wordsOfFilters);
    return before === after ? `Before is ${before}: choose another thread, state, time or the like to compare it with. `
                            : `Before is ${before}; after is ${after}. `;
  }

  // Applies the search: what is found, or null without a search.
  find() {
    const text = byId('search').value, {tree, frames} = this.model;
    const {expression, isValid} = matcherOf(text);
    this.matches = text ? matchesOf(frames, expression) : null;
    const found = text ? new Found(tree, this.matches) : null;
    byId('search').classList.toggle('invalid', !isValid);
    const share = text ? matchedTime(tree, found) / (tree.width[0] || 1) : 0;
    byId('matched').textContent =
      text && `${percent(share)} matched${isValid ? '' : ' as text: not a regular expression'}`;
    return found;
  }

  search() {
    this.graph.found = this.find();
    this.graph.draw();
    this.describe(true);
    this.keepAddress();
  }

  searchFor(name) {
    byId('search').value = name && exactly(name);
    this.search();
    byId('graph').scrollIntoView({block: 'nearest'});
  }

  // Selects the next frame that is found and can be seen, or the one before.
  showHit(step) {
    const {graph, model: {tree}} = this, {found, layout} = graph;
    if (!found)
      return;
    const begin = graph.zoomed, end = tree.end[begin], count = end - begin;
    let node = Math.max(graph.selected, begin);
    for (let i = 0; i < count; i++) {
      node = begin + (node - begin + step + count) % count;
      if (found.isFound(node) && tree.width[node] && layout.placeOf(node))
        return this.selectNode(node);
    }
  }

  selectNode(node) {
    this.graph.select(node);
    const {x, y} = this.graph.pointOf(node);
    this.showTip(node, x, y);
    this.showFrameActions();
  }

  // The node that is selected or under the mouse, or that is zoomed to; 0: none.
  chosenNode() {
    const {selected, hovered, zoomed} = this.graph;
    return [selected, hovered, zoomed].find(node => node > 0) || 0;
  }

  // The number of its function; -1: it has none.
  chosenFunction() {
    const {tree, frames} = this.model, frame = tree.frame[this.chosenNode()];
    return frame >= 0 && !(frames[frame].flags & (FLAG_ROOT | FLAG_THREAD)) ? frame : -1;
  }

  // Shows the stacks of the function alone.
  focusFrame() {
    const frame = this.chosenFunction();
    if (frame >= 0)
      this.showFunction(frame, this.choices.get('stacks') === 'callers');
  }

  // Leaves a function out of all stacks; null: none any more.
  hideFrame(frame = this.chosenFunction()) {
    if (frame === -1)
      return;
    const name = frame === null ? '' : this.model.frames[frame].name;
    this.choices.hidden = name ? [...this.choices.hidden, name] : [];
    if (name && this.choices.pivot && this.choices.pivot.name === name)
      this.choices.pivot = null;
    this.count();
  }

  // Copies the stack.
  async copyStack() {
    const {graph, model: {tree}} = this, names = [], chosen = this.chosenNode();
    for (let node = chosen; node > 0; node = tree.parent[node])
      names.unshift(this.labelOf(node));
    if (!names.length)
      return;
    const isCopied = await copyText(names.join(';'));
    const {x, y} = graph.pointOf(chosen);
    this.tip.show([element('div', isCopied ? `Copied: ${names.length} frames` : 'The browser does not allow to copy')],
                  null, x, y);
  }

  zoom(node) {
    this.tip.hide();
    this.graph.zoom(node);
    this.showPath();
    this.fillTables(true);
  }

  // Returns whether there was anything to leave.
  zoomOut() {
    if (this.graph.zoomed > 0)
      this.zoom(this.model.tree.parent[this.graph.zoomed]);
    else if (this.choices.pivot)
      this.showFunction(-1, this.choices.get('stacks') === 'callers');
    else if (this.choices.get('waiting'))
      this.showWait(null);
    else
      return false;
    return true;
  }

  // Shows the graph of the resources under their owners, or, if no owner is known, under the threads that wait; null: of
  // all time.
  showWait(chosen) {
    this.choices.chosen = chosen;
    this.choices.set('waiting', !chosen ? '' : chosen.isOwned ? 'blame' : 'wait');
    byId('graph').scrollIntoView({block: 'nearest'});
  }

  // One whose name no other has is offered by its name.
  threadValue({thread, threadName}) {
    return this.choices.has('thread', thread) ? thread : threadName;
  }

  // A name in the table of functions: its place in the graph, or its module alone.
  filterByCell(column, row) {
    const {name, module} = this.model.frames[row.frame];
    if (column === 'module')
      this.choices.toggleFilter('module', module);
    else
      this.searchFor(byId('search').value === exactly(name) ? '' : name);
  }

  // Filters by the thread; null: by none.
  showThread(row) {
    this.choices.set('thread', row ? this.threadValue(row) : '');
    byId('graph').scrollIntoView({block: 'nearest'});
  }

  // Opens what the thread waits for, and filters by the thread; if that is an owner, others wait.
  showChain(row) {
    const isOwner = this.choices.get('waiting') === 'blame';
    this.waits.open(row.wait.resource);
    this.choices.chosen = null;
    byId('waiting').value = '';
    this.choices.set('thread', isOwner ? '' : this.threadValue(row));
    this.tabs.select(byId('waits-tab'));
  }

  // What the graph shows of all waits.
  waitTitle() {
    const {chosen} = this.choices, isBlame = this.choices.get('waiting') === 'blame';
    const what = (chosen ? chosen.title : 'all that threads waited for') +
      (chosen && chosen.owner ? ` in the hands of ${chosen.owner}` : '');
    return `${isBlame ? 'owners of' : 'waiters for'} ${what}`;
  }

  // Shows the graph of one function alone; -1: of all.
  showFunction(frame, isInverted) {
    this.choices.pivot = frame < 0 ? null : this.model.frames[frame];
    byId('stacks').value = frame >= 0 && isInverted ? 'callers' : 'callees';
    this.graph.zoomed = 0;
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
    if (this.choices.get('waiting')) {
      const button = element('button', '✕ all time');
      button.addEventListener('click', () => this.showWait(null));
      if (!this.choices.pivot)
        buttons[0].textContent = this.waitTitle();
      buttons.unshift(button);
    }
    byId('path').replaceChildren(...buttons);
    this.showFrameActions();
    if (buttons.length > 2) // reading this causes a layout
      byId('path').scrollLeft = byId('path').scrollWidth;
  }

  showFrameActions() {
    const {hidden} = this.choices;
    const isOnFunction = this.chosenFunction() >= 0;
    byId('focus').hidden = byId('hide').hidden = !isOnFunction;
    byId('unhide').hidden = !hidden.length;
    byId('unhide').textContent = `✕ ${whole(hidden.length)} hidden`;
    byId('unhide').title = `Show again: ${hidden.join(', ')}`;
  }

  // What the legend's names filter by.
  legendFilter() {
    const key = labelKeyOf(this.colour), id = key ? 'label' : this.colour, {choices} = this;
    const option = value => key ? `${key}=${value}` : value;
    const chosen = choices.get(id);
    return {
      has: value => Boolean(value) && choices.has(id, option(value)),
      chosen: key && chosen.startsWith(`${key}=`) ? chosen.slice(key.length + 1) : chosen,
      onFilter: value => choices.toggleFilter(id, value && option(value)),
    };
  }

  showLegend() {
    const {tree, totals} = this.model, {palette} = this.theme;
    const isByModule = this.colour === 'module';
    const parts = isByModule ? this.modules : categoryParts(this.model, this.hues);
    const total = isByModule ? totals[this.choices.get('width')] : tree.width[0];
    const nameOf = item => item.querySelector('b')?.textContent;
    const focused = byId('legend').contains(document.activeElement) ? nameOf(document.activeElement) : null;
    byId('legend').replaceChildren(...this.colour.startsWith('difference')
      ? [scaleLegend(this.differences.largest, palette, ns => this.shown(ns))]
      : [...legendItems(parts, total, palette, this.legendFilter()),
         ...this.model.isOwner && !isByModule ? [legendItem('owners', palette.solid(OWNER_HUE), null, null)] : []]);
    if (focused !== null)
      [...byId('legend').children].find(item => nameOf(item) === focused)?.focus({preventScroll: true});
  }

  showTip(node, x, y) {
    const {tree, frames, categories} = this.model, width = tree.width[node];
    const frame = tree.frame[node] < 0 ? null : frames[tree.frame[node]];
    const shares = categories.map((name, i) => (
      {name, time: tree.share(node, i), colour: this.theme.palette.solid(this.hues[i])}));
    const isPlain = ['module', 'difference', 'differenceSelf'].includes(this.colour);
    this.tip.show([element('div', this.labelOf(node), {class: 'name'}),
                   element('div', frame ? whereOf(frame) : '', {class: 'where'}),
                   this.isDifference ? differenceTable(tree, node, this.amounts, this.names())
                                     : element('div', this.factsOf(node).join(' · '))],
                  width && !(isPlain && this.profile.objects)
                    ? shareLines(shares, width, isPlain) : null, x, y);
  }

  factsOf(node) {
    const {tree} = this.model, time = tree.time[node], parent = tree.parent[node];
    const of = (other, text) => `${percent(time / (tree.time[other] || 1))} ${text}`;
    const facts = [this.amounts.after(time), this.countText(tree.count[node]), of(0, 'of all')];
    if (parent >= 0)
      facts.push(of(parent, 'of the parent'));
    return [...facts, `self ${this.amounts.after(tree.self[node])}`].filter(Boolean);
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
