// A tap on a figure opens it at its natural size over the page, with a way back.
document.addEventListener("DOMContentLoaded", () => {
  const view = document.createElement("dialog");
  view.className = "figure-view";
  view.setAttribute("aria-label", "Figure at its natural size");
  view.innerHTML = '<div class="figure-bar"><button type="button">Back to the page</button>' +
    '<a download>Save as SVG</a><button type="button">Save as PNG</button></div><div class="figure-ground" tabindex="0"><img alt=""></div>';
  const [back, bitmap] = view.querySelectorAll("button");
  const vector = view.querySelector("a");
  const picture = view.querySelector("img");

  // A page from the disk may not read a picture, but it may run a script that holds it.
  const source = () => new Promise((resolve, reject) => {
    window.figureSource = (text) => resolve(new Blob([text], { type: "image/svg+xml" }));
    const script = document.createElement("script");
    script.addEventListener("error", reject);
    script.src = `${vector.href}.js`;
    document.head.append(script);
  });

  const save = (address, suffix) => {
    const link = document.createElement("a");
    link.href = address;
    link.download = vector.href.split("/").pop().replace(/svg$/, suffix);
    link.click();
  };

  const convert = async () => {
    const address = URL.createObjectURL(await source());
    const drawn = new Image();
    drawn.src = address;
    await drawn.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * drawn.naturalWidth;
    canvas.height = 2 * drawn.naturalHeight;
    const context = canvas.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(drawn, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    save(canvas.toDataURL("image/png"), "png");
  };

  const open = (link) => {
    const shown = link.querySelector("img");
    picture.src = link.href;
    picture.alt = shown.alt;
    picture.style.minWidth = `${shown.naturalWidth}px`;
    vector.href = link.href;
    bitmap.hidden = !link.href.endsWith(".svg");
    vector.textContent = bitmap.hidden ? "Save as PNG" : "Save as SVG";
    view.showModal();
    history.pushState({ figure: true }, "");
  };
  const close = () => { if (history.state?.figure) history.back(); else view.close(); };

  for (const link of document.querySelectorAll("a.image-reference[href$='.svg'], a.image-reference[href$='.png']"))
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(link);
    });
  back.addEventListener("click", close);
  bitmap.addEventListener("click", convert);
  vector.addEventListener("click", async (event) => {
    // On a disk the link alone would open the picture in place of the page.
    if (location.protocol !== "file:" || bitmap.hidden) return;
    event.preventDefault();
    save(URL.createObjectURL(await source()), "svg");
  });
  view.addEventListener("cancel", (event) => { event.preventDefault(); close(); });
  view.addEventListener("click", (event) => { if (event.target === view) close(); });
  window.addEventListener("popstate", () => { if (view.open) view.close(); });
  document.body.append(view);
});

// The search reads excerpts from pages, which browsers do not allow from a disk.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
