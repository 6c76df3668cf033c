(() => {
  const page = document.currentScript.closest(".ledger-page");
  const table = page.querySelector("table.ledger-table");
  const entries = [...table.querySelectorAll("tr[data-verdict]")];
  const controls = page.querySelector(".ledger-controls");
  const buttons = [...controls.querySelectorAll("button")];
  const box = controls.querySelector("input");
  const shown = page.querySelector(".ledger-shown");
  const letters = new Map(Object.entries(LETTERS));
  const lettered = word => word.replace(/[a-z]+/g, name => letters.get(name) ?? name);
  const wanted = { verdict: "", grade: "" };
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of entries) {
      const text = row.textContent.toLowerCase().replaceAll("−", "-");
      const right = Object.entries(wanted).every(([field, name]) => !name || row.dataset[field] === name);
      row.hidden = !right || !words.every(
        word => text.includes(word) || text.includes(lettered(word)));
      count += !row.hidden;
    }
    for (const part of table.querySelectorAll("tbody"))
      part.hidden = ![...part.querySelectorAll("tr[data-verdict]")].some(row => !row.hidden);
    shown.textContent = `${count} of ${entries.length} statements shown.`;
  };
  for (const button of buttons) button.addEventListener("click", () => {
    const field = "verdict" in button.dataset ? "verdict" : "grade";
    wanted[field] = button.dataset[field];
    for (const other of buttons)
      if (field in other.dataset) other.setAttribute("aria-pressed", other === button);
    filter();
  });
  box.addEventListener("input", filter);
  controls.hidden = false;
})();
