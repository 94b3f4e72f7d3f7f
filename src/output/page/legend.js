// What the colours mean, the most time first.

const LEGEND_MAX = 16;

function legendItem(name, colour, share) {
  const item = element('span'), swatch = element('i');
  swatch.style.background = colour;
  item.append(swatch, element('b', name), element('small', percent(share)));
  return item;
}

// parts: [{name, hue, time}].
function legendItems(parts, total, palette) {
  return parts.filter(part => part.time > 0).sort((a, b) => b.time - a.time).slice(0, LEGEND_MAX)
    .map(part => legendItem(part.name, palette.solid(part.hue), part.time / (total || 1)));
}

function categoryParts({tree, categories}, hues) {
  return categories.map((name, i) =>
    ({name: name || '[no name]', hue: hues[i], time: tree.share(0, i)}));
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
    ({module, name: module || '[no module]', hue: hues[i], time: times.get(module)}));
}
