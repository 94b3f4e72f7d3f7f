// Tabs, one of which shows its panel. Arrow keys lead from one to the next
// (w3.org/WAI/ARIA/apg/patterns/tabs).

class Tabs {
  // onSelect(): a panel is shown that was hidden.
  constructor(list, onSelect) {
    this.onSelect = onSelect;
    this.tabs = [...list.querySelectorAll('[role=tab]')].filter(tab => !tab.hidden);
    for (const tab of this.tabs) {
      const panel = byId(tab.getAttribute('aria-controls'));
      panel.setAttribute('role', 'tabpanel');
      panel.setAttribute('aria-labelledby', tab.id);
      tab.addEventListener('click', () => this.select(tab));
      tab.addEventListener('keydown', event => this.move(tab, event));
    }
  }

  select(chosen) {
    for (const tab of this.tabs) {
      tab.setAttribute('aria-selected', String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      byId(tab.getAttribute('aria-controls')).hidden = tab !== chosen;
    }
    this.onSelect();
  }

  move(tab, event) {
    const {tabs} = this, step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step)
      return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    this.select(next);
    next.focus();
    event.preventDefault();
  }
}
