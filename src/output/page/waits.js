// What threads waited for and the owners of that, as stacks and as a table. src/output/page/html.c describes the input.

const NOT_SAMPLED = '[not sampled then]';
const PLACE_NOT_KNOWN = '[place not known]';
const CHAIN_MAX = 64; // as in src/profile/kind.c
const LOCKS = ['mutex', 'read-write lock'];

// Gives each sample its `wait`, null if it did not wait or the wait is not known, and its `resource`: two processes may have
// locks of the same name.
function linkWaits(recording) {
  const {raw, strings, samples} = recording;
  const isTold = raw.waits !== undefined && !recording.isOfTwo;
  const waits = isTold ? raw.waits.map((row, i) => waitOf(recording, row, raw.wakers ? raw.wakers[i] : [])) : [];
  for (const wait of waits)
    wait.next = waits[wait.next - 1] || null; // what the owner waited for
  samples.forEach((sample, i) => {
    sample.wait = isTold ? waits[raw.sample_waits[i] - 1] || null : null;
    if (sample.wait && !sample.wait.kind && !(sample.wait.waker && sample.wait.waker.isThread))
      sample.wait = null; // it slept for a time, or what for is not known
    sample.resource = sample.wait && `${sample.wait.resource}\0${
      sample.wait.owner ? sample.wait.owner.process : sample.process}`;
  });
  recording.hasWaits = samples.some(sample => sample.wait);
}

// Whether it has only an address: "semaphore 0x55d0c0", "mutex server+0x260be8" of a file without symbols.
function isUnnamed({kind, resource}, modules) {
  const [, file, address] = /^(?:(.*)\+)?(0x[0-9a-f]+)$/.exec(resource.slice(kind.length + 1)) || [];
  return Boolean(address) && (!file || modules.has(file));
}

// Gives samples whose threads wait for different unnamed resources at one place in the program's code one `resource`, with a
// `groupTitle`. Samples of idle threads are not mixed with others.
function groupUnnamed(samples, table) {
  const modules = new Set(table.frames.map(frame => frame.module)), groups = new Map();
  for (const sample of samples) {
    if (!sample.wait || !isUnnamed(sample.wait, modules))
      continue;
    const place = table.programPlaceOf(sample.recording, sample.stack);
    const key = [sample.wait.kind, place, sample.isOfIdleThread, sample.process].join('\0');
    if (!groups.has(key))
      groups.set(key, {place, samples: [], resources: new Set()});
    groups.get(key).samples.push(sample);
    groups.get(key).resources.add(sample.resource);
  }
  for (const [key, {place, samples, resources}] of groups) {
    if (resources.size < 2 || place < 0)
      continue;
    const groupTitle = `${whole(resources.size)} without a name, in ${table.frames[place].label}`;
    for (const sample of samples)
      Object.assign(sample, {resource: `\0${key}`, groupTitle});
  }
}

function partOf({raw, strings}, process, name, tid) {
  const [pid, program] = raw.processes[process] || [0, 0], threadName = strings[name] || '';
  return {threadName, tid, thread: tid ? `${threadName}/${tid}` : threadName,
          process: pid ? `${strings[program]}/${pid}` : strings[program]};
}

// `blamed`: its owner, else the thread that ended it; null: none is known. `stack`: where that was; -1: not known.
function waitOf(recording, [kind, resource, process, name, tid, stackPlus1, next], waker) {
  const {strings} = recording, isOwned = process !== undefined;
  const [wakerName, wakerProcessPlus1, wakerTid, wakerStackPlus1] = waker;
  const owner = isOwned ? partOf(recording, process, name, tid) : null, isThread = wakerProcessPlus1 > 0;
  const by = wakerName ? {...partOf(recording, wakerProcessPlus1 - 1, wakerName, wakerTid), isThread,
                          stack: wakerStackPlus1 - 1} : null;
  const isWoken = !owner && by !== null && isThread;
  return {
    kind: strings[kind], resource: strings[resource], next: isOwned ? next : 0,
    stack: isOwned ? stackPlus1 - 1 : isWoken ? by.stack : -1,
    owner, waker: by, isWoken, blamed: isWoken ? by : owner,
  };
}

// The waits that start at the sample's thread: for its owner, that one's wait for its owner, and so on. In a circle, each thread
// appears once.
function chainOf(sample) {
  const chain = [], passed = [sample];
  for (let {wait} = sample; wait && wait.blamed && chain.length < CHAIN_MAX; wait = wait.next) {
    if (chain.length && passed.some(thread => isSameThread(thread, wait.blamed)))
      break;
    chain.push(wait);
    passed.push(wait.blamed);
  }
  return chain;
}

