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

  const save = async () => {
    const address = URL.createObjectURL(await (await fetch(vector.href)).blob());
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
    const link = document.createElement("a");
    link.href = canvas.toDataURL("image/png");
    link.download = vector.href.split("/").pop().replace(/svg$/, "png");
    link.click();
  };

  const open = (link) => {
    const shown = link.querySelector("img");
    picture.src = link.href;
    picture.alt = shown.alt;
    picture.style.minWidth = `${shown.naturalWidth}px`;
    vector.href = link.href;
    // A page from the disk may not read the picture, so it cannot convert it.
    bitmap.hidden = location.protocol === "file:" || !link.href.endsWith(".svg");
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
  bitmap.addEventListener("click", save);
  view.addEventListener("cancel", (event) => { event.preventDefault(); close(); });
  view.addEventListener("click", (event) => { if (event.target === view) close(); });
  window.addEventListener("popstate", () => { if (view.open) view.close(); });
  document.body.append(view);
});
