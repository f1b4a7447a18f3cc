// The sounds of speech. The page embeds those of some sentences.

let playing = null;

// The sound as a data URL; undefined if the page does not embed it.
function soundOf(position) {
  const sound = state.data.sound?.[position];
  return sound && `data:audio/mpeg;base64,${sound}`;
}

function makePlayButton(position) {
  const button = make("button", { type: "button", class: "play", "aria-label": "Play" }, "▶");
  button.addEventListener("click", () => {
    playing?.pause();
    playing = new Audio(soundOf(position));
    playing.play();
  });
  return button;
}

// The file of an utterance, and its sound if the page embeds it.
function makeRecording(position) {
  const cell = corpusText("dd", "file", state.data.source[position]);
  if (soundOf(position)) {
    cell.prepend(make("audio", { controls: "", src: soundOf(position) }));
  }
  return cell;
}
