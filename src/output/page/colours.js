// Colours: a thread that runs is warm, one that waits is cool.

function hashOf(text) {
  let hash = 2166136261; // FNV-1a
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}

const OWN_HUES = {running: 14, runnable: 48, futex: 205, sleeping: 225};

// {hue, saturation} of what a thread was doing.
function hueOfState(category) {
  if (category in OWN_HUES)
    return {hue: OWN_HUES[category], saturation: 78};
  if (category === 'unknown' || category === 'stopped' || category === OTHERS)
    return {hue: 60, saturation: 4};
  if (category.startsWith('uninterruptible'))
    return {hue: 285 + hashOf(category) % 30, saturation: 40};
  return {hue: 150 + hashOf(category) % 120, saturation: 45};
}

function hueOfName(name) {
  return name === OTHERS || !name ? {hue: 60, saturation: 4}
                                  : {hue: hashOf(name) % 360, saturation: 50};
}

class Palette {
  constructor(isDark) {
    this.isDark = isDark;
    this.texts = new Map();
    const css = getComputedStyle(document.documentElement);
    const value = name => css.getPropertyValue(name).trim();
    this.ground = value('--ground');
    this.accent = value('--accent');
    this.text = isDark ? '#f2f2ee' : '#161614';
    this.found = isDark ? '#a32cc4' : '#e07bff';
    this.foundText = isDark ? '#ffffff' : '#161614';
  }

  // `shade`, 0 to 1, tells neighbours of one hue apart; `share` is how much of the frame the hue
  // speaks for: the less, the paler. In eight steps each, so that few texts are made.
  css({hue, saturation}, shade, share) {
    const shadeStep = Math.round(8 * shade), shareStep = Math.round(8 * share);
    const key = ((hue * 101 + saturation) * 9 + shadeStep) * 9 + shareStep;
    let text = this.texts.get(key);
    if (text === undefined) {
      const vivid = saturation * (0.45 + 0.55 * shareStep / 8);
      const light = this.isDark ? 27 + 9 * shadeStep / 8 : 80 - 10 * shadeStep / 8;
      text = `hsl(${hue} ${vivid.toFixed(0)}% ${light.toFixed(0)}%)`;
      this.texts.set(key, text);
    }
    return text;
  }

  // `part`, -1 to 1, of the largest difference. Its root, so that a tenth of it is seen.
  difference(part) {
    const step = Math.round(12 * Math.sqrt(Math.min(Math.abs(part), 1))) / 12;
    const light = this.isDark ? 30 + 14 * step : 87 - 21 * step;
    return `hsl(${part < 0 ? 215 : 6} ${Math.round(85 * step)}% ${light.toFixed(0)}%)`;
  }

  // What the legend shows.
  solid(hue) {
    return this.css(hue, 0.6, 1);
  }
}
