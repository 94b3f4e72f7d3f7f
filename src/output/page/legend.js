// What the colours mean, the most time first.

const LEGEND_MAX = 16;

// onFilter(): filters by it, or no more; null: it can't be filtered by.
function legendItem(name, colour, share, onFilter, isChosen) {
  const item = element(onFilter ? 'button' : 'span'), swatch = element('i');
  swatch.style.background = colour;
  item.append(swatch, element('b', name), element('small', share === null ? '' : percent(share)));
  if (onFilter) {
    item.title = isChosen ? 'Show all again' : `Show ${name} alone`;
    item.setAttribute('aria-pressed', String(isChosen));
    item.addEventListener('click', onFilter);
  }
  return item;
}

// parts: [{name, value, hue, time}]. filter: {id, chosen, has(value), onFilter(value)}: the control that filters by
// their values.
function legendItems(parts, total, palette, filter) {
  return parts.filter(part => part.time > 0).sort((a, b) => b.time - a.time).slice(0, LEGEND_MAX)
    .map(part => {
      const isChosen = filter.chosen === part.value;
      return legendItem(part.name, palette.solid(part.hue), part.time / (total || 1),
                        filter.has(part.value) ? () => filter.onFilter(isChosen ? '' : part.value) : null, isChosen);
    });
}

function categoryParts({tree, categories}, hues) {
  return categories.map((name, i) =>
    ({name: name || '[no name]', value: name, hue: hues[i], time: tree.share(0, i)}));
}

// Counted by the functions' own time, which adds up to all time; the most time first.
function moduleParts({functions, frames, tree}) {
  const times = new Map(), self = tree.width === tree.time ? 'self' : 'selfBefore';
  for (const row of functions) {
    const {module} = frames[row.frame];
    times.set(module, (times.get(module) || 0) + row[self]);
  }
  const modules = [...times.keys()].sort((a, b) => times.get(b) - times.get(a));
  const hues = huesOfNames(modules);
  return modules.map((module, i) =>
    ({module, value: module, name: module || '[no module]', hue: hues[i], time: times.get(module)}));
}
