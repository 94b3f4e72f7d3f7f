// The table of threads: how long each ran, waited for a CPU and was blocked, and where it mostly was. A click on a thread filters
// by it.

const THREADS_SHOWN = 200;
// A place in the program's code, and what was waited for there.
function placeText(frames, frame, resource) {
  return frames[frame].label + (resource ? ` (${resource})` : '');
}

function addTime(map, key, time) {
  map.set(key, (map.get(key) || 0) + time);
}

function largest(map) {
  let found, most = -1;
  for (const [key, time] of map) {
    if (time > most)
      [found, most] = [key, time];
  }
  return found;
}

// [{thread, threadName, process, running, runnable, blocked, time, call, place, function, wait}, ...], those that want a CPU most
// first. wait: {text, resource} of the resource that it waits for there, or null. stacks: of these samples; kept: which of the
// samples count.
function countThreads({samples, table}, kept) {
  const threads = new Map();
  samples.forEach((sample, i) => {
    if (!kept[i] || sample.isIdle || !sample.time)
      return;
    const key = `${sample.process}\0${sample.thread}`;
    if (!threads.has(key)) {
      threads.set(key, {thread: sample.thread, threadName: sample.threadName, process: sample.process,
                        title: sample.recording.titles.get(sample.process) || '', running: 0, runnable: 0, blocked: 0, time: 0, calls: new Map(), places: new Map(), at: new Map()});
    }
    const row = threads.get(key);
    row.time += sample.time;
    row[sample.state === 'running' || sample.state === 'runnable' ? sample.state : 'blocked'] += sample.time;
    if (sample.state !== 'running' && sample.state !== 'runnable')
      addTime(row.calls, sample.category, sample.time);
    const waiter = sample.waiter || sample, place = table.programPlaceOf(waiter.recording, waiter.stack);
    if (place >= 0) {
      const {wait, resource} = sample, text = placeText(table.frames, place, wait && wait.resource);
      addTime(row.places, text, sample.time);
      row.at.set(text, {place: table.frames[place].label, function: table.frames[place].name,
                        wait: wait && {text: wait.resource || `woken by ${wait.waker.threadName}`, resource}});
    }
  });
  const rows = [...threads.values()].map(row => {
    return {...row, call: largest(row.calls) || '', place: '', ...row.at.get(largest(row.places))};
  });
  return rows.sort((a, b) => b.running + b.runnable - a.running - a.runnable || b.time - a.time);
}

class ThreadTable {
  // onThread(row): filters by the thread; null: by none. onCompare(row): compares it with the selection; null: nothing.
  // onName(id, value): filters by another name in the table. onWait(row): shows what the thread's wait depended on.
  constructor(section, onThread, onCompare, onName, onWait) {
    this.body = section.querySelector('tbody');
    Object.assign(this, {onThread, onCompare, onName, onWait});
  }

  // chosen: the thread that is filtered by; compared: the one that it is compared with.
  show(rows, amounts, chosen, compared) {
    this.compared = compared;
    const shown = rows.slice(0, THREADS_SHOWN);
    const focused = [...this.body.querySelectorAll('button')].indexOf(document.activeElement);
    byId('thread-count').textContent =
      (shown.length < rows.length ? `the first ${whole(shown.length)} of ` : '') + whole(rows.length);
    this.body.replaceChildren(...shown.map(row => this.rowElement(row, amounts, chosen)));
    if (focused >= 0)
      this.body.querySelectorAll('button')[focused]?.focus({preventScroll: true});
  }

  rowElement(row, amounts, chosen) {
    const made = element('tr'), name = element('td', '', {class: 'name'});
    const isChosen = [row.thread, row.threadName].includes(chosen);
    const button = element('button', row.thread || '[no name]', {'aria-pressed': String(isChosen)});
    button.addEventListener('click', () => this.onThread(isChosen ? null : row));
    name.append(button);
    made.classList.toggle('chosen', isChosen);
    const process = this.nameCell('process', 'process', row.process);
    if (row.title)
      process.append(element('small', row.title));
    process.hidden = document.querySelector('#threads th.process').hidden;
    made.append(name, process);
    for (const key of ['running', 'runnable', 'blocked'])
      made.append(element('td', amounts.after(row[key]), {class: row[key] ? 'number' : 'number nothing'}));
    made.append(this.nameCell('kind', 'state', row.call), this.placeCell(row),
                this.compareCell(row));
    return made;
  }

  // value: what is filtered by, if it is not the text.
  nameCell(kind, id, text, value = text) {
    const cell = element('td', '', {class: kind});
    if (text)
      cell.append(nameButton(text, id === 'search' ? 'Search for it' : `Show ${text} alone`, () => this.onName(id, value)));
    return cell;
  }

  placeCell(row) {
    const cell = this.nameCell('place', 'search', row.place, row.function);
    if (row.wait) {
      const button = nameButton(`(${row.wait.text})`, 'Show what that wait depended on', () => this.onWait(row));
      cell.append(' ', button);
    }
    return cell;
  }

  compareCell(row) {
    const cell = element('td', '', {class: 'compare'});
    const isCompared = [row.thread, row.threadName].includes(this.compared);
    const button = element('button', 'compare', {
      'aria-pressed': String(isCompared), title: isCompared ? 'End the comparison' : 'Compare what is chosen with this thread'});
    button.addEventListener('click', () => this.onCompare(isCompared ? null : row));
    cell.append(button);
    return cell;
  }
}
