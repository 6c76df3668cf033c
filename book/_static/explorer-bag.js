/* One bag of ten people: labels, a release, and what the attacker learns from it. */

Explorer.bag = (function () {
  "use strict";

  const { people, auditing } = Explorer;
  const NAMES = ["Ada", "Ben", "Cleo", "Dev", "Eve", "Finn", "Gita", "Hugo", "Iris", "Jan"];
  const TEN = NAMES.length;
  // Lower streams of the seed draw the people of the plots.
  const FIRST_STREAM = 16;
  const PAUSE = 450;
  // A screen reader gets the text once the sliders rest.
  const REST = 300;

  /** The attack number `attack`: labels, release and posteriors of the ten. */
  function attackOnce(audit, eta, seed, attack) {
    const random = people.generator(seed, FIRST_STREAM + attack);
    const labels = Array.from({ length: TEN }, (_, i) => (random() < eta[i] ? 1 : 0));
    const positions = people.releases(audit.mechanism, labels, Array.from({ length: TEN }, random));
    return { labels, positions, posterior: audit.posteriors(positions) };
  }

  const guess = (probability) => (probability >= 0.5 ? 1 : 0);
  const right = (probabilities, labels) => labels.filter((label, i) => guess(probabilities[i]) === label).length;

  function percent(probability) {
    if (probability === 0 || probability === 1) return `${100 * probability}%`;
    const shown = (100 * probability).toFixed(1);
    return probability < 0.0005 ? "<0.1%" : probability > 0.9995 ? ">99.9%" : `${shown}%`;
  }

  function describe(mechanism, { labels, positions }) {
    const count = labels.reduce((sum, label) => sum + label, 0);
    if (mechanism.name === "rr") {
      const flips = labels.filter((label, i) => label !== positions[i]).length;
      return `Each label is reported alone; ${flips} of ${TEN} came out flipped.`;
    }
    const fraction = Number((positions[0] / TEN).toFixed(3)), noise = positions[0] - count;
    const clipped = mechanism.name === "geom" && (positions[0] === 0 || positions[0] === TEN);
    const added = mechanism.continuous ? noise.toFixed(2) : String(noise);
    const how = mechanism.epsilon === Infinity ? " without noise"
      : ` and noise ${noise >= 0 ? "+" : "−"}${added.replace("-", "")}${clipped ? " after clipping" : ""}`;
    return `Released: a fraction of ${fraction}, from ${count} ${count === 1 ? "one" : "ones"}${how}.`;
  }

  /** The table of the ten; gives the function that shows a state. */
  function bag(root) {
    const body = root.querySelector("tbody"), rows = NAMES.map((name) => row(body, name));
    const released = root.querySelector(".explorer-release"), spoken = root.querySelector(".explorer-spoken");
    const tally = root.querySelector(".explorer-tally");
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    let waiting = 0, speaking = 0;

    function say(text) {
      released.textContent = text;
      clearTimeout(speaking);
      speaking = setTimeout(() => {
        if (spoken.textContent !== text) spoken.textContent = text;
      }, REST);
    }

    function fill(eta, mechanism, once, isReleased) {
      rows.forEach((row, i) => {
        row.show(eta[i], once.labels[i], isReleased ? once.posterior[i] : null,
          mechanism.name === "rr" && isReleased ? once.positions[i] : null);
      });
    }

    return function show(state, eta, staged) {
      const ten = eta.subarray(0, TEN), mechanism = auditing.mechanism(state.mechanism, TEN, state.epsilon);
      const audit = auditing.audit(ten, mechanism);
      const once = attackOnce(audit, ten, state.seed, state.attack);
      const finish = () => {
        fill(ten, mechanism, once, true);
        say(describe(mechanism, once));
        tally.textContent = score(audit, ten, state);
      };
      clearTimeout(waiting);
      root.classList.toggle("explorer-animated", staged);
      if (!staged || calm.matches) return finish();
      // First show the new labels with the priors, then the effect of the release.
      fill(ten, mechanism, once, false);
      released.textContent = "New labels are drawn …";
      waiting = setTimeout(finish, PAUSE);
    };
  }

  /** Right guesses over all attacks so far, and their exact expectation. */
  function score(audit, eta, { seed, attack }) {
    let informed = 0, blind = 0;
    for (let j = 1; j <= attack; j++) {
      const { labels, posterior } = attackOnce(audit, eta, seed, j);
      informed += right(posterior, labels);
      blind += right(eta, labels);
    }
    const alone = eta.reduce((sum, prior) => sum + Math.max(prior, 1 - prior), 0);
    const mean = (total) => (total / attack).toFixed(attack === 1 ? 0 : 2);
    const span = attack === 1 ? "in this attack" : `on average over ${attack} attacks`;
    return `Right guesses out of ten, ${span}: `
      + `${mean(informed)} with the release, ${mean(blind)} from the priors alone. `
      + `In the long run, exactly: ${(alone + TEN * audit.meanAdditive()).toFixed(2)} and ${alone.toFixed(2)}.`;
  }

  function row(body, name) {
    const line = body.insertRow(), head = line.appendChild(document.createElement("th"));
    // Roles by name: on a phone the rows are laid out as grids, which would hide what they are.
    line.setAttribute("role", "row");
    head.setAttribute("role", "rowheader");
    head.scope = "row";
    head.textContent = name;
    const [secret, reported, cell, prior, after] = Array.from({ length: 5 }, () => {
      const made = line.insertCell();
      made.setAttribute("role", "cell");
      return made;
    });
    reported.className = "explorer-reported";
    cell.className = "explorer-track-cell";
    cell.innerHTML = '<div class="explorer-track" aria-hidden="true"><i class="explorer-move"></i>'
      + '<i class="explorer-prior"></i><i class="explorer-posterior"></i></div>';
    const [move, tick, dot] = cell.querySelectorAll("i");

    function show(eta, label, posterior, report) {
      const now = posterior === null ? eta : posterior;
      secret.replaceChildren(chip(label, false));
      reported.replaceChildren(report === null ? "" : chip(report, report !== label));
      prior.textContent = percent(eta);
      after.textContent = posterior === null ? "…" : percent(posterior);
      tick.style.left = `${100 * eta}%`;
      dot.style.left = `${100 * now}%`;
      move.style.left = `${100 * Math.min(eta, now)}%`;
      move.style.width = `${100 * Math.abs(now - eta)}%`;
      const certain = (now === 0 || now === 1) && eta > 0 && eta < 1;
      line.classList.toggle("explorer-certain", certain);
      if (certain) after.textContent += " certain";
    }
    return { show };
  }

  function chip(label, flipped) {
    const made = document.createElement("span");
    made.className = "explorer-chip";
    made.dataset.label = made.textContent = label;
    if (flipped) {
      made.dataset.flipped = "";
      made.title = "flipped";
    }
    return made;
  }

  return bag;
})();
