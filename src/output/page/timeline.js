// When threads were where. html.c describes the input (write_timelines); here it is
//
//   threads   {begin, first, last}: when the thread's first run begins, and which runs are its own
//   until     for each run, when it ends
//   sample    for each run, the number of its sample; -1: the thread was absent
//
// with times in grains since the recording's start.

function bytesOfBase64(text) {
  const characters = atob(text), bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++)
    bytes[i] = characters.charCodeAt(i);
  return bytes;
}

class Timeline {
  constructor({grain_ns: grainNs, ended_early: endedEarly, threads, runs}, lengthNs) {
    const runCount = threads.reduce((sum, [, count]) => sum + count, 0);
    this.grainNs = grainNs;
    this.length = Math.max(1, Math.ceil(lengthNs / grainNs));
    this.until = new Uint32Array(runCount);
    this.sample = new Int32Array(runCount);
    this.threads = [];
    this.fill(threads, bytesOfBase64(runs));
    // When there was no more room for runs.
    this.endedEarly = endedEarly && this.threads.reduce((end, {last}) => Math.max(end, this.until[last - 1]), 0);
  }

  fill(threads, bytes) {
    const {until, sample} = this;
    let at = 0, run = 0;
    const number = () => {
      let value = 0, scale = 1;
      for (; bytes[at] & 128; at++, scale *= 128)
        value += (bytes[at] & 127) * scale;
      return value + bytes[at++] * scale;
    };
    for (const [begin, count] of threads) {
      const first = run, known = [];
      for (let end = begin; run < first + count; run++) {
        const which = number();
        if (which === known.length)
          known.push(number() - 1);
        sample[run] = known[which];
        until[run] = end += number();
      }
      this.threads.push({begin, first, last: run});
    }
  }

  // The run that is going on at a time, or the first one that ends later; `last` if there is none.
  runAt({first, last}, time) {
    let low = first, high = last;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.until[middle] > time)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  beginOf({begin, first}, run) {
    return run === first ? begin : this.until[run - 1];
  }

  // The number of a sample of the thread, which has its name; -1: it was absent all the time.
  firstSampleOf({first, last}) {
    for (let run = first; run < last; run++) {
      if (this.sample[run] >= 0)
        return this.sample[run];
    }
    return -1;
  }

  // For each of so many samples, its time in ns between two times.
  sums(sampleCount, begin, end) {
    const {until, sample, grainNs} = this, sums = new Float64Array(sampleCount);
    for (const thread of this.threads) {
      let run = this.runAt(thread, begin), from = run < thread.last ? this.beginOf(thread, run) : end;
      for (; run < thread.last && from < end; from = until[run++]) {
        if (sample[run] >= 0)
          sums[sample[run]] += Math.min(until[run], end) - Math.max(from, begin);
      }
    }
    return sums.map(grains => grains * grainNs);
  }

  // Adds the thread's time to `pixels`. categories: of each sample, below 0 if it does not count.
  addThread(thread, categories, pixels) {
    const {until, sample} = this, scale = pixels.width / this.length;
    for (let run = thread.first, begin = thread.begin; run < thread.last; begin = until[run++]) {
      if (sample[run] >= 0 && categories[sample[run]] >= 0)
        pixels.add(categories[sample[run]], begin * scale, until[run] * scale);
    }
  }

  // When a run begins whose sample is one of these; -1: there is none.
  firstOf(samples) {
    let first = -1;
    for (const thread of this.threads) {
      for (let run = thread.first; run < thread.last; run++) {
        if (!samples.has(this.sample[run]))
          continue;
        const begin = this.beginOf(thread, run);
        first = first < 0 ? begin : Math.min(first, begin);
        break;
      }
    }
    return first;
  }
}

// How many threads were in each category, for each pixel of time.
class Pixels {
  constructor(width, categoryCount) {
    this.width = width;
    this.parts = Array.from({length: categoryCount}, () => new Float64Array(width + 1));
    this.changes = Array.from({length: categoryCount}, () => new Float64Array(width + 2)); // of whole pixels
  }

  add(category, begin, end) {
    const first = Math.floor(begin), last = Math.min(Math.floor(end), this.width), part = this.parts[category];
    if (first >= this.width)
      return;
    if (first === last) {
      part[first] += end - begin;
      return;
    }
    part[first] += first + 1 - begin;
    part[last] += Math.min(end, this.width) - last;
    this.changes[category][first + 1]++;
    this.changes[category][last]--;
  }

  // Once all is added.
  finish() {
    this.parts.forEach((part, category) => {
      let whole = 0;
      for (let x = 0; x < this.width; x++)
        part[x] += whole += this.changes[category][x];
    });
    return this.parts;
  }
}
