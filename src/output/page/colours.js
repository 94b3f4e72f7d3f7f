// Colours: running threads are warm, waiting ones cool. Text on each colour has a contrast of at least
// 4.5 to 1 (WCAG 2.2, 1.4.3).

function hashOf(text) {
  let hash = 2166136261; // FNV-1a
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}

const OWN_HUES = {running: 14, runnable: 48, futex: 205, sleeping: 225};
const COOL_HUES = [150, 165, 180, 245, 260, 275, 135, 300];
const ALL_HUES = [210, 28, 125, 275, 355, 52, 172, 325]; // as far apart as the eye sees them
const OWNER_HUE = {hue: 340, saturation: 60}; // of what the owner of a lock did, under those that wait
const GREY = {hue: 60, saturation: 4};

// A name has the same hue in each recording, unless a name before it in the list has already taken
// that hue.
class Hues {
  constructor(hues, saturation) {
    this.hues = hues;
    this.saturation = saturation;
    this.taken = new Set();
  }

  of(name) {
    const {hues} = this, first = hashOf(name) % hues.length;
    let at = first;
    while (this.taken.has(at)) {
      at = (at + 1) % hues.length;
      if (at === first)
        this.taken.clear();
    }
    this.taken.add(at);
    return {hue: hues[at], saturation: this.saturation};
  }
}

// {hue, saturation} of what threads were doing, for each category.
function huesOfStates(categories) {
  const cool = new Hues(COOL_HUES, 45);
  return categories.map(category => {
    if (category in OWN_HUES)
      return {hue: OWN_HUES[category], saturation: 78};
    if (category === 'unknown' || category === 'stopped' || category === OTHERS)
      return GREY;
    if (category.startsWith('uninterruptible'))
      return {hue: 315 + hashOf(category) % 25, saturation: 40};
    return cool.of(category);
  });
}

// The same for names; the names with the most time come first.
function huesOfNames(names) {
  const hues = new Hues(ALL_HUES, 50);
  return names.map(name => name === OTHERS || !name ? GREY : hues.of(name));
}

class Palette {
  constructor(isDark) {
    this.isDark = isDark;
    this.texts = new Map();
    const css = getComputedStyle(document.documentElement);
    const value = name => css.getPropertyValue(name).trim();
    this.ground = value('--ground');
    this.accent = value('--accent');
    this.line = value('--line');
    this.alarm = value('--grown');
    this.text = isDark ? '#f2f2ee' : '#161614';
    this.found = isDark ? '#a32cc4' : '#e07bff';
    this.foundText = isDark ? '#ffffff' : '#161614';
    this.otherText = isDark ? '#bcbcb6' : '#4e4e49'; // during a search
  }

  // `shade`, 0 to 1, tells neighbours of one hue apart. `share` is how much of the frame the hue
  // stands for: the less, the paler. Both have eight steps, to limit the number of strings.
  css({hue, saturation}, shade, share) {
    const shadeStep = Math.round(8 * shade), shareStep = Math.round(8 * share);
    const key = ((hue * 101 + saturation) * 9 + shadeStep) * 9 + shareStep;
    let text = this.texts.get(key);
    if (text === undefined) {
      const vivid = saturation * (0.45 + 0.55 * shareStep / 8);
      const light = this.isDark ? 23 + 6 * shadeStep / 8 : 80 - 10 * shadeStep / 8;
      text = `hsl(${hue} ${vivid.toFixed(0)}% ${light.toFixed(0)}%)`;
      this.texts.set(key, text);
    }
    return text;
  }

  // `part`, -1 to 1, is relative to the largest difference. Its square root is used, so that a tenth
  // is visible.
  difference(part) {
    const step = Math.round(12 * Math.sqrt(Math.min(Math.abs(part), 1))) / 12;
    const light = this.isDark ? 30 + 14 * step : 87 - 21 * step;
    return `hsl(${part < 0 ? 215 : 6} ${Math.round(85 * step)}% ${light.toFixed(0)}%)`;
  }

  // The colour that the legend shows.
  solid(hue) {
    return this.css(hue, 0.6, 1);
  }
}
