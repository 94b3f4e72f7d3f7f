// Dark, light, or as the system is; remembered if the browser allows it.

const THEMES = {auto: 'Auto', dark: 'Dark', light: 'Light'};
const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

class Theme {
  constructor(button, onChange) {
    this.button = button;
    this.onChange = onChange;
    this.chosen = this.remembered();
    button.addEventListener('click', () => this.next());
    systemIsDark.addEventListener('change', () => this.apply());
    this.apply();
  }

  remembered() {
    try {
      const name = localStorage.getItem('fgprof-theme');
      return Object.hasOwn(THEMES, name) ? name : 'auto';
    } catch {
      return 'auto';
    }
  }

  next() {
    const names = Object.keys(THEMES);
    this.chosen = names[(names.indexOf(this.chosen) + 1) % names.length];
    try {
      localStorage.setItem('fgprof-theme', this.chosen);
    } catch { /* a page from disk may have no storage */ }
    this.apply();
  }

  apply() {
    const isDark = this.chosen === 'dark' || (this.chosen === 'auto' && systemIsDark.matches);
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    this.button.textContent = `◐ ${THEMES[this.chosen]}`;
    this.palette = new Palette(isDark);
    this.onChange();
  }
}