// Threads that are not told apart may be different ones.
function isSameThread(a, b) {
  return Boolean(a.tid) && a.tid === b.tid && a.process === b.process;
}

// The sample under the one at the end of the chain of owners; unchanged if it has no owner. Times stay those of the sample.
function blamed(sample) {
  const last = chainOf(sample).at(-1);
  return last ? Object.assign(Object.create(sample), last.blamed, {waiter: sample}) : sample;
}

// The path of a blamed sample, root first: the owner's stack, the resource it holds, the name of the waiting thread, and the
// waiting thread's stack. The owner's name is a root, because it may also be that of all threads. `table` is the FrameTable.
function blamePath(table, sample) {
  const {waiter} = sample;
  if (!waiter)
    return [];
  const parts = [table.pathOf(waiter)];
  let name = waiter.threadName;
  for (const wait of chainOf(waiter)) {
    parts.push([...placeOf(table, waiter.recording, wait), table.note(heldText(wait)),
                table.threadOf(name)]);
    name = wait.blamed.threadName;
  }
  return parts.reverse().flat();
}

// An owner of anything else than a lock or a thread's end is a process.
function placeOf(table, recording, {kind, stack, isWoken}) {
  if (stack >= 0)
    return table.pathOf({recording, stack});
  const isThread = !isWoken && LOCKS.includes(kind) || kind === 'end of a thread';
  return [table.note(isThread ? NOT_SAMPLED : PLACE_NOT_KNOWN)];
}

function heldText({kind, resource, isWoken}) {
  if (isWoken)
    return resource ? `[ends wait for ${resource}]` : '[ends wait]';
  return LOCKS.includes(kind) ? `[holds ${resource}]` : `[${resource}]`;
}

// Whether the graph has the sample, by the choice {waiting, chosen}. waiting: '' for all time, 'wait' for waits, 'blame' for
// those with an owner. chosen: null or {resource, owner}, with the name of the owner's threads, or of what ended the waits; ''
// for all.
function isOfWaits({wait, resource}, {waiting, chosen}) {
  if (!waiting)
    return true;
  const by = wait && (wait.blamed || wait.waker);
  return wait !== null && (waiting === 'wait' || wait.blamed !== null) &&
    (!chosen || (chosen.resource === resource && (!chosen.owner || (by && nameOf(by) === chosen.owner))));
}

// For each node of blamed stacks, whether it shows an owner rather than the waiting threads: it is under the name of the waiting
// thread.
function ownersOf({tree, frames}, isInverted) {
  const isPast = new Uint8Array(tree.length); // whether that name is on the path to the node
  for (let node = 1; node < tree.length; node++)
    isPast[node] = isPast[tree.parent[node]] || (frames[tree.frame[node]].flags & FLAG_THREAD ? 1 : 0);
  return isPast.map((isWaiter, node) => isInverted ? isWaiter : node && !isWaiter ? 1 : 0);
}

// What the graph omits, and how to read it. unknown, lost: the time for which the owner is not known, and that with the shown
// time; unknown is 0 if there is none.
function waitingText(waiting, unknown, lost) {
  switch (waiting) {
  case 'wait': return ' Only waits for something that is known.';
  case 'blame': return ' Only waits for a known owner, or that a known thread ended: its stack, what it holds, and on that the ' +
    'thread that waits, with its stack.' +
    (unknown ? ` ${unknown} of the ${lost} lost are not here, as the owner was not known.` : '');
  default: return '';
  }
}

function nameOf(thread) {
  return thread.threadName || '[no name]';
}

// ---- The table: what costs most waiting time ----

// Threads with one name, on one side of a resource, and the stacks that they were in; -1: not
// known.
class Party {
  constructor(name) {
    Object.assign(this, {name, time: 0, threads: new Set(), stacks: new Map()});
  }

  add(thread, stack, time) {
    this.time += time;
    this.threads.add(thread);
    this.stacks.set(stack, (this.stacks.get(stack) || 0) + time);
  }
}

function partyOf(parties, name) {
  if (!parties.has(name))
    parties.set(name, new Party(name));
  return parties.get(name);
}

function byTime(parties) {
  return [...parties.values()].sort((a, b) => b.time - a.time);
}

