// Mouse and keyboard.

function bindMouse(page) {
  const {graph, tip} = page, {canvas} = graph;
  canvas.addEventListener('mousemove', event => {
    const node = graph.at(event.clientX, event.clientY);
    graph.showMark(node < 0 ? graph.selected : node);
    if (node < 0)
      tip.hide();
    else
      page.showTip(node, event.clientX, event.clientY);
  });
  canvas.addEventListener('mouseleave', () => {
    tip.hide();
    graph.showMark(graph.selected);
  });
  // The second click of a double one would zoom at another place: what is under it has moved.
  canvas.addEventListener('click', event => {
    const node = graph.at(event.clientX, event.clientY);
    if (event.detail === 1 && node >= 0 && node !== graph.zoomed) {
      graph.before = graph.zoomed;
      page.zoom(node);
    } else if (event.detail === 1) {
      graph.before = graph.zoomed;
    }
  });
  canvas.addEventListener('dblclick', () => {
    page.zoom(graph.before);
    page.zoomOut();
  });
}

// The node that a key leads to; towards the root is up in an icicle.
function neighbour(graph, key) {
  const {tree} = graph.model, node = Math.max(graph.selected, 0);
  if (graph.selected < 0)
    return graph.zoomed;
  const outward = graph.isIcicle ? 'ArrowDown' : 'ArrowUp';
  if (key === outward)
    return node + 1 < tree.end[node] ? node + 1 : node;
  if (key === 'ArrowUp' || key === 'ArrowDown')
    return Math.max(tree.parent[node], 0);
  if (node === 0)
    return 0;
  const last = tree.end[tree.parent[node]];
  if (key === 'ArrowRight')
    return tree.end[node] < last ? tree.end[node] : node;
  let before = tree.parent[node] + 1;
  while (before < node && tree.end[before] < node)
    before = tree.end[before];
  return before;
}

function bindKeys(page) {
  const {graph} = page;
  graph.element.addEventListener('keydown', event => {
    if (event.key.startsWith('Arrow')) {
      const node = neighbour(graph, event.key);
      if (!graph.layout.isSeen(node))
        return;
      graph.select(node);
      const {x, y} = graph.place(node);
      page.showTip(node, x, y);
    } else if (event.key === 'Enter' && graph.selected >= 0) {
      const node = graph.selected;
      page.zoom(node);
      graph.select(node);
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener('keydown', event => {
    const isTyping = event.target.matches('input[type=search], select');
    const action = {
      'Escape': () => { byId('search').blur(); page.zoomOut(); },
      'Backspace': () => page.zoomOut(),
      '/': () => byId('search').focus(),
      'i': () => page.choices.toggle('view'),
      'c': () => page.choices.toggle('stacks'),
      '?': () => page.toggleHelp(),
    }[event.key];
    if (!action || (isTyping && event.key !== 'Escape') || event.ctrlKey || event.metaKey ||
        event.altKey)
      return;
    event.preventDefault();
    action();
  });
}
