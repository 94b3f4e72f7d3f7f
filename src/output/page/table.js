// The functions, sortable. As many rows are shown as can be read at first; a search narrows them.

const ROWS_SHOWN = 100;
const PAUSE_MS = 120; // after a letter is typed

// {key, head, value(row), text(row), isText, kind(row)}; one without a key is not to be sorted by.
// `amounts` are the page's: {after(ns), before(ns), difference(ns, before)}, `totals` the
// time of all samples in the table.
function columnsOf(frames, amounts, totals, isDifference) {
  const columns = [];
  for (const [key, name] of [['self', 'Self'], ['total', 'Total']]) {
    const before = `${key}Before`, difference = `${key}Difference`;
    const share = {head: '%', text: row => percent(row[key] / (totals.time || 1)),
                   kind: row => row[key] ? '' : 'nothing'};
    const grown = row => Math.round(row[key] - row[before]); // one may be scaled
    const after = {key, head: isDifference ? `${name} after` : name, value: row => row[key],
                   text: row => amounts.after(row[key]), kind: share.kind};
    if (isDifference) {
      columns.push(
        {key: before, head: `${name} before`, value: row => row[before],
         text: row => amounts.before(row[before]), kind: row => row[before] ? '' : 'nothing'},
        after,
        {key: difference, head: 'Difference', value: grown,
         text: row => amounts.difference(row[key], row[before]),
         kind: row => grown(row) > 0 ? 'grown' : grown(row) < 0 ? 'shrunk' : 'nothing'});
    } else {
      columns.push(after, share);
    }
  }
  return [...columns,
    {key: 'name', head: 'Function', isText: true, value: row => frames[row.frame].label},
    {key: 'module', head: 'Module', isText: true, value: row => frames[row.frame].module}];
}

class FunctionTable {
  constructor(section, onGraph, isDifference) {
    this.section = section;
    this.onGraph = onGraph; // (frame, isInverted)
    this.isDifference = isDifference;
    this.key = isDifference ? 'selfDifference' : 'self';
    this.isAscending = false;
    this.rowsShown = ROWS_SHOWN;
    byId('more').addEventListener('click', () => {
      this.rowsShown *= 4;
      this.fill();
    });
    section.querySelector('thead').append(this.headElement());
  }

  headElement() {
    const made = element('tr');
    for (const column of columnsOf([], {}, {}, this.isDifference)) {
      const head = element('th', column.key ? '' : column.head,
                           {class: column.isText ? '' : 'number'});
      if (column.key) {
        const button = element('button', column.head);
        button.addEventListener('click', () => this.sortBy(column));
        head.dataset.key = column.key;
        head.append(button);
      }
      made.append(head);
    }
    made.append(element('th', 'Graph'));
    return made;
  }

  // While a search is typed, the rows can wait: they take longer than the graph does.
  show(model, amounts, matches, isTyped) {
    this.columns = columnsOf(model.frames, amounts, model.totals, this.isDifference);
    Object.assign(this, {model, matches});
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
    return this.model.functions.filter(row => !this.matches || this.matches[row.frame])
      .sort((a, b) => {
        const left = value(a), right = value(b);
        return left < right ? -sign : left > right ? sign : b.total - a.total || a.frame - b.frame;
      });
  }

  fill() {
    this.section.setAttribute('aria-busy', 'false');
    for (const head of this.section.querySelectorAll('th[data-key]')) {
      const order = this.isAscending ? 'ascending' : 'descending';
      head.setAttribute('aria-sort', head.dataset.key === this.key ? order : 'none');
    }
    const rows = this.sorted();
    const shown = rows.slice(0, this.rowsShown);
    byId('function-count').textContent = rows.length > shown.length
      ? `the first ${whole(shown.length)} of ${whole(rows.length)}: a search shows others`
      : `${whole(rows.length)}`;
    byId('more').hidden = rows.length <= shown.length;
    this.section.querySelector('tbody').replaceChildren(...shown.map(row => this.rowElement(row)));
  }

  rowElement(row) {
    const made = element('tr'), graph = element('td', '', {class: 'graph'});
    for (const column of this.columns) {
      const text = column.isText ? column.value(row) : column.text(row);
      const kind = column.isText ? column.key : column.kind ? column.kind(row) : '';
      made.append(element('td', text, {class: column.isText ? kind : `number ${kind}`}));
    }
    for (const [text, isInverted] of [['callers', true], ['callees', false]]) {
      const button = element('button', text);
      button.addEventListener('click', () => this.onGraph(row.frame, isInverted));
      graph.append(button, ' ');
    }
    made.append(graph);
    return made;
  }
}
