// The recording's own account: the command and the summary.

function fillFooter(raw) {
  const {summary} = raw;
  const share = count => summary.samples ? percent(count / summary.samples) : percent(0);
  const modules = summary.modules_unreadable;
  const rows = [
    ['Begun', new Date(raw.start_time_ns / 1e6).toISOString().replace('T', ' ').slice(0, 19) + ' UTC'],
    ['Length', `${duration(raw.elapsed_ns)}, a tick every ${duration(raw.period_ns)}`],
    ['Ticks', `${whole(summary.ticks_planned)} planned, ${whole(summary.ticks_taken)} taken, ` +
      `${whole(summary.ticks_late)} late`],
    ['Seen', `${whole(summary.threads_seen)} threads, ${whole(summary.samples)} samples, ` +
      `${whole(raw.stacks.length)} stacks`],
    ['Stacks', `${share(summary.samples_cut)} cut, ${share(summary.samples_unnamed)} with frames ` +
      'without symbols'],
    ['Not captured', summary.samples_not_captured && share(summary.samples_not_captured)],
    ['Assumed', summary.samples_assumed && share(summary.samples_assumed)],
    ['Modules unread', modules && whole(modules)],
    ['Kept', raw.kept !== 'all' && `${raw.kept} samples only`],
    ['Pauses', summary.pauses ? `${whole(summary.pauses)}: ${duration(summary.pause_median_ns)} ` +
      `median, ${duration(summary.pause_p99_ns)} p99, ${duration(summary.pause_max_ns)} max`
      : 'none: no thread was found running'],
  ];
  byId('command').textContent = plain(raw.command);
  byId('command').hidden = !raw.command;
  for (const [name, text] of rows.filter(row => row[1]))
    byId('summary').append(element('dt', name), element('dd', text));
}
