// What the controls do.

function start() {
  const controls = byId("controls");
  byId("no-script").hidden = true;
  setOptions(byId("set"), sets.map((set, place) => [String(place), set.label]));
  byId("set").addEventListener("change", () => chooseSet(Number(byId("set").value)));
  controls.addEventListener("input", (event) => event.target.id !== "set" && choose());
  controls.addEventListener("submit", (event) => event.preventDefault());
  byId("clear").addEventListener("click", () => {
    for (const input of controls.querySelectorAll("input")) input.value = "";
    choose();
  });
  byId("previous").addEventListener("click", () => turnPage(-1));
  byId("next").addEventListener("click", () => turnPage(1));
  chooseSet(0);
}

if (sets.length) start();
