/* What the page shows, read from its address and written back to it. */

Explorer.state = (function () {
  "use strict";

  const NAMES = { tab: ["one", "again", "design"], mechanism: ["rr", "llp", "geom", "lap"] };
  const DEFAULTS = {
    tab: "one", mechanism: "llp", priors: "beta-2-30", k: 8, epsilon: 1, seed: 2023, attack: 1,
    releases: 1, redraw: 1, eta: 0.05, advantage: 0, unlimited: 1,
  };
  const NUMBERS = {
    k: { low: 1, high: 64, step: 1 },
    epsilon: { low: 0.05, high: 6, step: 0.01 },
    seed: { low: 0, high: 999999, step: 1 },
    attack: { low: 1, high: 999, step: 1 },
    releases: { low: 0, high: 12, step: 1 },
    redraw: { low: 0, high: 1, step: 1 },
    eta: { low: 0.01, high: 0.99, step: 0.01 },
    advantage: { low: 0, high: 0.5, step: 0.01 },
    unlimited: { low: 0, high: 1, step: 1 },
  };
  // A note prints at most this many characters of an invalid value.
  const PRINTED = 40;
  const KNOWN_PRIORS = "uniform, beta-2-30, two-0.1-0.9-0.5 or drawn- and 20 digits";

  const printed = (text) => (text.length > PRINTED ? `${text.slice(0, PRINTED)}…` : text);

  function number(name, text, notes) {
    const { low, high, step } = NUMBERS[name], value = text.trim() === "" ? NaN : Number(text);
    const shown = printed(text);
    if (Number.isNaN(value)) {
      notes.push(`${name} = ${shown} is not a number; ${DEFAULTS[name]} is shown.`);
      return DEFAULTS[name];
    }
    const kept = Math.min(Math.max(value, low), high);
    const rounded = Number((Math.round(kept / step) * step).toFixed(2));
    if (kept !== value) notes.push(`${name} = ${shown} is outside ${low} to ${high}; ${rounded} is shown.`);
    else if (Math.abs(rounded - kept) > 1e-9) notes.push(`${name} = ${shown} is rounded to ${rounded}.`);
    return rounded;
  }

  function choice(name, text, allowed, names, notes) {
    if (allowed(text)) return text;
    notes.push(`${name} = ${printed(text)} is not known; it can be ${names}. `
      + `${DEFAULTS[name]} is shown.`);
    return DEFAULTS[name];
  }

  /** The settings in the query of an address, and a note for each invalid or rounded value. */
  function read(query) {
    const state = { ...DEFAULTS }, notes = [];
    for (const [name, text] of new URLSearchParams(query)) {
      if (Object.hasOwn(NUMBERS, name)) state[name] = number(name, text, notes);
      else if (Object.hasOwn(NAMES, name)) {
        const known = (text) => NAMES[name].includes(text);
        state[name] = choice(name, text, known, NAMES[name].join(", "), notes);
      } else if (name === "priors") {
        state.priors = choice(name, text, Explorer.people.distributionOf, KNOWN_PRIORS, notes);
      } else if (name !== "highlight") notes.push(`${printed(name)} is not a setting of this page.`);
    }
    return { state, notes };
  }

  /** The query that reads back to the same state; defaults are left out. */
  function write(state) {
    const query = new URLSearchParams();
    for (const name of Object.keys(DEFAULTS)) {
      if (state[name] !== DEFAULTS[name]) query.set(name, state[name]);
    }
    return query.toString();
  }

  return { DEFAULTS, NUMBERS, read, write };
})();
