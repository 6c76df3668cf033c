/* The page: turns the state into plots and numbers. */

Explorer.start = (function () {
  "use strict";

  const { auditing, people, plots, state: settings } = Explorer;
  const LEVEL = 0.98;
  // If a frame takes longer than this, in ms, the other mechanisms' curves wait until the slider rests.
  const BUDGET = 30;
  const CURVE_POINTS = 257;
  const LAPLACE_POINTS = 33;
  const KEPT = 24;
  // The part of the work that does not grow with the bag size, in units of a bag size.
  const FIXED_WORK = 2;
  // A wait before the other curves are drawn, the address is written, and the summary is spoken.
  const WAITS = { curves: 90, address: 200, speech: 300 };
  const REACHES = [0.02, 0.05, 0.1, 0.2, 0.3, 0.4];

  /** The results of a mechanism, computed once and cached.

      `most` is the time it may take; null where it would take longer. The estimate comes from the
      last run and grows with the bag size. The first run has no estimate. */
  function resultCache() {
    const kept = new Map(), paces = {};
    return function results(state, population, name, most = Infinity) {
      const mechanism = auditing.mechanism(name, state.k, state.epsilon), reach = reachOf(state);
      const chosen = name === state.mechanism, { bagSize, epsilon } = mechanism;
      const key = [state.priors, state.seed, name, chosen, bagSize, epsilon, reach].join();
      if (kept.has(key)) return kept.get(key);
      if (most < Infinity && !(work(bagSize) * paces[name] <= most)) return null;
      const began = performance.now(), audit = auditing.audit(population.eta, mechanism);
      if (kept.size >= KEPT) kept.delete(kept.keys().next().value);
      kept.set(key, summarise(audit, population, reach, chosen));
      paces[name] = (performance.now() - began) / work(bagSize);
      return kept.get(key);
    };
  }

  /** The time of an audit up to a factor: a part proportional to k, and a constant part. */
  function work(bagSize) {
    return bagSize + FIXED_WORK;
  }

  function reachOf({ epsilon }) {
    return Math.max(4, 2 * epsilon);
  }

  function summarise(audit, population, reach, chosen) {
    const { mechanism, size, nBags } = audit;
    const releases = people.releases(mechanism, population.labels, population.noiseUniform);
    return {
      mechanism,
      size,
      nBags,
      mean: audit.meanAdditive(),
      quantile: chosen ? audit.quantile(LEVEL) : NaN,
      infinite: audit.infiniteFraction(),
      posterior: audit.posteriors(releases),
      multiplicative: multiplicativeCurve(audit, reach),
      additive: additiveCurve(audit, population.reach),
    };
  }

  function multiplicativeCurve(audit, reach) {
    const { epsilon, continuous } = audit.mechanism;
    const far = continuous ? epsilon : reach, count = continuous ? LAPLACE_POINTS : CURVE_POINTS;
    const even = Array.from({ length: count }, (_, j) => far * j / (count - 1));
    // Two points at epsilon, so that the jump is vertical.
    const edges = epsilon < reach ? [epsilon * (1 - 1e-9), epsilon * (1 + 1e-9)] : [];
    const points = Float64Array.from([...even, ...edges]).sort(), fractions = audit.cdf(points);
    const curve = Array.from(points, (t, j) => [t, fractions[j]]);
    return [[0, 0], ...curve, [reach, fractions[fractions.length - 1]]];
  }

  function additiveCurve(audit, reach) {
    const sorted = Float64Array.from(audit.additive).sort(), curve = [[0, 0]];
    for (let j = 0, below = 0; j < CURVE_POINTS; j++) {
      const value = reach * j / (CURVE_POINTS - 1);
      while (below < sorted.length && sorted[below] <= value) below++;
      curve.push([value, below / sorted.length]);
    }
    return curve;
  }

  const percent = (fraction, digits = 2) => `${(100 * fraction).toFixed(digits)}%`;

  /** Fraction of right guesses without any release. */
  function blindFraction(eta, size) {
    let sum = 0;
    for (let i = 0; i < size; i++) sum += Math.max(eta[i], 1 - eta[i]);
    return sum / size;
  }

  /** The four numbers, each with a line that says what it means. */
  function tilesOf({ mechanism: { epsilon }, mean, quantile, infinite }, blind) {
    const noisy = epsilon < Infinity, most = (50 * Math.tanh(0.5 * epsilon)).toFixed(1);
    const safe = noisy ? "with noise no label becomes certain" : "no label becomes certain";
    return {
      additive: [mean > 0 && mean < 5e-5 ? mean.toExponential(1) : mean.toFixed(4),
        `right guesses: ${percent(blind)} without, ${percent(blind + mean)} with the release`],
      quantile: quantile === Infinity ? ["∞", "more than 2% of all shifts are infinite"]
        : [quantile.toFixed(3), "98% of all shifts of the log-odds are at most this"],
      infinite: [percent(infinite), infinite > 0 ? "of labels become certain" : safe],
      guarantee: noisy
        ? [`ε = ${epsilon.toFixed(2)}`, `odds change by at most a factor of ${
          Math.exp(epsilon).toFixed(2)} and right guesses rise by at most ${
          most} points, if labels are independent given what the attacker knows`]
        : ["none", "a bag of equal labels reveals all of them"],
    };
  }

  /** The same in sentences, for screen readers. */
  function summaryOf(state, { mechanism, mean, quantile, infinite }, blind) {
    const { name, bagSize, epsilon } = mechanism, noisy = epsilon < Infinity;
    const bags = name === "rr" ? "" : `, bags of ${bagSize}`;
    const rate = noisy ? `, epsilon ${epsilon.toFixed(2)}` : "";
    const shift = quantile === Infinity ? "The 98th percentile of the shift in log-odds is infinite"
      : `98 of 100 shifts in log-odds are at most ${quantile.toFixed(3)}`;
    const certain = infinite > 0 ? percent(infinite) : "none";
    const promise = noisy
      ? `While labels are independent, no release can shift any log-odds by more than ${epsilon.toFixed(2)}.`
      : "There is no guarantee.";
    return `${plots.KINDS[name].label}${bags}${rate}; priors: ${people.distributionOf(state.priors).label}. `
      + `The attacker guesses ${percent(blind)} of the labels right without the release and `
      + `${percent(blind + mean)} with it. ${shift}, and ${certain} of the labels become certain. ${promise}`;
  }

  /** The axis covers 199 of 200 possible advantages under these priors.

      It depends on the priors only, so other people with the same priors keep the axis. */
  function additiveReach(priors) {
    const { eta } = people.population(priors, 0);
    const most = eta.map((prior) => Math.min(prior, 1 - prior)).sort();
    const wanted = most[Math.floor(0.995 * most.length)];
    return REACHES.find((reach) => wanted <= reach) || 0.5;
  }

  function start(root) {
    const find = (selector) => root.querySelector(selector);
    const canvas = (name) => find(`[data-plot=${name}]`);
    const results = resultCache();
    let state, population, crowd = "", colours, frame = 0, deferred = 0, writing = 0, speaking = 0;

    const show = Explorer.controls(find(".explorer-controls"), change);
    const showBag = Explorer.bag(find(".explorer-bag"));
    const showAgain = Explorer.again.view(find("#explorer-panel-again"), change);
    const showDesign = Explorer.design.view(find("#explorer-panel-design"), change);

    function populate() {
      const wanted = `${state.priors} ${state.seed}`;
      if (crowd === wanted) return;
      population = people.population(state.priors, state.seed);
      population.labels = population.eta.map((prior, i) => (population.labelUniform[i] < prior ? 1 : 0));
      population.reach = additiveReach(state.priors);
      crowd = wanted;
    }

    function change(part, staged = false) {
      state = { ...state, ...part };
      note([]);
      clearTimeout(writing);
      writing = setTimeout(writeAddress, WAITS.address);
      schedule(staged);
    }

    function schedule(staged = false) {
      cancelAnimationFrame(frame);
      clearTimeout(deferred);
      frame = requestAnimationFrame(() => render(staged));
    }

    function render(staged) {
      const began = performance.now();
      populate();
      root.dataset.mechanism = state.mechanism;
      root.dataset.tab = state.tab;
      show(state, population.eta);
      if (state.tab === "again") showAgain(state, population);
      else if (state.tab === "design") showDesign(state);
      else renderOne(began, staged);
    }

    function renderOne(began, staged) {
      const result = results(state, population, state.mechanism);
      const complete = draw(result, began + BUDGET);
      const blind = blindFraction(population.eta, result.size);
      for (const [name, texts] of Object.entries(tilesOf(result, blind))) Explorer.tile(root, name, ...texts);
      showBag(state, population.eta, staged);
      describe(result, summaryOf(state, result, blind));
      Explorer.lastRender = performance.now() - began;
      fine(result);
      if (!complete) deferred = setTimeout(() => draw(result, Infinity), WAITS.curves);
    }

    /** Draw the chosen mechanism and as many others as time allows; true if all were drawn. */
    function draw(result, deadline) {
      const { eta, reach } = population, curves = {};
      for (const name of Object.keys(plots.KINDS)) {
        const drawn = name === state.mechanism ? result
          : results(state, population, name, deadline - performance.now());
        if (drawn) curves[name] = drawn;
      }
      const pick = (part) => Object.fromEntries(
        Object.entries(curves).map(([name, curve]) => [name, curve[part]]));
      const { posterior, quantile, infinite } = result;
      const chosen = { name: state.mechanism, epsilon: result.mechanism.epsilon };
      plots.scatter(canvas("scatter"), colours, { ...chosen, eta, posterior, quantile });
      plots.multiplicative(canvas("multiplicative"), colours,
        { ...chosen, reach: reachOf(state), curves: pick("multiplicative"), infinite });
      plots.additive(canvas("additive"), colours, { ...chosen, reach, curves: pick("additive") });
      return Object.keys(curves).length === Object.keys(plots.KINDS).length;
    }

    /** The summary is announced once the sliders rest; the plots have it as their description. */
    function describe(result, summary) {
      clearTimeout(speaking);
      speaking = setTimeout(() => {
        find(".explorer-summary").textContent = summary;
        const name = plots.KINDS[result.mechanism.name].label;
        const mean = `its mean is ${result.mean.toFixed(4)}`;
        const pictures = {
          scatter: `Scatter plot of posterior against prior under ${name}. ${summary}`,
          multiplicative: `Distribution function of the multiplicative advantage under ${name}. ${summary}`,
          additive: `Distribution function of the additive advantage under ${name}; ${mean}.`,
        };
        for (const [plot, text] of Object.entries(pictures)) canvas(plot).setAttribute("aria-label", text);
      }, WAITS.speech);
    }

    function fine({ size, nBags, mechanism: { bagSize } }) {
      const left = people.COUNT - size;
      const out = left ? `; ${left} people do not fill a bag and are left out` : "";
      const bags = bagSize === 1 ? "each alone" : `in ${nBags} bags of ${bagSize}`;
      find(".explorer-fine").textContent = `Simulated priors: ${size} people, ${bags}${out}. `
        + "Exact for these bags, over all labels and all noise. "
        + `Computed and drawn in ${Explorer.lastRender.toFixed(0)} ms.`;
    }

    function note(notes) {
      const box = find(".explorer-note");
      box.textContent = notes.join(" ");
      box.hidden = notes.length === 0;
    }

    /** Some browsers do not allow a change of the address of a local file, or frequent changes. */
    function setAddress(how, address) {
      try {
        history[how](null, "", location.pathname + address);
      } catch (error) { /* The page works without it. */ }
    }

    function writeAddress() {
      const query = settings.write(state);
      clearTimeout(writing);
      setAddress("replaceState", `${query && "?"}${query}${location.hash}`);
    }

    function readAddress(query) {
      const read = settings.read(query);
      state = read.state;
      note(read.notes);
      schedule();
    }

    function repaint() {
      colours = plots.palette(root);
      schedule();
    }

    find("[data-action=attack]").addEventListener("click", () => {
      change({ attack: state.attack % settings.NUMBERS.attack.high + 1 }, true);
    });
    find("[data-action=people]").addEventListener("click", () => {
      change({ seed: (state.seed + 1) % (settings.NUMBERS.seed.high + 1), attack: 1 }, true);
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="?"]');
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      writeAddress();
      setAddress("pushState", link.getAttribute("href"));
      readAddress(link.search);
      root.scrollIntoView({ block: "start" });
    });
    window.addEventListener("popstate", () => readAddress(location.search));

    root.hidden = false;
    readAddress(location.search);
    repaint();
    new ResizeObserver(() => schedule()).observe(find(".explorer-plots"));
    new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    // The printer does not wait for the next frame.
    window.matchMedia("print").addEventListener("change", () => {
      repaint();
      render(false);
    });
  }

  return start;
})();

Explorer.start(document.getElementById("explorer"));
