// The functions, sortable; a search narrows them. Rows are made as the user scrolls to them; at first only about a
// screenful.

const ROWS_SHOWN = 100;
const ROWS_STEP = 20; // made at a time
const ROWS_AHEAD = '400px'; // how far below the visible part they are made
const PAUSE_MS = 120; // after a letter is typed

// {key, head, kind, value(row), text(row), tone(row), full(row)}: `kind` and `tone` are classes, and only numbers have
// a tone; a column without a key is not sortable; `full` is the whole of a text that may be cut off. `amounts` are the
// page's: {after(ns), before(ns), difference(ns, before), tone(difference)}; `totals` is the time of all samples in the
// table.
function columnsOf(frames, amounts, totals, isDifference) {
  const columns = [];
  for (const [key, name] of [['self', 'Self'], ['total', 'Total']]) {
    columns.push(...isDifference ? columnsOfTwo(key, name, amounts)
                                 : columnsOfOne(key, name, amounts, totals));
  }
  const label = row => frames[row.frame].label, module = row => frames[row.frame].module;
  return [...columns,
    {key: 'name', head: 'Function', kind: 'name', isText: true, value: label, text: label,
     full: label},
    {key: 'module', head: 'Module', kind: 'module', isText: true, value: module, text: module,
     full: row => frames[row.frame].path}];
}

function toneOf(key) {
  return row => row[key] ? '' : 'nothing';
}

function columnsOfOne(key, name, amounts, totals) {
  return [
    {key, head: name, kind: 'number', value: row => row[key], text: row => amounts.after(row[key]),
     tone: toneOf(key)},
    {head: '%', kind: 'number share', text: row => percent(row[key] / (totals.time || 1)),
     tone: toneOf(key)}];
}

function columnsOfTwo(key, name, amounts) {
  const before = `${key}Before`;
  const change = row => Math.round(row[key] - row[before]); // one of them may be scaled
  return [
    {key: before, head: `${name} before`, kind: 'number before', value: row => row[before],
     text: row => amounts.before(row[before]), tone: toneOf(before)},
    {key, head: `${name} after`, kind: 'number after', value: row => row[key],
     text: row => amounts.after(row[key]), tone: toneOf(key)},
    {key: `${key}Difference`, head: `${name} change`, kind: 'number', value: change,
     text: row => amounts.difference(row[key], row[before]),
     tone: row => amounts.tone(change(row))}];
}

// A name that filters.
function nameButton(text, title, onClick) {
  const button = element('button', text, {class: 'filter', title});
  button.addEventListener('click', onClick);
  return button;
}

class FunctionTable {
  constructor(section, onGraph, onName) {
    this.section = section;
    this.body = section.querySelector('tbody');
    this.onGraph = onGraph; // (frame, isInverted)
    this.onName = onName; // (key of the column, row)
    this.rowsShown = ROWS_SHOWN;
    byId('more').addEventListener('click', () => {
      this.rowsShown *= 4;
      this.limit();
    });
    this.observer = new IntersectionObserver(([entry]) => entry.isIntersecting && this.addRows(),
                                             {rootMargin: ROWS_AHEAD});
  }

  // Of two choices or recordings there are more columns.
  setDifference(isDifference) {
    if (this.isDifference === isDifference)
      return;
    this.isDifference = isDifference;
    this.key = isDifference ? 'selfDifference' : 'self';
    this.isAscending = false;
    this.section.querySelector('thead').replaceChildren(this.headElement());
  }

  headElement() {
    const made = element('tr');
    for (const column of columnsOf([], {}, {}, this.isDifference)) {
      const head = element('th', column.key ? '' : column.head, {class: column.kind});
      if (column.key) {
        const button = element('button', column.head);
        button.addEventListener('click', () => this.sortBy(column));
        head.dataset.key = column.key;
        head.append(button);
      }
      made.append(head);
    }
    made.append(element('th', 'Graph', {class: 'graph'}));
    return made;
  }

