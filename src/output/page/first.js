// What the page says before the graph: what was recorded, what stands out, and what is left out.

// Of what it is: "redis-server/1234 on db1, 10.0 s, 2026-11-25 10:43 UTC".
function subjectText(profile) {
  const {raw} = profile.after;
  const [[pid, name] = [0, 0]] = raw.processes, others = raw.processes.length - 1;
  const process = name ? profile.after.strings[name] + (pid ? `/${pid}` : '') : '';
  const begun = new Date(raw.start_time_ns / 1e6).toISOString().replace('T', ' ').slice(0, 16);
  const host = raw.host ? ` on ${plain(raw.host)}` : '';
  return [process + (others > 0 ? ` and ${others} more` : '') + host, duration(raw.elapsed_ns), `${begun} UTC`]
    .filter(Boolean).join(', ');
}

// The command line that recorded it.
function commandText({recorded_by: recordedBy, command}) {
  return plain(recordedBy || command || '');
}

// The threads that only waited for work, and how long.
function idleText(samples, isHidden) {
  const threads = new Set(samples.map(sample => `${sample.process} ${sample.tid || sample.threadName}`));
  const time = samples.reduce((sum, sample) => sum + sample.wall, 0);
  const names = `${whole(threads.size)} idle ${threads.size === 1 ? 'thread' : 'threads'}`;
  return isHidden ? `${names} hidden (${duration(time)})` : `${names} shown (${duration(time)})`;
}

// Reports mark the kernel's functions and generated ones.
function findingItem([text, detail, label], show) {
  const name = label.replace(/_\[[jk]\]$/, ''), item = element('li');
  const body = element(name ? 'button' : 'span', plain(text));
  if (name) {
    body.title = `Search for ${plain(name)}`;
    body.addEventListener('click', () => show(plain(name)));
  }
  item.append(body);
  if (detail)
    item.append(element('small', plain(detail)));
  return item;
}

// show(name): shows where that function is.
function fillFindings(raw, show) {
  const findings = raw.findings || [];
  byId('alarm').hidden = !raw.deadlocks;
  byId('alarm').append(...(raw.deadlocks || []).map(text => element('p', plain(text))));
  byId('findings').hidden = !findings.length;
  byId('findings').append(...findings.slice(0, FINDINGS_SHOWN).map(row => findingItem(row, show)));
}

const FINDINGS_SHOWN = 4;
