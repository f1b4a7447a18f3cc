// Connect the controls.

// Unpacking takes a moment, and needs a feature that browsers have had since 2023.
function showSet(index) {
  byId("status").textContent = "Unpacking the sentences …";
  return selectSet(index).catch((error) => {
    byId("status").textContent =
      `The sentences could not be unpacked (${error.message}). ` +
      "Use a browser from 2023 or later, which supports DecompressionStream.";
  });
}

function clearFilters() {
  for (const input of byId("controls").querySelectorAll("input")) input.value = "";
  applyFilters();
}

function start() {
  const controls = byId("controls");
  byId("no-script").hidden = true;
  setOptions(byId("set"), sets.map((set, index) => [String(index), set.label]));
  byId("set").addEventListener("change", () => showSet(Number(byId("set").value)));
  controls.addEventListener("input", (event) => event.target.id !== "set" && applyFilters());
  controls.addEventListener("submit", (event) => event.preventDefault());
  byId("clear").addEventListener("click", clearFilters);
  byId("previous").addEventListener("click", () => turnPage(-1));
  byId("next").addEventListener("click", () => turnPage(1));
  window.addEventListener("hashchange", openAddressed);
  openAddressed();
}

for (const box of document.querySelectorAll(".scroll")) wideTables.observe(box);
if (sets.length) start();
