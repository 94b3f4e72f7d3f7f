// Mouse and keyboard.

// Returns whether the browser let it.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // not on this page, or an older browser
    const box = element('textarea', text);
    document.body.append(box);
    box.select();
    const isCopied = document.execCommand('copy');
    box.remove();
    return isCopied;
  }
}

function bindMouse(page) {
  const {graph, tip} = page, {canvas} = graph;
  canvas.addEventListener('mousemove', event => {
    const node = graph.hovered = graph.at(event.clientX, event.clientY);
    graph.showMark(node < 0 ? graph.selected : node);
    if (node < 0)
      tip.hide();
    else
      page.showTip(node, event.clientX, event.clientY);
  });
  canvas.addEventListener('mouseleave', () => {
    tip.hide();
    graph.hovered = -1;
    graph.showMark(graph.selected);
  });
  // The second click of a double click would zoom at another place: what is under it has moved.
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

// The node that a key moves to; in an icicle the up key moves towards the root. Nodes too narrow
// to be seen are skipped.
function neighbour({model: {tree}, layout, selected, zoomed, isIcicle}, key) {
  if (selected < 0 || !layout.placeOf(selected))
    return zoomed;
  if (key === (isIcicle ? 'ArrowDown' : 'ArrowUp'))
    return layout.childrenOf(selected)[0] ?? selected;
  if (selected === 0)
    return 0;
  if (key === 'ArrowUp' || key === 'ArrowDown')
    return tree.parent[selected];
  const row = layout.childrenOf(tree.parent[selected]);
  return row[row.indexOf(selected) + (key === 'ArrowRight' ? 1 : -1)] ?? selected;
}

function bindKeys(page) {
  const {graph} = page;
  graph.element.addEventListener('keydown', event => {
    if (event.key.startsWith('Arrow')) {
      page.selectNode(neighbour(graph, event.key));
    } else if (event.key === 'Enter' && graph.selected >= 0) {
      const node = graph.selected;
      page.zoom(node);
      graph.select(node);
    } else {
      return;
    }
    event.preventDefault();
  });
  byId('search').addEventListener('keydown', event => {
    if (event.key === 'Enter')
      page.showHit(event.shiftKey ? -1 : 1);
  });
  document.addEventListener('keydown', event => {
    const isTyping = event.target.matches('input[type=search], select');
    const action = {
      'Escape': () => {
        byId('search').blur();
        if (!page.zoomOut() && page.choices.times)
          page.showTimes(null);
      },
      'Backspace': () => page.zoomOut(),
      '/': () => byId('search').focus(),
      'n': () => page.showHit(1),
      'N': () => page.showHit(-1),
      'y': () => page.copyStack(),
      'g': () => byId('graph').focus(),
      't': () => byId('strip-time').focus(),
      'u': () => page.choices.toggleIdle(),
      'f': () => page.focusFrame(),
      'h': () => page.hideFrame(),
      'l': () => byId('own').click(),
      'x': () => page.toggleCompare(),
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
