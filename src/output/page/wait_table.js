// The table of what threads waited for. A row opens to show its owners and waiters, with their stacks; a click on its
// name shows the graph of its owners.

const WAITS_SHOWN = 100, PARTIES_SHOWN = 3, STACKS_SHOWN = 3;
const FRAMES_SHOWN = 8; // of a stack, the innermost

function threadsOf(count) {
  return `${whole(count)} ${count === 1 ? 'thread' : 'threads'}`;
}

function moreText(count, what) {
  return element('p', `and ${whole(count)} more ${what}`, {class: 'more'});
}

class WaitTable {
  // onGraph({resource, owner, isOwned}): shows the graph of the resource in the hands of the owner's threads, '' for
  // all. deadlocks: the lines of proven ones. onName(name): searches for a function.
  constructor(section, samples, deadlocks, onGraph, onName) {
    this.section = section;
    this.body = section.querySelector('tbody');
    this.onGraph = onGraph;
    this.onName = onName;
    this.opened = new Set();
    this.circles = findCircles(samples);
    byId('deadlocks').replaceChildren(...deadlockTexts(deadlocks, this.circles).map(text => {
      const item = element('li');
      item.append(element('b', 'Deadlock'), ` ${text}`);
      return item;
    }));
  }

  // table: the FrameTable; chosen: as in isOfWaits(); chains: null if there is no order of time.
  show(rows, recording, table, amounts, chosen, chains) {
    Object.assign(this, {recording, table, amounts, chosen, chains});
    const buttons = () => [...this.body.querySelectorAll('button')];
    const focused = buttons().indexOf(document.activeElement);
    const time = rows.reduce((sum, row) => sum + row.time, 0);
    const owned = rows.reduce((sum, row) => sum + row.owned, 0);
    const shown = rows.slice(0, WAITS_SHOWN);
    byId('wait-count').textContent =
      (shown.length < rows.length ? `the first ${whole(shown.length)} of ` : '') +
      `${whole(rows.length)}, ${amounts.after(time)} in all; the owner is known for ` +
      `${percent(owned / (time || 1))} of that`;
    this.body.replaceChildren(...shown.flatMap((row, i) => this.rowElements(row, i)));
    if (focused >= 0)
      buttons()[focused]?.focus({preventScroll: true});
    const wanted = shown.findIndex(({key}) => key === this.wanted);
    if (wanted >= 0)
      this.body.rows[2 * wanted].scrollIntoView({block: 'nearest'});
    this.wanted = null;
  }

  rowElements(row, number) {
    const made = element('tr'), details = element('tr', '', {id: `wait-${number}`});
    const open = element('button', '', {class: 'open', 'aria-controls': details.id,
                                        'aria-label': `Stacks of ${row.title}`});
    const show = () => {
      const isOpen = this.opened.has(row.key);
      open.textContent = isOpen ? '▾' : '▸';
      open.setAttribute('aria-expanded', String(isOpen));
      details.hidden = !isOpen;
      if (isOpen && !details.cells.length)
        details.append(this.detailsOf(row));
    };
    open.addEventListener('click', () => {
      if (!this.opened.delete(row.key))
        this.opened.add(row.key);
      show();
    });
    show();
    const opener = element('td', '', {class: 'open'});
    opener.append(open);
    made.append(opener, element('td', this.text(row.time), {class: 'number'}),
                element('td', whole(row.threads.size), {class: 'number'}), this.nameCell(row),
                element('td', row.kind, {class: 'kind'}), this.ownerCell(row),
                this.placeCell(row));
    made.classList.toggle('chosen', this.chosen !== null && this.chosen.resource === row.key);
    return [made, details];
  }

  placeCell({place}) {
    const cell = element('td', '', {class: 'place'});
    if (place >= 0) {
      const {name} = this.table.frames[place];
      cell.append(nameButton(name, 'Search for it', () => this.onName(name)));
    }
    return cell;
  }

  text(time) {
    return withoutThreads(this.amounts.after(time));
  }

  nameCell(row) {
    const cell = element('td', '', {class: 'name'});
    const isOfKind = row.title.startsWith(`${row.kind} `);
    cell.append(this.graphButton(isOfKind ? row.title.slice(row.kind.length + 1) : row.title, row, ''));
    if (this.circles.some(circle => circle.some(link =>
      row.resources.has(link.resource) && link.to.process === row.process)))
      cell.append(element('span', 'deadlock', {class: 'deadlock'}));
    return cell;
  }

