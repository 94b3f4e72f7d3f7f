// What threads did while others waited for them: the threads that ended the waits, or had the resources. They may have waited
// themselves, for other threads, and so on. All at the same moments, from timelines.

const CHAIN_DEPTH = 8, CHAIN_SHOWN = 3; // of threads, and of what they did
const CHAIN_STEPS_MAX = 1 << 21; // beyond, time is not followed

function keyOfThread({process, tid}) {
  return `${process}\0${tid}`;
}

class Chains {
  // times: {begin, end} in ns; null: all.
  constructor({timeline, samples, times}, table) {
    Object.assign(this, {timeline, samples, times, table});
    [this.begin, this.end] = times ? [times.begin / timeline.grainNs, times.end / timeline.grainNs] : [0, timeline.length];
    this.threads = new Map();
    for (const thread of timeline.threads) {
      const sample = timeline.firstSampleOf(thread), key = sample >= 0 && keyOfThread(samples[sample]);
      if (sample >= 0)
        this.threads.set(key, [...this.threads.get(key) || [], thread]);
    }
  }

  // The parts {sample, begin, end, waiting} of the thread's runs between two times; waiting: the part that waits for them.
  partsOf(thread, begin, end, waiting = null) {
    const {timeline} = this, parts = [];
    for (let run = timeline.runAt(thread, begin); run < thread.last; run++) {
      const part = {sample: timeline.sample[run], begin: Math.max(begin, timeline.beginOf(thread, run)),
                    end: Math.min(end, timeline.until[run]), waiting};
      if (part.begin >= end)
        break;
      this.steps++;
      if (part.sample >= 0)
        parts.push(part);
    }
    return parts;
  }

  // What the thread did for which this part waited; sample -1: it was not seen then.
  nextParts(waiting) {
    const {begin, end} = waiting, {blamed} = this.samples[waiting.sample].wait;
    const parts = this.steps < CHAIN_STEPS_MAX
      ? (this.threads.get(keyOfThread(blamed)) || []).flatMap(thread => this.partsOf(thread, begin, end, waiting)) : [];
    const unseen = parts.reduce((left, part) => left - (part.end - part.begin), end - begin);
    return unseen > 0 ? [...parts, {sample: -1, begin, end: begin + unseen, name: nameOf(blamed)}] : parts;
  }

  // Rows {name, state, place, wait, time, parts}, the most time first: threads of one name at one place. place: a frame, or
  // -1 if not known.
  rowsOf(parts) {
    const rows = new Map();
    for (const part of parts) {
      const sample = part.sample < 0 ? null : this.samples[part.sample], {wait = null, category = ''} = sample || {};
      const name = sample ? nameOf(sample) : part.name;
      const place = sample ? this.table.programPlaceOf(sample.recording, sample.stack) : -1;
      const key = [name, category, place, wait && wait.resource, wait && wait.blamed && nameOf(wait.blamed)].join('\0');
      if (!rows.has(key))
        rows.set(key, {name, category, place, wait, isSeen: sample !== null, time: 0, parts: []});
      const row = rows.get(key);
      row.time += (part.end - part.begin) * this.timeline.grainNs;
      row.parts.push(part);
    }
    return [...rows.values()].sort((a, b) => b.time - a.time);
  }

  // Rows for the resources that the samples of these numbers waited for. The first rows that waited themselves have `next`:
  // rows of the same kind.
  of(numbers) {
    const isOf = new Set(numbers), waiting = part => isOf.has(part.sample);
    const parts = this.timeline.threads.flatMap(thread => this.partsOf(thread, this.begin, this.end).filter(waiting));
    this.steps = 0;
    return this.follow(parts, 0);
  }

  // Threads that are not told apart are not followed.
  goesOn(part) {
    const {wait} = this.samples[part.sample];
    return wait && wait.blamed && wait.blamed.tid && !this.isInChain(part, wait.blamed);
  }

  // No thread waits for itself.
  isInChain(part, thread) {
    for (let at = part; at; at = at.waiting) {
      if (isSameThread(this.samples[at.sample], thread))
        return true;
    }
    return false;
  }

  follow(waiting, depth) {
    const rows = this.rowsOf(waiting.filter(part => this.goesOn(part)).flatMap(part => this.nextParts(part)));
    const first = rows.slice(0, CHAIN_SHOWN).find(({wait}) => wait && wait.blamed);
    if (first && depth + 1 < CHAIN_DEPTH)
      first.next = this.follow(first.parts, depth + 1);
    return rows;
  }
}

// "middle: read in query, for pipe b, woken by backend"
function chainText({name, category, place, wait, isSeen}, frames) {
  if (!isSeen)
    return `${name}: ${NOT_SAMPLED}`;
  const where = place >= 0 ? ` in ${frames[place].label}` : '', {waker = null, owner = null, resource = ''} = wait || {};
  const by = owner ? `, of ${nameOf(owner)}` : waker ? `, woken by ${waker.threadName}` : '';
  return `${name}: ${category}${where}` + (resource ? `, for ${resource}` : '') + by;
}
