/* The same labels released again in new bags: elimination, belief propagation, and a town to watch.

   The arithmetic is that of labelaudit.redrawn_attack, on few people and without its kernels. */

Explorer.again = (function () {
  "use strict";

  const { people, auditing } = Explorer;
  const TOWN = 48;
  const LARGEST_BAG = 24;
  // Streams of the seed that no other part of the page draws from.
  const STREAMS = { bags: 2000, noise: 3000 };
  const MAX_LOG_ODDS = 36;
  const MAX_LOG = 700;
  const FREE_SWEEPS = 30;
  const MOST_SWEEPS = 200;

  const clip = (value, low, high) => Math.min(Math.max(value, low), high);
  const isOpen = (belief) => belief > 0 && belief < 1;

  /** P(release | count = s) for s = 0..k, up to a factor; the release is given in counts. */
  function likelihood({ bagSize, epsilon }, position) {
    const inside = clip(position, 0, bagSize);
    return Array.from({ length: bagSize + 1 }, (_, s) => (
      epsilon === Infinity ? Number(s === position) : Math.exp(-epsilon * Math.abs(inside - s))));
  }

  /** Each set of unknown members once. Likelihoods of a bag that was released repeatedly multiply. */
  function distinctBags(bags, known) {
    const kept = new Map();
    for (const { members, weights } of bags) {
      const rest = members.filter((i) => isOpen(known[i])).sort((a, b) => a - b), key = rest.join();
      const ones = members.filter((i) => known[i] === 1).length, before = kept.get(key);
      const left = weights.slice(ones, ones + rest.length + 1);
      if (before) before.weights = before.weights.map((weight, s) => weight * left[s]);
      else if (rest.length) kept.set(key, { members: rest, weights: left });
    }
    return [...kept.values()];
  }

  /** `eta` with 0 or 1 in place of each prior that the releases decide. */
  function eliminate(eta, bags) {
    const known = Float64Array.from(eta);
    for (let changed = true; changed;) {
      changed = false;
      for (const { members, weights } of bags) {
        const ones = members.filter((i) => known[i] === 1).length;
        const most = members.filter((i) => known[i] > 0).length;
        const counts = weights.flatMap((weight, s) => (weight > 0 && s >= ones && s <= most ? [s] : []));
        const label = counts.every((s) => s === ones) ? 0 : counts.every((s) => s === most) ? 1 : null;
        if (label === null) continue;
        for (const i of members) {
          if (!isOpen(known[i])) continue;
          known[i] = label;
          changed = true;
        }
      }
    }
    return known;
  }

  /** The exact attack on one bag: the log likelihood ratio of each member. */
  function shiftsOf(priors, weights) {
    const k = priors.length, forward = [[1]], backward = [];
    for (let j = 0; j < k; j++) {
      const row = new Array(j + 2).fill(0);
      forward[j].forEach((mass, s) => {
        row[s] += mass * (1 - priors[j]);
        row[s + 1] += mass * priors[j];
      });
      forward.push(row);
    }
    backward[k] = weights;
    for (let j = k - 1; j >= 0; j--) {
      const ahead = backward[j + 1];
      backward[j] = Array.from({ length: j + 1 }, (_, s) => ahead[s] * (1 - priors[j]) + ahead[s + 1] * priors[j]);
    }
    return priors.map((prior, j) => {
      if (!isOpen(prior)) return 0;
      let one = 0, zero = 0;
      forward[j].forEach((mass, s) => {
        one += mass * backward[j + 1][s + 1];
        zero += mass * backward[j + 1][s];
      });
      return clip(Math.log(one / zero), -MAX_LOG, MAX_LOG);
    });
  }

  /** Beliefs by belief propagation, with the attack on one bag as its step. */
  function propagate(known, bags, tolerance, damping) {
    const total = known.map((prior) => (isOpen(prior) ? Math.log(prior) - Math.log1p(-prior) : 0));
    const lowest = total.map((odds) => Math.min(odds, -MAX_LOG_ODDS));
    const belief = (i, odds) => (isOpen(known[i])
      ? 1 / (1 + Math.exp(-clip(odds, lowest[i], MAX_LOG_ODDS))) : known[i]);
    const shifts = bags.map(({ members }) => members.map(() => 0)), inputs = bags.map(() => null);
    let sweep = 0, moving = true;
    while (moving && sweep < MOST_SWEEPS) {
      sweep++;
      moving = false;
      bags.forEach(({ members, weights }, number) => {
        const last = inputs[number];
        let priors = members.map((i, j) => belief(i, total[i] - shifts[number][j]));
        if (last && priors.every((prior, j) => Math.abs(prior - last[j]) <= tolerance)) return;
        if (sweep > FREE_SWEEPS) priors = priors.map((prior, j) => last[j] + (1 - damping) * (prior - last[j]));
        const fresh = shiftsOf(priors, weights);
        members.forEach((i, j) => { total[i] += fresh[j] - shifts[number][j]; });
        shifts[number] = fresh;
        inputs[number] = priors;
        moving = true;
      });
    }
    return { posterior: known.map((_, i) => belief(i, total[i])), iterations: sweep, converged: !moving };
  }

  /** What the releases of several weeks, each { bags, positions }, say about everyone. */
  function attack(eta, mechanism, weeks, tolerance = 1e-6, damping = 0.5) {
    const bags = weeks.flatMap((week) => week.bags.map(
      (members, number) => ({ members, weights: likelihood(mechanism, week.positions[number]) })));
    const known = mechanism.epsilon === Infinity ? eliminate(eta, bags) : Float64Array.from(eta);
    const proven = Array.from(known, (belief, i) => isOpen(eta[i]) && !isOpen(belief));
    return { ...propagate(known, distinctBags(bags, known), tolerance, damping), proven };
  }

  /** Everyone in an order that the week decides, cut into bags; the rest is left out. */
  function bagsOf(week, seed, bagSize) {
    const order = Array.from({ length: TOWN }, (_, i) => i), random = people.generator(seed, STREAMS.bags + week);
    for (let i = TOWN - 1; i > 0; i--) {
      const j = Math.floor(random() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    return Array.from({ length: Math.floor(TOWN / bagSize) }, (_, b) => order.slice(b * bagSize, (b + 1) * bagSize));
  }

  /** The town of a state: priors, labels, mechanism, and the releases of its weeks. */
  function town(state, population) {
    const mechanism = auditing.mechanism(state.mechanism, Math.min(state.k, LARGEST_BAG), state.epsilon);
    const eta = population.eta.slice(0, TOWN), labels = population.labels.slice(0, TOWN);
    const weeks = Array.from({ length: state.releases }, (_, week) => {
      const bags = bagsOf(state.redraw ? week : 0, state.seed, mechanism.bagSize);
      const random = people.generator(state.seed, STREAMS.noise + week);
      const ordered = bags.flat().map((i) => labels[i]);
      return { bags, positions: people.releases(mechanism, ordered, bags.map(() => random())) };
    });
    return { eta, labels, mechanism, weeks };
  }

  const right = (beliefs, labels) => labels.reduce(
    (sum, label, i) => sum + Number((beliefs[i] >= 0.5 ? 1 : 0) === label), 0);

  /** The list of people, the numbers, and the history; gives the function that shows a state. */
  function view(root, change) {
    const list = root.querySelector(".explorer-town"), slider = root.querySelector("#explorer-releases");
    const redraw = root.querySelector("#explorer-redraw"), history = root.querySelector("tbody");
    const cells = Array.from({ length: TOWN }, () => list.appendChild(document.createElement("li")));
    let current;
    slider.addEventListener("input", () => change({ releases: Number(slider.value) }));
    redraw.addEventListener("change", () => change({ redraw: Number(redraw.checked) }));
    root.querySelector("[data-action=week]").addEventListener("click", () => {
      change({ releases: Math.min(current.releases + 1, Number(slider.max)) });
    });
    root.querySelector("[data-action=town]").addEventListener("click", () => {
      change({ seed: (current.seed + 1) % (Explorer.state.NUMBERS.seed.high + 1), attack: 1 });
    });

    return function show(state, population) {
      current = state;
      const { eta, labels, mechanism, weeks } = town(state, population);
      const results = Array.from({ length: weeks.length + 1 },
        (_, count) => attack(eta, mechanism, weeks.slice(0, count)));
      const { posterior, proven, converged } = results[results.length - 1];
      const sure = proven.filter(Boolean).length, blind = right(eta, labels), now = right(posterior, labels);
      slider.value = state.releases;
      slider.style.setProperty("--fill", `${100 * state.releases / Number(slider.max)}%`);
      slider.parentElement.querySelector("output").textContent = state.releases;
      redraw.checked = Boolean(state.redraw);
      cells.forEach((cell, i) => paint(cell, i, posterior[i], proven[i], labels[i]));
      Explorer.tile(root, "proven", `${sure} of ${TOWN}`, mechanism.epsilon === Infinity
        ? "labels that only one value fits" : "with noise nothing can be proven");
      Explorer.tile(root, "right", `${now} of ${TOWN}`, `${blind} from the priors alone`);
      Explorer.tile(root, "total", mechanism.epsilon === Infinity ? "none"
        : `ε = ${(mechanism.epsilon * state.releases).toFixed(2)}`,
      mechanism.epsilon === Infinity ? "there is no guarantee" : "in total: every release adds its ε");
      history.replaceChildren(...results.map((result, week) => row(week, result, labels)));
      const bags = mechanism.bagSize === 1 ? "reported one by one" : `in bags of ${mechanism.bagSize}`;
      const cut = state.mechanism !== "rr" && state.k > LARGEST_BAG ? ` Bags of this town hold at most ${LARGEST_BAG}.` : "";
      root.querySelector(".explorer-story").textContent = `${state.releases} ${state.releases === 1 ? "release" : "releases"}, `
        + `${bags}: ${sure} labels are proven and ${now} of ${TOWN} guesses are right.${cut}`
        + (converged ? "" : " The beliefs still move after 200 sweeps.");
    };
  }

  function paint(cell, i, belief, proven, label) {
    const guess = belief >= 0.5 ? 1 : 0, wrong = guess !== label;
    const shown = proven || !isOpen(belief) ? `${100 * belief}%`
      : `${clip(Math.round(100 * belief), 1, 99)}%`;
    cell.style.setProperty("--sure", `${Math.round(100 * Math.abs(2 * belief - 1))}%`);
    cell.dataset.guess = guess;
    cell.classList.toggle("explorer-proven", proven);
    cell.classList.toggle("explorer-wrong", wrong);
    cell.textContent = `${shown}${proven ? " ✓" : wrong ? " ×" : ""}`;
    cell.setAttribute("aria-label", `person ${i + 1}: probability of label 1 ${shown}, `
      + `${proven ? "proven" : wrong ? "the guess is wrong" : "the guess is right"}`);
  }

  function row(week, { posterior, proven }, labels) {
    const line = document.createElement("tr"), head = line.appendChild(document.createElement("th"));
    head.scope = "row";
    head.textContent = week;
    for (const value of [proven.filter(Boolean).length, right(posterior, labels)]) {
      line.insertCell().textContent = value;
    }
    return line;
  }

  return { TOWN, attack, bagsOf, town, view };
})();