  ownerCell(row) {
    const cell = element('td', '', {class: 'owner'}), [main] = row.owners, [waker] = row.wakers;
    if (!main && waker)
      cell.append('woken by ', this.graphButton(waker.name, row, waker.name),
                  element('small', percent(waker.time / row.time)));
    else if (!main)
      cell.append(element('span', 'not known', {class: 'nothing'}));
    else
      cell.append(this.graphButton(main.name, row, main.name),
                  element('small', percent(main.time / row.time)));
    return cell;
  }

  graphButton(text, row, owner) {
    const of = owner && ` in the hands of ${owner}`;
    const isOwned = owner ? row.blamedNames.has(owner) : row.blamed > 0; // the network does nothing that is seen
    const chosen = {resource: row.key, owner, isOwned, title: row.title};
    const button = element('button', text, {
      title: isOwned ? `Show what the owners of ${row.title} did${of}`
                     : `Show where threads wait for ${row.title}`});
    const isChosen = this.chosen !== null && this.chosen.resource === row.key &&
      this.chosen.owner === owner;
    button.setAttribute('aria-pressed', String(isChosen));
    button.addEventListener('click', () => this.onGraph(chosen));
    return button;
  }

  detailsOf(row) {
    const cell = element('td', '', {colspan: '7'}), sides = element('div', '', {class: 'sides'});
    if (row.owners.length || !row.wakers.length)
      sides.append(this.sideOf('Owners, while others waited', row, row.owners, true));
    else
      sides.append(this.sideOf('Woken by', row, row.wakers, false));
    sides.append(this.sideOf('Waiters', row, row.waiters, false));
    cell.append(sides);
    const chain = this.chains && row.blamed ? this.chains.of(row.numbers) : [];
    if (chain.length)
      cell.append(element('h3', 'Meanwhile, the threads that they waited for'), this.chainList(chain));
    return cell;
  }

  chainList(rows) {
    const list = element('ul', '', {class: 'chain'});
    for (const row of rows.slice(0, CHAIN_SHOWN)) {
      const item = element('li');
      item.append(element('span', duration(row.time), {class: 'number'}), chainText(row, this.table.frames));
      if (row.next && row.next.length)
        item.append(this.chainList(row.next));
      list.append(item);
    }
    if (rows.length > CHAIN_SHOWN)
      list.append(moreText(rows.length - CHAIN_SHOWN, 'of these'));
    return list;
  }

  // Opens a row, which is then in sight.
  open(key) {
    this.opened.add(key);
    this.wanted = key;
  }

  sideOf(title, row, parties, isOwners) {
    const made = element('div'), unknown = row.time - row.owned;
    made.append(element('h3', title));
    for (const party of parties.slice(0, PARTIES_SHOWN)) {
      const head = element('p', '', {class: 'party'});
      head.append(isOwners ? this.graphButton(party.name, row, party.name)
                           : element('b', party.name),
                  element('span', party.threads.size > 1 ? threadsOf(party.threads.size) : ''),
                  element('span', this.amounts.after(party.time)));
      made.append(head, this.stacksOf(party));
    }
    if (parties.length > PARTIES_SHOWN)
      made.append(moreText(parties.length - PARTIES_SHOWN, isOwners ? 'owners' : 'of these'));
    if (isOwners && unknown > 0)
      made.append(element('p', `For ${this.amounts.after(unknown)} the owner is not known.`,
                          {class: 'more'}));
    return made;
  }

  stacksOf({stacks}) {
    const list = element('ul', '', {class: 'stacks'});
    const sorted = [...stacks].sort((a, b) => b[1] - a[1]);
    for (const [stack, time] of sorted.slice(0, STACKS_SHOWN)) {
      const item = element('li'), names = placeOf(this.table, this.recording, {stack})
        .filter(frame => !(this.table.frames[frame].flags & FLAG_START)).map(frame => this.table.frames[frame].label);
      const cut = names.length > FRAMES_SHOWN ? ['…', ...names.slice(-FRAMES_SHOWN)] : names;
      item.append(element('span', this.text(time), {class: 'number'}),
                  element('span', cut.join(' › '), {class: 'frames', title: names.join(' › ')}));
      list.append(item);
    }
    if (sorted.length > STACKS_SHOWN)
      list.append(moreText(sorted.length - STACKS_SHOWN, 'stacks'));
    return list;
  }
}
