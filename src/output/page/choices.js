// The controls above the graph: what they offer, and what is chosen.

function timesBy(samples, keyOf) {
  const times = new Map();
  for (const sample of samples)
    times.set(keyOf(sample), (times.get(keyOf(sample)) || 0) + sample.ns);
  return [...times.entries()].sort((a, b) => b[1] - a[1]);
}

// A thread's entry also tells where it comes from, if that is known.
function threadOptions(samples) {
  const ofName = new Map(), births = new Map();
  for (const sample of samples.filter(sample => !sample.isIdle)) {
    if (!ofName.has(sample.threadName))
      ofName.set(sample.threadName, new Set());
    ofName.get(sample.threadName).add(sample.thread);
    births.set(sample.thread, sample.birth ? `, ${sample.birth}` : '');
  }
  const options = [['', 'all']];
  for (const [name, threads] of [...ofName].sort()) {
    options.push([name, threads.size > 1 ? `${name} (all ${threads.size})`
                                           : name + births.get([...threads][0])]);
    for (const thread of threads.size > 1 ? [...threads].sort() : [])
      options.push([thread, `\u2003${thread}${births.get(thread)}`]);
  }
  return options;
}

function stateOptions(samples) {
  return [['', 'all'], ['on-cpu', 'on CPU'], ['off-cpu', 'off CPU'],
          ...timesBy(samples, sample => sample.category).map(([name]) => [name, name])];
}

function moduleOptions(profile) {
  const names = new Set(profile.frames(false).map(frame => frame.module));
  names.delete('');
  return [['', 'all'], ...[...names].sort().map(name => [name, name])];
}

function labelKeys(profile) {
  const sets = profile.recordings.flatMap(recording => recording.labels);
  return [...new Set(sets.flatMap(labels => [...labels.keys()]))].sort();
}

function labelOptions(samples) {
  const times = new Map();
  for (const sample of samples) {
    for (const [key, value] of sample.labels)
      times.set(`${key}=${value}`, (times.get(`${key}=${value}`) || 0) + sample.ns);
  }
  const names = [...times.keys()].sort((a, b) => times.get(b) - times.get(a));
  return [['', 'all'], ...names.map(name => [name, name])];
}

function processOptions(samples, titles) {
  const nameOf = process => titles.has(process) ? `${process}: ${titles.get(process)}` : process;
  return [['', 'all'], ...timesBy(samples, sample => sample.process).map(([name]) => [name, nameOf(name)])];
}

const FILTERS = ['process', 'thread', 'state', 'label', 'module'];

const CONTROLS = ['view', 'stacks', 'roots', 'waiting', 'width', 'colour', 'unit', 'process', 'thread',
                  'state', 'label', 'module', 'normalized', 'lines', 'own'];

// Whether two frames are of the same function, even if only one of their tables tells lines apart.
function isSameFunction(a, b) {
  return ['name', 'path', 'file', 'flags'].every(key => a[key] === b[key]);
}

// Filters as a text of the address: "thread=worker&time=1-2"; 'all' if there are none.
function textOfFilters(filters) {
  const {times, ...others} = filters;
  const values = Object.entries({...others, time: times ? timesText(times) : ''}).filter(([, value]) => value);
  return new URLSearchParams(values).toString() || 'all';
}

// Filters in words.
function wordsOfFilters({times, ...others}) {
  const words = FILTERS.filter(id => others[id]).map(id => `${id} ${others[id]}`);
  if (times)
    words.push(`${(times.begin / 1e9).toFixed(3)} s to ${(times.end / 1e9).toFixed(3)} s`);
  return words.join(', ') || 'everything';
}

class Choices {
  constructor(profile, onChange) {
    this.profile = profile;
    fillSelect(byId('process'), processOptions(profile.samples, profile.after.titles));
    fillSelect(byId('thread'), threadOptions(profile.samples));
    fillSelect(byId('state'), stateOptions(profile.samples));
    fillSelect(byId('label'), labelOptions(profile.samples));
    fillSelect(byId('module'), moduleOptions(profile));
    this.pivot = null; // a frame and not its number, which changes when lines are told apart
    this.chosen = null; // what is waited for: see isOfWaits()
    this.hidden = []; // names of functions
    this.compared = null; // filters: see compare()
    this.hidesIdle = profile.idleThreads.length > 0;
    this.times = null; // {begin, end} in ns
    this.onChange = onChange;
    this.offer('.of-waits', profile.after.hasWaits);
    this.offer('.of-processes', profile.recordings.some(({raw}) => raw.processes.length > 1));
    this.offer('.of-difference', profile.before !== null);
    this.offer('.of-one', profile.hasThreadTable);
    this.offer('.of-elapsed', profile.hasElapsed);
    this.offer('.of-time', !profile.objects);
    this.offer('.of-timeline', profile.timeline !== null);
    this.offer('.of-tabs', profile.hasThreadTable);
    this.offer('.of-threads', profile.hasThreads);
    byId('unit').value = profile.after.raw.shows_elapsed ? 'elapsed' : 'total';
    byId('normalized').checked = profile.isNormalized;
    byId('colour').value = profile.before ? 'difference' : profile.objects ? 'module' : 'state';
    if (profile.objects)
      fillSelect(byId('unit'), profile.objects.options());
    const keys = labelKeys(profile);
    this.offer('.of-labels', keys.length > 0);
    for (const id of ['roots', 'colour'])
      byId(id).append(...keys.map(key => new Option(`by ${key}`, OF_LABEL + key)));
    for (const id of CONTROLS)
      byId(id).addEventListener('change', () => onChange(id));
    this.first = this.values();
    byId('reset').addEventListener('click', () => this.reset());
  }