// Rows {key, kind, title, resources, process, time, owned, idle, waiters, owners, wakers, blamed, threads, place, numbers (of
// samples), blamedNames}, sorted: resources that only idle threads wait for come last, those with an owner come before those
// without, then the most time first. `owned` is the time for which the owner is known, `blamed` that for which the owner or the
// thread that ended the wait is known.
function countWaits({samples, table}, kept) {
  const rows = new Map();
  samples.forEach((sample, i) => {
    const {wait, resource, time} = sample, waiter = sample.waiter || sample;
    if (!wait || !kept[i])
      return;
    if (!rows.has(resource)) {
      rows.set(resource, {key: resource, kind: wait.kind, title: waiter.groupTitle || wait.resource || '[not known]',
                          resources: new Set(), time: 0, owned: 0, blamed: 0, idle: 0, process: wait.owner ? wait.owner.process : waiter.process,
                          waiters: new Map(), owners: new Map(), wakers: new Map(), threads: new Set(), places: new Map(), numbers: [], blamedNames: new Set()});
    }
    const row = rows.get(resource);
    row.time += time;
    row.numbers.push(i);
    row.idle += waiter.isOfIdleThread ? time : 0;
    row.blamed += wait.blamed ? time : 0;
    if (wait.blamed)
      row.blamedNames.add(nameOf(wait.blamed));
    row.resources.add(wait.resource);
    row.threads.add(waiter.thread);
    addTime(row.places, table.programPlaceOf(waiter.recording, waiter.stack), time);
    partyOf(row.waiters, nameOf(waiter)).add(waiter.thread, waiter.stack, time);
    if (wait.waker)
      partyOf(row.wakers, nameOf(wait.waker)).add(wait.waker.thread, wait.waker.stack, time);
    if (wait.owner) {
      row.owned += time;
      partyOf(row.owners, nameOf(wait.owner)).add(wait.owner.thread, wait.stack, time);
    }
  });
  return [...rows.values()].map(row => ({...row, place: largest(row.places), waiters: byTime(row.waiters),
                                         owners: byTime(row.owners), wakers: byTime(row.wakers)}))
    .sort((a, b) => (a.idle === a.time) - (b.idle === b.time) || (b.owned > 0) - (a.owned > 0) || b.time - a.time);
}

// ---- Deadlocks ----

// The links {from, resource, to} of a circle in the sample's chain of owners, starting at the thread with the smallest id; null:
// there is none.
function circleOf(sample) {
  const links = [];
  let from = sample;
  for (let {wait} = sample; wait && wait.owner && links.length < CHAIN_MAX; wait = wait.next) {
    links.push({from, resource: wait.resource, to: wait.owner});
    const first = links.findIndex(link => isSameThread(link.from, wait.owner));
    from = wait.owner;
    if (first < 0)
      continue;
    const circle = links.slice(first), ids = circle.map(link => link.from.tid);
    const least = ids.indexOf(Math.min(...ids));
    return [...circle.slice(least), ...circle.slice(0, least)];
  }
  return null;
}

// The distinct circles in the samples. Threads are sampled one after the other, so a circle that was seen only once may never
// have existed.
function findCircles(samples) {
  const found = new Map();
  for (const sample of samples) {
    const circle = circleOf(sample);
    if (!circle)
      continue;
    const key = JSON.stringify(circle.map(link => [link.from.tid, link.from.process, link.resource]));
    const known = found.get(key) || {circle, count: 0};
    known.count += sample.count;
    found.set(key, known);
  }
  return [...found.values()].filter(({count}) => count > 1).map(({circle}) => circle);
}

// The numbers of the samples that are part of a circle.
function numbersInCircles(samples) {
  return new Set([...samples.keys()].filter(i => {
    const circle = samples[i].wait && circleOf(samples[i]);
    return circle && circle.some(link => isSameThread(link.from, samples[i]));
  }));
}

function circleText(circle) {
  const [first, ...others] = circle;
  if (!others.length)
    return `${first.from.thread} waits for itself (${first.resource})`;
  return `${first.from.thread} waits for ${first.to.thread} (${first.resource})` +
    others.map(({to, resource}) => `, which waits for ${to.thread} (${resource})`).join('');
}

// What was proven while it was recorded; an earlier version's recording has the circles alone.
function deadlockTexts(lines, circles) {
  return lines.length ? lines.map(line => plain(line.replace(/^deadlock /, '')))
                      : circles.map(circleText);
}
