// Addresses of sentences, such as #sentence/nmt_ende/help/12, and opening the one of the page.

const addressOf = (position) => {
  const names = [state.set.task, state.set.test_set, position].map(encodeURIComponent);
  return `#sentence/${names.join("/")}`;
};

// The set and position that the address of the page names, or null if it names no sentence.
function addressed() {
  const [kind, ...names] = location.hash.slice(1).split("/");
  if (kind !== "sentence" || names.length !== 3) return null;
  try {
    const [task, name, position] = names.map(decodeURIComponent);
    const index = sets.findIndex((set) => set.task === task && set.test_set === name);
    return { index, name, position: Number(position) };
  } catch {
    return null; // not an address that the page has made
  }
}

// Selects the set of the address, or the first set, and opens the sentence.
async function openAddressed() {
  const wanted = addressed();
  const index = wanted?.index ?? -1;
  sayUnknown(wanted && index < 0 ? `This page has no test set ${wanted.name}.` : "");
  if (state.set === null || (index >= 0 && sets[index] !== state.set)) {
    byId("set").value = String(Math.max(0, index));
    await showSet(Math.max(0, index));
  }
  if (index >= 0 && sets[index] === state.set) openSentence(wanted.position);
}

function sayUnknown(message) {
  byId("unknown").textContent = message;
  byId("unknown").hidden = !message;
  if (message) byId("sentences").scrollIntoView();
}

function openSentence(position) {
  if (!(position in state.data.source)) {
    sayUnknown(`This page has no sentence ${position} of ${state.set.test_set}.`);
    return;
  }
  if (!state.matching.includes(position)) clearFilters();
  const page = Math.floor(state.matching.indexOf(position) / ROWS_PER_PAGE);
  if (page !== state.page) {
    state.page = page;
    drawList();
  }
  const button = byId("list").querySelector(`[aria-controls="sentence-${position}"]`);
  if (button.getAttribute("aria-expanded") === "false") button.click();
  button.focus({ preventScroll: true });
  button.parentElement.scrollIntoView();
}
