// The profile's tables (described in src/output/page/html.c), prepared for counting: each sample with its labels as texts,
// each location with the frames that it stands for.

const FLAG_KERNEL = 1, FLAG_JIT = 2, FLAG_NOTE = 4, FLAG_START = 64, FLAG_LIBRARY = 256; // as html.c writes them
const FLAG_INLINED = 8, FLAG_ROOT = 16, FLAG_THREAD = 32, FLAG_UNNAMED = 128;

const NO_LABELS = new Map();

// A name is data of the target: marks that turn the text direction would show another name.
function plain(text) {
  return text.replace(/[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

function baseName(path) {
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

// One recording's samples. `isOfTwo`: it is compared with another, in which ids differ.
class Recording {
  constructor(raw, isOfTwo) {
    this.raw = raw;
    this.isOfTwo = isOfTwo;
    this.strings = raw.strings.map(text => text === 0 ? '' : plain(text));
    this.labels = (raw.labels || []).map(pairs => this.labelsOf(pairs));
    this.births = new Map((raw.births || []).map(row => [row[0], this.birthOf(row)]));
    this.elapsed = raw.elapsed_ns;
    this.titles = new Map(raw.processes.filter(([,, title]) => title).map(row => [this.processOf(row), this.strings[row[2]]]));
    this.idle = new Set((raw.idle || []).map(row => row.join()));
    this.samples = raw.samples.map(row => this.sampleOf(row));
    linkWaits(this);
  }

  // Counts the time of threads, or elapsed time; of objects, the values of the type `unit`.
  measure(unit, objects) {
    const counter = objects && objects.counter(unit);
    for (const sample of this.samples) {
      sample.ns = objects ? sample.values[unit] : unit === 'elapsed' ? sample.elapsed : sample.wall;
      if (objects)
        sample.objects = counter ? sample.values[counter] : 0;
    }
    this.time = this.samples.reduce((sum, sample) => sum + sample.ns, 0);
  }

  labelsOf(pairs) {
    const labels = new Map();
    for (let i = 0; i < pairs.length; i += 2)
      labels.set(this.strings[pairs[i]], this.strings[pairs[i + 1]]);
    return labels;
  }

  // Where a thread comes from.
  birthOf([, maker, called]) {
    const by = this.strings[maker], where = this.strings[called];
    return !by ? `began in ${where}` : where ? `made by ${by} in ${where}` : `made by ${by}`;
  }

  sampleOf([stack, name, tid, state, call, channel, count, wall, process, elapsed = 0, labels = 0,
            ...values]) {
    // Time that no thread used: there is such a sample for each process.
    const isIdle = !count && !wall && !name && !values.length;
    const threadName = isIdle ? '[idle]' : this.strings[name];
    return {
      recording: this, stack, tid, ns: wall, wall, elapsed, isIdle, ownCount: count,
      isOfIdleThread: this.idle.has([process || 0, name, tid].join()),
      time: wall, count, before: 0, countBefore: 0,
      values: values.map(value => Math.max(0, value)), // there are no widths below 0
      threadName,
      thread: this.nameOfThread(threadName, tid),
      birth: (!this.isOfTwo && this.births.get(tid)) || '',
      process: this.processOf(this.raw.processes[process] || [0, 0]),
      labels: labels ? this.labels[labels - 1] : NO_LABELS,
      state: this.raw.states[state],
      category: isIdle ? 'idle' : this.categoryOf(this.raw.states[state], this.strings[call],
                                                  this.strings[channel]),
    };
  }

  // A goroutine may have the id of a thread.
  nameOfThread(name, tid) {
    if (!tid || this.isOfTwo)
      return name;
    return tid < 0 ? `${name}/goroutine ${-tid}` : `${name}/${tid}`;
  }

  // Processes that have ended have no id.
  processOf([pid, name]) {
    return !pid || this.isOfTwo ? this.strings[name] : `${this.strings[name]}/${pid}`;
  }

  // What a sleeping thread waits in says more than that it sleeps.
  categoryOf(state, call, channel) {
    if (state === 'sleeping')
      return call || 'sleeping';
    if (state === 'uninterruptible')
      return 'uninterruptible' + (channel || call ? `: ${channel || call}` : '');
    return state;
  }
}

// One recording, or two to compare. Their samples are in one list; those of the earlier recording have their time in `before`.
// What is counted is the time of threads, or elapsed time, or if `objects` is not null, one of its values.
class Profile {
  constructor(raw) {
    const isOfTwo = Boolean(raw.before);
    this.after = new Recording(raw, isOfTwo);
    this.before = isOfTwo ? new Recording(raw.before, isOfTwo) : null;
    this.recordings = this.before ? [this.before, this.after] : [this.after];
    this.samples = this.recordings.flatMap(recording => recording.samples);
    this.made = new Map(); // stacks, by whether lines are told apart
    this.madeBlamed = new Map(); // the same of blamed samples
    for (const sample of this.before ? this.before.samples : [])
      Object.assign(sample, {countBefore: sample.count, count: 0, time: 0});
    this.objects = raw.objects ? new ObjectTypes(raw.objects) : null;
    this.hasThreads = !this.objects || this.samples.some(sample => sample.threadName);
    this.hasThreadTable = !this.before && !this.objects;
    // Without those that only waited for work there may be none.
    this.idleThreads = this.samples.every(sample => sample.isOfIdleThread || sample.isIdle)
      ? [] : this.samples.filter(sample => sample.isOfIdleThread);
    this.hasElapsed = this.recordings.every(recording => recording.raw.has_elapsed);
    this.isNormalized = raw.is_normalized === true;
    this.timeline = raw.timelines && !this.before ? new Timeline(raw.timelines, this.after.elapsed) : null;
    this.times = this.compared = null; // see select()
    this.measure(this.objects ? this.objects.main : 'total');
    if (this.after.hasWaits)
      groupUnnamed(this.after.samples, this.stacks(false).table);
  }

  measure(unit) {
    this.isElapsed = unit === 'elapsed';
    for (const recording of this.recordings)
      recording.measure(unit, this.objects);
    for (const sample of this.after.samples) {
      sample.time = sample.ns;
      sample.count = this.objects ? sample.objects : sample.count;
    }
    this.normalize(this.isNormalized);
    this.select(this.times, this.compared);
  }

  // Scales the earlier recording to the total time of the later one, or back. For a single recording, aggregate() does this,
  // because it knows the filters.
  normalize(isNormalized) {
    const lengthBefore = this.before ? this.before.elapsed : this.lengthOf(this.compared && this.compared.times);
    this.elapsedBefore = isNormalized ? this.length : lengthBefore;
    this.isNormalized = isNormalized;
    if (!this.before)
      return;
    const scale = isNormalized && this.before.time ? this.after.time / this.before.time : 1;
    for (const sample of this.before.samples) {
      sample.before = sample.ns * scale;
      sample.countBefore = this.objects ? sample.objects : sample.countBefore;
    }
  }

  // Counts only samples between two times {begin, end} in ns; null: all. compared: {times}, whose samples are counted as
  // before; null: nothing.
  select(times, compared = null) {
    Object.assign(this, {times, compared});
    if (this.before || this.objects)
      return;
    this.countTimes(times, 'time', 'count');
    if (compared)
      this.countTimes(compared.times, 'before', 'countBefore');
    this.normalize(this.isNormalized);
  }

  // Elapsed time of a sample is divided evenly among its time.
  countTimes(times, amount, count) {
    const {timeline, after: {samples, raw}} = this;
    const sums = times && timeline.sums(samples.length, times.begin / timeline.grainNs, times.end / timeline.grainNs);
    samples.forEach((sample, i) => {
      const part = times ? sums[i] : sample.wall;
      sample[amount] = !times ? sample.ns
        : this.isElapsed ? Math.min(sample.elapsed, sample.elapsed * part / (sample.wall || 1)) : part;
      sample[count] = times ? part / raw.period_ns : sample.ownCount;
    });
    if (times && this.isElapsed)
      this.countIdle(this.lengthOf(times), amount);
  }

  // What the threads of a process leave of the selected time.
  countIdle(lengthNs, amount) {
    const used = new Map();
    for (const sample of this.after.samples)
      used.set(sample.process, (used.get(sample.process) || 0) + sample[amount]);
    for (const sample of this.after.samples.filter(({isIdle}) => isIdle))
      sample[amount] = Math.min(sample.elapsed, Math.max(0, lengthNs - used.get(sample.process)));
  }

  lengthOf(times) {
    return times ? times.end - times.begin : this.after.elapsed;
  }

  // Of the time that is counted.
  get length() {
    return this.lengthOf(this.times);
  }

  stacks(withLines) {
    if (!this.made.has(withLines)) {
      const table = new FrameTable(this.recordings, withLines);
      this.made.set(withLines, new Stacks(this.samples, table));
    }
    return this.made.get(withLines);
  }

  // The stacks of waiting threads on those of the owners.
  blamedStacks(withLines) {
    if (!this.madeBlamed.has(withLines)) {
      const {table} = this.stacks(withLines);
      this.madeBlamed.set(withLines, new Stacks(this.samples.map(blamed), table, blamePath));
    }
    return this.madeBlamed.get(withLines);
  }

  frames(withLines) {
    return this.stacks(withLines).table.frames;
  }
}
