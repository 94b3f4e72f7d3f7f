// The functions, sortable. As many rows are shown as can be read at first; a search narrows them.

const ROWS_SHOWN = 100;
const PAUSE_MS = 120; // after a letter is typed

class FunctionTable {
  constructor(section, onGraph) {
    this.section = section;
    this.onGraph = onGraph; // (frame, isInverted)
    this.key = 'self';
    this.isAscending = false;
    this.rowsShown = ROWS_SHOWN;
    byId('more').addEventListener('click', () => {
      this.rowsShown *= 4;
      this.fill();
    });
    for (const head of section.querySelectorAll('th[data-key]'))
      head.querySelector('button').addEventListener('click', () => this.sortBy(head.dataset.key));
  }

  // While a search is typed, the rows can wait: they take longer than the graph does.
  show(model, format, matches, isTyped) {
    Object.assign(this, {model, format, matches});
    clearTimeout(this.timer);
    this.section.setAttribute('aria-busy', String(isTyped));
    if (isTyped)
      this.timer = setTimeout(() => this.fill(), PAUSE_MS);
    else
      this.fill();
  }

  sortBy(key) {
    const isText = key === 'name' || key === 'module';
    this.isAscending = key === this.key ? !this.isAscending : isText;
    this.key = key;
    this.fill();
  }

  sorted() {
    const {frames, functions} = this.model;
    const valueOf = {
      self: row => row.self, total: row => row.total,
      name: row => frames[row.frame].label, module: row => frames[row.frame].module,
    }[this.key];
    const sign = this.isAscending ? 1 : -1;
    return functions.filter(row => !this.matches || this.matches[row.frame]).sort((a, b) => {
      const left = valueOf(a), right = valueOf(b);
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
    const frame = this.model.frames[row.frame], made = element('tr');
    const all = this.format.total || 1;
    const graph = element('td', '', {class: 'graph'});
    for (const [text, isInverted] of [['callers', true], ['callees', false]]) {
      const button = element('button', text);
      button.addEventListener('click', () => this.onGraph(row.frame, isInverted));
      graph.append(button, ' ');
    }
    made.append(element('td', this.format.amount(row.self), {class: 'number'}),
                element('td', percent(row.self / all), {class: 'number'}),
                element('td', this.format.amount(row.total), {class: 'number'}),
                element('td', percent(row.total / all), {class: 'number'}),
                element('td', frame.label, {class: 'name'}),
                element('td', frame.module, {class: 'module'}), graph);
    return made;
  }
}
