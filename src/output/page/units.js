// Times and shares as texts, in the unit that is chosen.

function percent(share) {
  return `${(100 * share).toFixed(share < 0.0995 ? 2 : 1)} %`;
}

function duration(ns) {
  if (ns >= 1e9)
    return `${(ns / 1e9).toFixed(ns >= 1e11 ? 0 : 2)} s`;
  if (ns >= 1e6)
    return `${(ns / 1e6).toFixed(ns >= 1e8 ? 0 : 1)} ms`;
  return `${(ns / 1e3).toFixed(0)} µs`;
}

// Thread-seconds, or parts of one thread's time: 100 % is one thread for the whole recording.
function amount(ns, unit, elapsed) {
  return unit === 'thread' && elapsed ? percent(ns / elapsed) : duration(ns);
}

function unitText(unit, time, elapsed, threads) {
  const all = `${threads} ${threads === 1 ? 'thread' : 'threads'}`;
  if (unit === 'thread' && elapsed) {
    return `100 % is one thread for the whole recording of ${duration(elapsed)}, running or ` +
      `waiting. The ${all} shown come to ${percent(time / elapsed)}: ` +
      `${(time / elapsed).toFixed(2)} at a time on average.`;
  }
  return `Times are thread-seconds, running or waiting: ${all} shown for a recording of ` +
    `${duration(elapsed)} come to ${duration(time)} together.`;
}

function whole(number) {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}
