// The view in the page's address, behind #, so that a link shows the same one.

// {id: value} of the choices that are not the first ones, as "thread=worker&search=lock".
function fragmentOf(values) {
  return new URLSearchParams(values).toString();
}

// Those that the address names. One of another page may name what is not here: that is ignored.
function valuesOfFragment(fragment) {
  return Object.fromEntries(new URLSearchParams(fragment.replace(/^#/, '')));
}
