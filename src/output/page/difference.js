// How two recordings differ: grown is red, shrunk is blue, and the colour is stronger the closer the
// difference is to the largest of all frames.

// {of(node), largest}: the difference of each node, in its self time or in its total time.
function differencesOf(tree, isSelf) {
  const [after, before] = isSelf ? [tree.self, tree.selfBefore] : [tree.time, tree.before];
  const of = node => after[node] - before[node];
  let largest = 0;
  for (let node = 1; node < tree.length; node++)
    largest = Math.max(largest, Math.abs(of(node)));
  return {of, largest};
}

// A class name. Less than one sample was not measured, so it is no difference.
function toneOfDifference(difference, period) {
  return Math.abs(difference) < period ? 'nothing' : difference > 0 ? 'grown' : 'shrunk';
}

// The time of the stacks that only one recording has, and that have no width in the other.
function unseenTime(tree) {
  const other = tree.width === tree.time ? tree.before : tree.time;
  let time = 0;
  for (let node = 1; node < tree.length;) {
    const isUnseen = tree.width[node] === 0;
    time += isUnseen ? other[node] : 0;
    node = isUnseen ? tree.end[node] : node + 1;
  }
  return time;
}

function scaleLegend(largest, palette, textOf) {
  const item = element('span', `shrunk by up to ${textOf(largest)}`, {class: 'scale'});
  for (let step = -6; step <= 6; step++) {
    const swatch = element('i');
    swatch.style.background = palette.difference(step / 6);
    item.append(swatch);
  }
  item.append(`grown by up to ${textOf(largest)}`);
  return item;
}

// Rows of the tooltip: before, after and the difference. `names`: of the amounts and of the counts,
// which are omitted if they have no name.
function differenceTable(tree, node, amounts, names) {
  const table = element('table');
  const shares = [tree.before[node] / (tree.before[0] || 1), tree.time[node] / (tree.time[0] || 1)];
  const row = (...cells) => {
    const made = element('tr');
    cells.slice(0, names.count ? 5 : 4)
      .forEach((text, i) => made.append(element(i ? 'td' : 'th', text)));
    table.append(made);
  };
  row('', names.amount, 'of all', 'self', names.count);
  row('before', amounts.before(tree.before[node]), percent(shares[0]),
      amounts.before(tree.selfBefore[node]), whole(tree.countBefore[node]));
  row('after', amounts.after(tree.time[node]), percent(shares[1]), amounts.after(tree.self[node]),
      whole(tree.count[node]));
  row('difference', amounts.difference(tree.time[node], tree.before[node]),
      signed(100 * (shares[1] - shares[0]), points => `${points.toFixed(2)} points`),
      amounts.difference(tree.self[node], tree.selfBefore[node]),
      signed(tree.count[node] - tree.countBefore[node], whole));
  return table;
}
