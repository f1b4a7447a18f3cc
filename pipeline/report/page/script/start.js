// What the controls do.

// Unpacking takes a moment, and a feature that browsers have had since 2023.
function showSet(place) {
  byId("status").textContent = "Unpacking the sentences.";
  chooseSet(place).catch((error) => {
    byId("status").textContent =
      `The sentences could not be unpacked (${error.message}). ` +
      "A browser of 2023 or newer is needed, which knows DecompressionStream.";
  });
}

function start() {
  const controls = byId("controls");
  byId("no-script").hidden = true;
  setOptions(byId("set"), sets.map((set, place) => [String(place), set.label]));
  byId("set").addEventListener("change", () => showSet(Number(byId("set").value)));
  controls.addEventListener("input", (event) => event.target.id !== "set" && choose());
  controls.addEventListener("submit", (event) => event.preventDefault());
  byId("clear").addEventListener("click", () => {
    for (const input of controls.querySelectorAll("input")) input.value = "";
    choose();
  });
  byId("previous").addEventListener("click", () => turnPage(-1));
  byId("next").addEventListener("click", () => turnPage(1));
  showSet(0);
}

if (sets.length) start();
