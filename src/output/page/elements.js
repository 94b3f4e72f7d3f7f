// Elements with texts; a text is never read as HTML.

function byId(id) {
  return document.getElementById(id);
}

function element(name, text = '', attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes))
    made.setAttribute(key, value);
  return made;
}

function fillSelect(select, options) {
  const all = document.createDocumentFragment(); // there may be more than a call takes arguments
  for (const [value, text] of options) {
    const option = element('option', text);
    option.value = value;
    all.append(option);
  }
  select.replaceChildren(all);
}