  // While a search is being typed, or during a zoom, the rows can wait: they take longer than the graph. node: the one
  // that is zoomed to.
  show(model, node, amounts, matches, unit, isTyped, isDifference) {
    this.setDifference(isDifference);
    this.columns = columnsOf(model.frames, amounts, model.totals, this.isDifference);
    Object.assign(this, {model, node, matches, unit});
    clearTimeout(this.timer);
    this.section.setAttribute('aria-busy', String(isTyped));
    if (isTyped)
      this.timer = setTimeout(() => this.fill(), PAUSE_MS);
    else
      this.fill();
  }

  sortBy(column) {
    this.isAscending = column.key === this.key ? !this.isAscending : column.isText === true;
    this.key = column.key;
    this.fill();
  }

  sorted() {
    const {value} = this.columns.find(column => column.key === this.key);
    const sign = this.isAscending ? 1 : -1;
    return this.functions().filter(row => !this.matches || this.matches[row.frame])
      .sort((a, b) => {
        const left = value(a), right = value(b);
        return left < right ? -sign : left > right ? sign : b.total - a.total || a.frame - b.frame;
      });
  }

  // The functions of the node, counted once.
  functions() {
    if (this.counted !== this.model || this.countedNode !== this.node)
      this.found = this.node ? this.model.functionsIn(this.node) : this.model.functions;
    [this.counted, this.countedNode] = [this.model, this.node];
    return this.found;
  }

  fill() {
    this.section.setAttribute('aria-busy', 'false');
    for (const head of this.section.querySelectorAll('th[data-key]')) {
      const order = this.isAscending ? 'ascending' : 'descending';
      head.setAttribute('aria-sort', head.dataset.key === this.key ? order : 'none');
    }
    const focused = this.focused();
    this.rows = this.sorted();
    this.body.replaceChildren();
    this.limit();
    this.focus(focused);
  }

  // {frame, button} of the row that has the focus, which would be lost with it.
  focused() {
    const at = [...this.body.rows].findIndex(row => row.contains(document.activeElement));
    return at < 0 ? null : {frame: this.rows[at].frame,
                            button: [...this.body.rows[at].querySelectorAll('button')].indexOf(document.activeElement)};
  }

  focus(focused) {
    const at = focused ? this.rows.findIndex(row => row.frame === focused.frame) : -1;
    if (at >= 0 && at < this.body.rows.length)
      this.body.rows[at].querySelectorAll('button')[focused.button]?.focus();
  }

  limit() {
    const all = this.rows.length, shown = Math.min(all, this.rowsShown);
    byId('function-count').textContent =
      (shown < all ? `the first ${whole(shown)} of ${whole(all)}` : whole(all)) +
      (this.node ? ` in ${this.model.labelOf(this.node)}` : '') +
      (this.unit === 'threads' ? ', in threads on average' : ''); // said here and not in each cell
    byId('more').hidden = shown === all;
    this.addRows();
  }

  addRows() {
    const {body, rows, observer} = this, end = byId('table-end'), {length} = body.rows;
    const next = rows.slice(length, Math.min(length + ROWS_STEP, this.rowsShown));
    body.append(...next.map(row => this.rowElement(row)));
    observer.unobserve(end);
    if (body.rows.length < Math.min(rows.length, this.rowsShown))
      observer.observe(end); // reports at once if it is still near
  }

  rowElement(row) {
    const made = element('tr'), graph = element('td', '', {class: 'graph'});
    for (const {key, kind, text, tone, full} of this.columns) {
      const shown = tone ? withoutThreads(text(row)) : text(row);
      const cell = element('td', tone ? shown : '', {class: tone ? `${kind} ${tone(row)}` : kind});
      if (!tone)
        cell.append(nameButton(shown, key === 'module' ? `Show ${shown} alone` : 'Search for it',
                               () => this.onName(key, row)));
      if (full)
        cell.title = full(row);
      made.append(cell);
    }
    for (const [text, sign, isInverted] of [['callers', '▲', true], ['callees', '▼', false]]) {
      const title = `Show the graph of its ${text}`;
      const button = element('button', '', {title, 'aria-label': text});
      button.append(element('span', text), element('i', sign));
      button.addEventListener('click', () => this.onGraph(row.frame, isInverted));
      graph.append(button, ' ');
    }
    made.append(graph);
    return made;
  }
}
