// Times and shares as texts, in the chosen unit: "total" is thread-seconds; "threads" is the average
// number of threads, which is the total divided by the recording's length; "elapsed" is each instant of a
// process, divided among its threads.

function percent(share) {
  if (!share)
    return '0 %';
  return `${(100 * share).toFixed(share < 0.0995 ? 2 : 1)} %`;
}

function duration(ns) {
  if (ns >= 1e9)
    return `${(ns / 1e9).toFixed(ns >= 1e11 ? 0 : 2)} s`;
  if (ns >= 1e6)
    return `${(ns / 1e6).toFixed(ns >= 1e8 ? 0 : 1)} ms`;
  return ns >= 500 ? `${(ns / 1e3).toFixed(0)} µs` : '0 s';
}

function threadsText(number) {
  const digits = number >= 100 ? 0 : number >= 10 ? 1 : number >= 0.1 || !number ? 2 : 4;
  return `${number.toFixed(digits)} threads`;
}

// For a place that states the unit once.
function withoutThreads(text) {
  return text.replace(/ threads$/, '');
}

function inUnit(ns, unit, elapsed) {
  return unit === 'threads' && elapsed ? ns / elapsed : ns;
}

function unitAmount(value, unit) {
  return unit === 'threads' ? threadsText(value) : duration(value);
}

// A value that is shown as zero has no sign.
function signed(value, textOf) {
  const text = textOf(Math.abs(value));
  return (!/[1-9]/.test(text) ? '' : value > 0 ? '+' : '\u2212') + text;
}

function samplesText(count) {
  return `${whole(count)} ${count === 1 ? 'sample' : 'samples'}`;
}

// shown: the length of the time that is shown of the recording.
function unitText(unit, time, shown, elapsed, threads) {
  const all = `${threads} ${threads === 1 ? 'thread' : 'threads'}`;
  const length = (shown < elapsed ? `${duration(shown)} of ` : '') + `a recording of ${duration(elapsed)}`;
  if (unit === 'threads' && shown) {
    return 'Times are the average number of threads at a time, running or waiting: 1 is one thread ' +
      `all the time. Shown: ${all} with ${(time / shown).toFixed(2)} in all, in ${length}.`;
  }
  if (unit === 'elapsed') {
    return 'Each instant of a process is divided among its threads: those that run; else those that ' +
      'wait for a CPU; else those in uninterruptible sleep, and threads asleep with a lock ' +
      'that others wait for; else waits of up to a second. The rest ' +
      `is [idle]. Shown: ${all} with ${duration(time)} in all, in ${length}.`;
  }
  return 'Times are thread-seconds, running or waiting. ' +
    `Shown: ${all} with ${duration(time)} in all, in ${length}.`;
}

function whole(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}