  // Hides what has no meaning for the profile.
  offer(selector, isOffered) {
    for (const control of document.querySelectorAll(selector)) {
      control.hidden = !isOffered;
      for (const one of [control, ...control.querySelectorAll('select, input')])
        one.disabled = !isOffered;
    }
  }

  get(id) {
    return byId(id).value;
  }

  set(id, value) {
    byId(id).value = value;
    this.onChange(id);
  }

  // {id: value} of all controls.
  values() {
    const values = Object.fromEntries(CONTROLS.map(id =>
      [id, byId(id).type === 'checkbox' ? String(byId(id).checked) : byId(id).value]));
    // What is waited for is chosen in a table, and is not among these.
    return {...values, ...(this.chosen ? {waiting: ''} : {}), search: byId('search').value,
            idle: String(this.hidesIdle), time: this.times ? timesText(this.times) : '',
            before: this.compared ? textOfFilters(this.compared) : '', focus: this.pivot ? this.pivot.name : '',
            hide: this.hidden.length ? JSON.stringify(this.hidden) : ''};
  }

  // Those that are not what they were at first.
  changes() {
    const isChanged = ([id, value]) => value !== this.first[id] || (['normalized', 'colour'].includes(id) && this.compared);
    return Object.fromEntries(Object.entries(this.values()).filter(isChanged));
  }

  has(id, value) {
    return [...byId(id).options].some(option => option.value === value && !option.disabled);
  }

  // The filters, without the times if these are unknown here.
  filtersOf(values) {
    const filters = Object.fromEntries(FILTERS.map(id => [id, this.has(id, values[id]) ? values[id] : '']));
    return {...filters, times: this.profile.timeline ? timesOf(values.time, this.profile.after.elapsed) : null};
  }

  // Those that are chosen.
  filters() {
    return {...Object.fromEntries(FILTERS.map(id => [id, this.get(id)])), times: this.times};
  }

  // Shows how what is chosen differs from what these filters let through, which is called before; null: no more.
  compare(filters) {
    this.compared = filters;
    this.offer('.of-difference', filters !== null);
    byId('colour').value = filters ? 'difference' : 'state';
    if (!filters)
      byId('width').selectedIndex = 0;
    byId('normalized').checked = false;
    this.balance();
  }

  // Different times are scaled.
  balance() {
    if (!this.compared)
      return;
    const [a, b] = [this.times, this.compared.times].map(times => this.profile.lengthOf(times));
    byId('normalized').checked = Math.abs(a - b) > Math.max(a, b) / 10;
  }

  // Takes what is there to choose.
  apply(values) {
    if (values.before && this.profile.hasThreadTable)
      this.compare(this.filtersOf(valuesOfFragment(values.before)));
    this.applyFunctions(values);
    for (const id of CONTROLS.filter(id => Object.hasOwn(values, id) && !byId(id).disabled)) {
      const control = byId(id);
      if (control.type === 'checkbox')
        control.checked = values[id] === 'true';
      else if (this.has(id, values[id]))
        control.value = values[id];
    }
    byId('search').value = values.search || '';
    this.hidesIdle = this.hidesIdle && values.idle !== 'false';
    this.times = this.profile.timeline ? timesOf(values.time, this.profile.after.elapsed) : null;
  }

  applyFunctions({focus, hide}) {
    const frames = this.profile.frames(false), names = new Set(frames.map(frame => frame.name));
    this.pivot = frames.find(frame => frame.name === focus) || null;
    try {
      this.hidden = JSON.parse(hide || '[]').filter(name => names.has(name));
    } catch {
      this.hidden = [];
    }
  }

  toggleIdle() {
    if (!this.profile.idleThreads.length)
      return;
    this.hidesIdle = !this.hidesIdle;
    this.onChange('idle');
  }

  // Filters by a value, or no more if that was the filter.
  toggleFilter(id, value) {
    this.set(id, this.get(id) === value ? '' : value);
  }

  toggle(id) {
    const select = byId(id);
    this.set(id, select.options[1 - select.selectedIndex].value);
  }

  reset() {
    for (const id of ['stacks', 'roots', 'waiting', ...FILTERS])
      byId(id).selectedIndex = 0;
    if (this.compared)
      this.compare(null);
    byId('lines').checked = byId('own').checked = false;
    byId('search').value = '';
    this.pivot = this.chosen = this.times = null;
    this.hidden = [];
    this.hidesIdle = this.profile.idleThreads.length > 0;
    this.onChange('reset');
  }

  // The choice for aggregate().
  counted(profile) {
    const lines = byId('lines').checked, frames = profile.frames(lines);
    return {
      ...this.filters(), roots: this.get('roots'), isElapsed: profile.isElapsed,
      colour: this.get('colour'), side: this.get('width'), hidesIdle: this.hidesIdle,
      waiting: this.get('waiting'), chosen: this.chosen, hidden: this.hidden, isOwn: byId('own').checked,
      compared: this.compared, isNormalized: profile.isNormalized,
      isInverted: this.get('stacks') === 'callers', lines,
      pivot: this.pivot && frames.map(frame => isSameFunction(frame, this.pivot)),
    };
  }
}
