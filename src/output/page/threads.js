// The table of threads: how long each ran, waited for a CPU and was blocked, and where it mostly was.
// A click on one filters by it.

const THREADS_SHOWN = 200;
const SYSTEM_LIBRARY = /^(libc|libpthread|ld-linux|ld-musl)\b/;

// The innermost function outside the C library, which is where the program waits, or the leaf.
function programPlaceOf(path, frames) {
  for (let i = path.length - 1; i >= 0; i--) {
    const {module, flags} = frames[path[i]];
    if (!SYSTEM_LIBRARY.test(module) && !(flags & (FLAG_KERNEL | FLAG_NOTE)))
      return path[i];
  }
  return path[path.length - 1];
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

// [{thread, threadName, process, running, runnable, blocked, time, call, place}, ...], those that want a CPU most
// first. stacks: of these samples; kept: which of them count.
function countThreads({samples, paths, table: {frames}}, kept) {
  const threads = new Map();
  samples.forEach((sample, i) => {
    if (!kept[i] || sample.isIdle || !sample.time)
      return;
    const key = `${sample.process}\0${sample.thread}`;
    if (!threads.has(key)) {
      threads.set(key, {thread: sample.thread, threadName: sample.threadName, process: sample.process,
                        running: 0, runnable: 0, blocked: 0, time: 0, calls: new Map(), places: new Map()});
    }
    const row = threads.get(key);
    row.time += sample.time;
    row[sample.state === 'running' || sample.state === 'runnable' ? sample.state : 'blocked'] += sample.time;
    if (sample.state !== 'running' && sample.state !== 'runnable')
      addTime(row.calls, sample.category, sample.time);
    if (paths[i].length)
      addTime(row.places, programPlaceOf(paths[i], frames), sample.time);
  });
  const rows = [...threads.values()].map(row => (
    {...row, call: largest(row.calls) || '', place: largest(row.places)}));
  return rows.sort((a, b) => b.running + b.runnable - a.running - a.runnable || b.time - a.time);
}

class ThreadTable {
  // onThread(row): filters by the thread; null: by none.
  constructor(section, onThread) {
    this.body = section.querySelector('tbody');
    this.onThread = onThread;
  }

  // chosen: the thread that is filtered by.
  show(rows, frames, amounts, chosen) {
    const shown = rows.slice(0, THREADS_SHOWN);
    const focused = [...this.body.querySelectorAll('button')].indexOf(document.activeElement);
    byId('thread-count').textContent =
      (shown.length < rows.length ? `the first ${whole(shown.length)} of ` : '') + whole(rows.length);
    this.body.replaceChildren(...shown.map(row => this.rowElement(row, frames, amounts, chosen)));
    if (focused >= 0)
      this.body.querySelectorAll('button')[focused]?.focus({preventScroll: true});
  }

  rowElement(row, frames, amounts, chosen) {
    const made = element('tr'), name = element('td', '', {class: 'name'});
    const isChosen = [row.thread, row.threadName].includes(chosen);
    const button = element('button', row.thread || '[no name]', {'aria-pressed': String(isChosen)});
    button.addEventListener('click', () => this.onThread(isChosen ? null : row));
    name.append(button);
    made.classList.toggle('chosen', isChosen);
    const process = element('td', row.process, {class: 'process'});
    process.hidden = document.querySelector('#threads th.process').hidden;
    made.append(name, process);
    for (const key of ['running', 'runnable', 'blocked'])
      made.append(element('td', amounts.after(row[key]), {class: row[key] ? 'number' : 'number nothing'}));
    made.append(element('td', row.call, {class: 'kind'}),
                element('td', row.place === undefined ? '' : frames[row.place].label, {class: 'place'}));
    return made;
  }
}
