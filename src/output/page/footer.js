// The recordings' own accounts, and the commands: the one that made the page and, if that only read
// a recording, the one that recorded it.

// [name, command].
function commandRows({recordings, before, after: {raw: {command}}}) {
  const rows = [];
  for (const recording of recordings) {
    const which = recording === before ? 'Before' : 'After';
    if (recording.raw.recorded_by)
      rows.push([before ? `${which} recorded by` : 'Recorded by', recording.raw.recorded_by]);
  }
  return command && !rows.some(row => row[1] === command) ? [...rows, ['Page made by', command]]
                                                          : rows;
}

// How long 0, 1, 2, 3 to 4, 5 to 8 ... threads of a process ran at once.
function parallelText(rows) {
  const all = rows.reduce((sum, ns) => sum + ns, 0), texts = [];
  for (let first = 0, last = 0; first < rows.length;) {
    const sum = rows.slice(first, last + 1).reduce((a, ns) => a + ns, 0);
    if (sum >= all / 1000)
      texts.push(`${first === last ? first : `${first}\u2013${last}`} for ${percent(sum / all)}`);
    first = last + 1;
    last = last < 2 ? first : 2 * last;
  }
  return texts.length && `${texts.join(', ')} of the time`;
}

// Both kinds of recordings begin so.
function beginRows({raw}) {
  const begun = new Date(raw.start_time_ns / 1e6).toISOString().replace('T', ' ').slice(0, 19);
  return [['Reason', raw.reason && plain(raw.reason)], ['Started', `${begun} UTC`]];
}

function summaryRows(recording) {
  const {raw} = recording, {objects} = raw;
  const rows = objects ? [['Length', duration(raw.elapsed_ns)], ...objectRows(raw)] : timeRows(raw);
  return [...beginRows(recording), ...rows].filter(row => row[1]);
}

function timeRows(raw) {
  const {summary} = raw;
  const share = count => summary.samples ? percent(count / summary.samples) : percent(0);
  const modules = summary.modules_unreadable;
  return [
    ['Length', `${duration(raw.elapsed_ns)}, one tick every ${duration(raw.period_ns)}`],
    ['Ticks', `${whole(summary.ticks_planned)} planned, ${whole(summary.ticks_taken)} taken, ` +
      `${whole(summary.ticks_late)} late`],
    ['Seen', `${whole(summary.threads_seen)} threads, ${whole(summary.samples)} samples, ` +
      `${whole(raw.stacks.length)} stacks`],
    ['Stacks', `${share(summary.samples_cut)} cut, ${share(summary.samples_unnamed)} with an ` +
      `unnamed frame${summary.samples_unnamed ? ' (often just one)' : ''}`],
    ...(raw.deadlocks || []).map(text => ['Deadlock', plain(text)]),
    ['Running at once', parallelText(raw.parallel)],
    ['Without a stack', summary.samples_not_captured && share(summary.samples_not_captured)],
    ['Assumed', summary.samples_assumed && share(summary.samples_assumed)],
    ['Looks put off', summary.observations_put_off && whole(summary.observations_put_off)],
    ['Unreadable modules', modules && whole(modules)],
    ['Kept', raw.kept !== 'all' && `${raw.kept} samples only`],
    ['Running threads', summary.kernel_samples && `${whole(summary.kernel_samples)} samples of ` +
      `${whole(summary.threads_kernel_sampled)} threads by the kernel, without a pause`],
    ['Pauses', summary.pauses ? `${whole(summary.pauses)}: ${duration(summary.pause_median_ns)} ` +
      `median, ${duration(summary.pause_p99_ns)} p99, ${duration(summary.pause_max_ns)} max`
      : summary.kernel_samples ? 'none' : 'none: no thread was found running'],
    ['Pauses skipped', summary.samples_thinned && `${whole(summary.samples_thinned)}, because ` +
      'threads had spent what --max-pause allows'],
  ];
}

function fillFooter(profile) {
  for (const [name, command] of commandRows(profile)) {
    const text = element('dd');
    text.append(element('code', plain(command)));
    byId('commands').append(element('dt', name), text);
  }
  for (const recording of profile.recordings) {
    const list = element('dl');
    if (profile.before)
      list.append(element('dt', recording === profile.before ? 'Before' : 'After'), element('dd'));
    for (const [name, text] of summaryRows(recording))
      list.append(element('dt', name), element('dd', text));
    byId('summary').append(list);
  }
}
